/*
 * Files in which an engine keeps what it has computed, so that its successor does not have to compute it again. Each
 * engine and model has one file, in a private folder of bounded size. An engine can't open a file, so it gets two
 * descriptors: one of the existing file, and one of a new file. The new file replaces the old one when the engine has
 * reported that the new file is complete. Only the engine knows the contents of its file, and it does not trust them
 * (ENGINE.md, Saved state). These functions block on the disk: call them without the front's lock, and from one thread
 * at a time for each struct.
 */
#ifndef FM_FRONT_ENGINES_KV_FILES_H
#define FM_FRONT_ENGINES_KV_FILES_H

#include "base/platform.h"
#include "front/options.h"

#define FM_KV_NAME_MAX 48

/* The numbers of the descriptors in the engine's process. */
enum { FM_KV_GIVEN_READ = FM_CHILD_GIVEN, FM_KV_GIVEN_WRITE };

/* The files of one engine's process. */
struct fm_kv_files {
    int folder;        /* -1: there are no files */
    int read;          /* the existing file; -1: there is none */
    int write;         /* the new file; -1: there are no files */
    int64_t max_bytes; /* most bytes that the engine's file may have */
    int64_t all_bytes; /* most bytes that all files together may have */
    char name[FM_KV_NAME_MAX];
    char new_name[FM_KV_NAME_MAX];
};

/* Sets `files` to hold no files. Never blocks. */
void fm_kv_files_none(struct fm_kv_files *files);

/*
 * Opens the files for an engine that is to load `model`, its path or name. If files are not wanted, or can't be opened,
 * `files` stays without files. That is not an error; the log has the reason.
 */
void fm_kv_files_open(struct fm_kv_files *files, const struct fm_options *options, const char *engine,
                      const char *model);

/* Returns the descriptors that the engine's process gets. Never blocks. */
struct fm_child_given fm_kv_files_given(const struct fm_kv_files *files);

/* Removes the file that the engine was given to read, because the engine can't use it. */
void fm_kv_files_drop(struct fm_kv_files *files);

/*
 * Call it after the engine has ended. `saved_bytes` is the size that it reported as saved; 0: it reported nothing. If
 * the new file has exactly this size, it replaces the old one. Then, if all files together are too large, the least
 * recently used ones are removed. If the size differs, the new file is removed. Afterwards `files` holds no files. A
 * second call is harmless.
 */
void fm_kv_files_close(struct fm_kv_files *files, int64_t saved_bytes);

#endif
