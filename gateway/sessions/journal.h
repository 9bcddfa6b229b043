/*
 * The journal: records of transcripts and of the audit are on the disk before they are acknowledged. Its thread takes
 * all records that wait as one batch: a write for each record, one fdatasync for each file, then the callbacks.
 *
 * When the disk fails, no record of the batch is acknowledged for that file, and the file is cut back to the records
 * that it had before. So no whole record ever comes after a torn one. The next append tries again.
 *
 * Loop thread, unless a comment says otherwise. Only gw_journal_close blocks.
 */
#ifndef GW_SESSIONS_JOURNAL_H
#define GW_SESSIONS_JOURNAL_H

#include "sessions/worker.h"

#include <stddef.h>
#include <stdint.h>

#define GW_JOURNAL_WAITING_MAX (64u << 20)  /* bytes that may wait for the disk; more are refused */
#define GW_JOURNAL_FILE_MAX    (256u << 20) /* bytes of a file; readers read it whole */

struct gw_journal;
struct gw_journal_file;

/*
 * `error` NULL: the record is on the disk. Otherwise no part of it is on the disk or will be. Called once for each
 * record that was accepted.
 */
typedef void gw_journal_done(void *context, const struct fm_error *error);

/* Starts the thread. Fails with the errors of gw_worker_open. */
FM_MUST_USE enum fm_code gw_journal_open(uv_loop_t *loop, struct gw_journal **journal, struct fm_error *error);

/*
 * Waits until everything accepted is on the disk, calls back and ends the thread. The loop has to run once more. Before
 * that, free the files by gw_journal_file_free.
 */
void gw_journal_close(struct gw_journal *journal);

/*
 * A file of lines in a folder (base/private_files.h). The folder's descriptor must stay open, and the caller closes it
 * later. `whole`: the length of the file's whole records; what is after them is cut off before the first append. -1:
 * there is no such file yet, and the first append creates it. Only the journal may write to it. NULL: out of memory.
 */
FM_MUST_USE struct gw_journal_file *gw_journal_file_new(struct gw_journal *journal, int folder, const char *name,
                                                        int64_t whole);

/*
 * Frees the file once everything that was accepted for it is done, then calls `gone` (NULL: nothing). Never fails. The
 * file on the disk stays. `file` NULL: nothing happens.
 */
void gw_journal_file_free(struct gw_journal_file *file, void (*gone)(void *context), void *context);

/*
 * Takes a record, one line with its newline, and calls back when it is on the disk or could not be written. Records of
 * a file keep their order. FM_OVERLOADED: too much waits; FM_INTERNAL: out of memory; then nothing calls back.
 */
FM_MUST_USE enum fm_code gw_journal_append(struct gw_journal_file *file, const char *line, size_t len,
                                           gw_journal_done *done, void *context, struct fm_error *error);

/*
 * Runs `work` on the journal's thread, after everything that was accepted earlier and before everything that is
 * accepted later. Then runs `done` (may be NULL) on the loop's thread. `work` returns a code and fills `error`, as any
 * function here. FM_INTERNAL: out of memory, and nothing runs.
 */
FM_MUST_USE enum fm_code gw_journal_run(struct gw_journal *journal,
                                        enum fm_code (*work)(void *context, struct fm_error *error),
                                        gw_journal_done *done, void *context, struct fm_error *error);

/* Tells the journal that the file is gone. A `work` that removes a file calls it, on the journal's thread. */
void gw_journal_file_is_gone(struct gw_journal_file *file);

#endif
