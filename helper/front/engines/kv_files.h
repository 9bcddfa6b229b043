/*
 * Files in which an engine keeps what it has computed, so that its successor does not have to compute it again: one
 * file for each engine and model, in a private folder of bounded size. An engine can't open a file, so it gets two
 * descriptors: one of the file as it is, and one of a new file, which takes the name of the first when the engine has
 * reported that it is complete. Only the engine knows the contents, and it trusts none of it (ENGINE.md, Saved state).
 * Blocks on the disk: without the front's lock, and one thread at a time for each struct.
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
    int read;          /* the file that was saved last; -1: there is none */
    int write;         /* the new file; -1: there are no files */
    int64_t max_bytes; /* most bytes that the engine's file may have */
    int64_t all_bytes; /* most bytes that all files together may have */
    char name[FM_KV_NAME_MAX];
    char new_name[FM_KV_NAME_MAX];
};

/* Sets `files` to: there are none. Never blocks. */
void fm_kv_files_none(struct fm_kv_files *files);

/*
 * Opens the files for an engine that is to load `model`, its path or name. If they are not wanted, or can't be opened,
 * there are no files. That is not an error; the log has the reason.
 */
void fm_kv_files_open(struct fm_kv_files *files, const struct fm_options *options, const char *engine,
                      const char *model);

/* The descriptors that the engine's process gets. Never blocks. */
struct fm_child_given fm_kv_files_given(const struct fm_kv_files *files);

/* Removes the file that the engine was given to read, because the engine can't use it. */
void fm_kv_files_drop(struct fm_kv_files *files);

/*
 * The engine has ended, after it reported that it saved `saved_bytes` bytes; 0: it reported nothing. If the new file
 * has exactly this size, it replaces the old one, and the least recently used files are removed if all of them are too
 * large. Otherwise the new file is removed. Afterwards there are no files. Harmless twice.
 */
void fm_kv_files_close(struct fm_kv_files *files, int64_t saved_bytes);

#endif
