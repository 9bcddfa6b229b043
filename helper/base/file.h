/* Files that others name. */
#ifndef FM_BASE_FILE_H
#define FM_BASE_FILE_H

#include "base/buf.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Fills `error` for `what` (such as "file") that could not be opened, with the errno value: FM_UNAVAILABLE, or
 * FM_OVERLOADED when there is no descriptor left, which is no fault of the file. Returns the code.
 */
enum fm_code fm_file_fail_open(const char *what, int failure, const char *path, struct fm_error *error);

/*
 * Looks whether `path` can be read, is a regular file, and begins with the bytes of `magic`, a text that names the
 * format too, such as "GGUF". Never waits, as opening a FIFO would. Failures are FM_UNAVAILABLE, or as
 * fm_file_fail_open has them, and name the file.
 */
FM_MUST_USE enum fm_code fm_file_check_magic(const char *path, const char *magic, struct fm_error *error);

/*
 * Appends the contents of `path`, a regular file, to `text`; longer than that holds, it is refused. Never waits for
 * another process. Failures are as above.
 */
FM_MUST_USE enum fm_code fm_file_read(const char *path, struct fm_buf *text, struct fm_error *error);

/* Appends its first `limit` bytes, or all where it has fewer. Otherwise as fm_file_read. */
FM_MUST_USE enum fm_code fm_file_read_start(const char *path, struct fm_buf *text, size_t limit, struct fm_error *error);

/*
 * Makes the file `path`, empty, with mode 0600, unless there is one. UNAVAILABLE, with the path; also where there is
 * something else than a regular file, a device say. Never waits.
 */
FM_MUST_USE enum fm_code fm_file_create(const char *path, struct fm_error *error);

/* Which file a path names. All 0: there is none, or it can't be looked at. */
struct fm_file_id {
    uint64_t device;
    uint64_t inode;
};

/* Opens nothing, as below. May block on the disk. */
struct fm_file_id fm_file_identify(const char *path);

/* Pure. */
bool fm_file_id_equal(const struct fm_file_id *one, const struct fm_file_id *other);

/* Gives the file `path` the mode 0600. Opens nothing: a close would drop the locks that a library has on it. */
FM_MUST_USE enum fm_code fm_file_make_private(const char *path, struct fm_error *error);

#endif
