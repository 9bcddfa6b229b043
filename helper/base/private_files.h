/*
 * Files of ours in a folder that nobody else can change, so that what is found there is what we wrote, or damaged by
 * accident. A file is written under its own name and gets its real name when it is whole. Descriptors are
 * close-on-exec and the caller's to close with fm_close. All may block on the disk; any thread. Windows has none of it.
 */
#ifndef FM_BASE_PRIVATE_FILES_H
#define FM_BASE_PRIVATE_FILES_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The user's folder for what can be made again: $XDG_CACHE_HOME or ~/.cache, on macOS ~/Library/Caches. Absolute,
 * without a slash at its end. False when it is not known, or longer than `size`.
 */
FM_MUST_USE bool fm_cache_folder(char *path, size_t size);

/*
 * Opens the folder `path`, which is made with mode 0700 (as are those above it) unless it exists. One that belongs to
 * somebody else, or that others can write to, is EPERM. Returns a descriptor; -1 with errno.
 */
int fm_private_folder_open(const char *path);

/* What is in the folder, in no order. */
struct fm_private_entry {
    const char *name;
    int64_t bytes;
    int64_t used_ms; /* since 1970: when it was last written or opened */
};

/* Calls `each` for every regular file of ours; a name may be removed meanwhile. False when the folder can't be read. */
bool fm_private_folder_list(int folder, void (*each)(void *context, const struct fm_private_entry *entry),
                            void *context);

/*
 * Opens a file for reading, and notes that it is used. EPERM: it is not ours, others can read or write it, or it is no
 * regular file. Returns a descriptor; -1 with errno.
 */
int fm_private_file_open(int folder, const char *name);

/*
 * Makes a new file for writing, with mode 0600, and locks it as long as the descriptor is open here or in a child.
 * Returns a descriptor; -1 with errno (EEXIST: there is one).
 */
int fm_private_file_create(int folder, const char *name);

/*
 * Opens a file of ours to read it and to write after its end. `make`: it is a new one, with mode 0600; EEXIST: there
 * is one. Returns a descriptor; -1 with errno (EPERM as above).
 */
int fm_private_file_append(int folder, const char *name, bool make);

/*
 * What was written to the file is on the disk; of a folder: the names of its files are. False with errno: nothing is
 * known of what was written since the last time. Blocks until the disk has it.
 */
FM_MUST_USE bool fm_private_file_sync(int fd);
FM_MUST_USE bool fm_private_folder_sync(int folder);

/* The file has its first `size` bytes alone. False with errno. */
FM_MUST_USE bool fm_private_file_cut(int fd, int64_t size);

/* No process has the file open that made it: who did was killed. False where the system can't tell. */
bool fm_private_file_is_left(int folder, const char *name);

/* True when `fd` is the file that has this name now. */
bool fm_private_file_is(int folder, const char *name, int fd);

/* The file gets another name; one that has it already is gone. False with errno. */
FM_MUST_USE bool fm_private_file_rename(int folder, const char *from, const char *to);

/* Removes a file, if there is one. */
void fm_private_file_remove(int folder, const char *name);

/* Bytes of a regular file; -1 for everything else. */
int64_t fm_private_file_size(int fd);

/* Reads `len` bytes from `offset` on. False when there are less, or on an error. The place of fm_read is not changed.
 */
FM_MUST_USE bool fm_private_file_read(int fd, void *data, size_t len, int64_t offset);

#endif
