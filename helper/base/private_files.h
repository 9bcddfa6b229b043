/*
 * Our own files in a folder that no other user can change. So a file in it has what we wrote, or was damaged by
 * accident. A file is written under a temporary name and gets its real name when it is complete. Descriptors are
 * close-on-exec; the caller closes them with fm_close. All calls may block on the disk; any thread. On Windows all of
 * these calls fail.
 */
#ifndef FM_BASE_PRIVATE_FILES_H
#define FM_BASE_PRIVATE_FILES_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The user's folder for files that can be made again: $XDG_CACHE_HOME or ~/.cache, on macOS ~/Library/Caches. Absolute,
 * without a slash at its end. False when it is not known, or longer than `size`.
 */
FM_MUST_USE bool fm_cache_folder(char *path, size_t size);

/*
 * Opens the folder `path`. If it does not exist, makes it and its parents with mode 0700. Fails with EPERM if it
 * belongs to another user, or if others can write to it. Returns a descriptor; -1 with errno.
 */
int fm_private_folder_open(const char *path);

/* A file in the folder. The files come in no order. */
struct fm_private_entry {
    const char *name;
    int64_t bytes;
    int64_t used_ms; /* since 1970: when it was last written or opened */
};

/*
 * Calls `each` for every regular file that is ours. A file may be removed during that. False when the folder can't be
 * read.
 */
bool fm_private_folder_list(int folder, void (*each)(void *context, const struct fm_private_entry *entry),
                            void *context);

/*
 * Opens a file for reading, and sets its time of use to now. EPERM: it is not ours, others can read or write it, or it
 * is no regular file. Returns a descriptor; -1 with errno.
 */
int fm_private_file_open(int folder, const char *name);

/*
 * Makes a new file for writing, with mode 0600. It stays locked as long as the descriptor is open here or in a child.
 * Returns a descriptor; -1 with errno (EEXIST: there is such a file).
 */
int fm_private_file_create(int folder, const char *name);

/*
 * Opens a file of ours to read it and to write after its end. `make`: creates the file, with mode 0600; EEXIST: it
 * exists already. Returns a descriptor; -1 with errno (EPERM as in fm_private_file_open).
 */
int fm_private_file_append(int folder, const char *name, bool make);

/*
 * Puts on the disk what was written to the file; for a folder, the names of its files. False with errno: what was
 * written since the last successful call may be lost. Blocks until the disk has it.
 */
FM_MUST_USE bool fm_private_file_sync(int fd);
FM_MUST_USE bool fm_private_folder_sync(int folder);

/* Cuts the file to its first `size` bytes. False with errno. */
FM_MUST_USE bool fm_private_file_cut(int fd, int64_t size);

/* True if the file was left behind: the process that made it was killed. False also if the system can't tell. */
bool fm_private_file_is_left(int folder, const char *name);

/* True when `fd` is the file that has this name now. */
bool fm_private_file_is(int folder, const char *name, int fd);

/* Gives the file another name, and replaces a file that has that name already. False with errno. */
FM_MUST_USE bool fm_private_file_rename(int folder, const char *from, const char *to);

/* Removes a file, if there is one. */
void fm_private_file_remove(int folder, const char *name);

/* The size of a regular file in bytes; -1 for everything else. */
int64_t fm_private_file_size(int fd);

/*
 * Reads `len` bytes from `offset` on. False when there are fewer, or on an error. Does not change the position of
 * fm_read.
 */
FM_MUST_USE bool fm_private_file_read(int fd, void *data, size_t len, int64_t offset);

#endif
