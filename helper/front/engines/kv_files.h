/*
 * Files in which an engine keeps what it has computed, so that its successor need not compute it again: one for each
 * engine and model, in a private folder of bounded size. An engine can't open a file, so it gets two descriptors: of
 * the file as it is, and of a new one, which takes the name of the first when the engine has said that it is whole.
 * What is in them is the engine's business, and it trusts none of it (ENGINE.md, Saved state). Blocks on the disk:
 * without the front's lock, and one thread at a time for each struct.
 */
#ifndef FM_FRONT_ENGINES_KV_FILES_H
#define FM_FRONT_ENGINES_KV_FILES_H

#include "base/platform.h"
#include "front/options.h"

#define FM_KV_NAME_MAX 48

/* The descriptors as the engine's process has them. */
enum { FM_KV_GIVEN_READ = FM_CHILD_GIVEN, FM_KV_GIVEN_WRITE };

/* The files of one engine's process. */
struct fm_kv_files {
    int folder;        /* -1: there are no files */
    int read;          /* what was saved last; -1: nothing */
    int write;         /* the new file; -1: there are no files */
    int64_t max_bytes; /* that it may have */
    int64_t all_bytes; /* that all files together may have */
    char name[FM_KV_NAME_MAX];
    char new_name[FM_KV_NAME_MAX];
};

/* There are none. Never blocks. */
void fm_kv_files_none(struct fm_kv_files *files);

/*
 * Opens the files for an engine that is to load `model`, its path or name. Where that is not wanted, or does not work,
 * there are none, and the log has the reason; nobody fails for that.
 */
void fm_kv_files_open(struct fm_kv_files *files, const struct fm_options *options, const char *engine,
                      const char *model);

/* What the engine's process is to be given. Never blocks. */
struct fm_child_given fm_kv_files_given(const struct fm_kv_files *files);

/* The engine can't use what it was given to read: it is removed. */
void fm_kv_files_drop(struct fm_kv_files *files);

/*
 * The engine has ended, after it said that it saved so many bytes; 0: it did not. Where the new file has as many, it
 * takes the place of the old one, and those that were not used for the longest time are removed if there are too many
 * bytes. Else it is removed. There are none afterwards. Harmless twice.
 */
void fm_kv_files_close(struct fm_kv_files *files, int64_t saved_bytes);

#endif
