/* Files whose paths come from options or from hosts. Nothing here waits for another process. */
#ifndef FM_BASE_FILE_H
#define FM_BASE_FILE_H

#include "base/buf.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Fills `error` for `what` (such as "file") that could not be opened; `failure` is the errno value. Returns the code:
 * FM_UNAVAILABLE, or FM_OVERLOADED when no descriptor is left, because that is not the file's fault.
 */
enum fm_code fm_file_fail_open(const char *what, int failure, const char *path, struct fm_error *error);

/*
 * Checks that `path` can be read, is a regular file, and begins with the bytes of `magic`, such as "GGUF", which also
 * names the format in the error. Never waits, although opening a FIFO would. Fails with FM_UNAVAILABLE, or with the
 * error of fm_file_fail_open; the error names the file.
 */
FM_MUST_USE enum fm_code fm_file_check_magic(const char *path, const char *magic, struct fm_error *error);

/*
 * Appends the contents of `path`, a regular file, to `text`; a file that is longer than `text` can hold is refused.
 * Never waits for another process. Fails with the errors of fm_file_check_magic.
 */
FM_MUST_USE enum fm_code fm_file_read(const char *path, struct fm_buf *text, struct fm_error *error);

/* Appends the first `limit` bytes of the file, or all if it has fewer. Otherwise the same as fm_file_read. */
FM_MUST_USE enum fm_code fm_file_read_start(const char *path, struct fm_buf *text, size_t limit,
                                            struct fm_error *error);

/*
 * Creates the file `path`, empty, with mode 0600, unless it exists. Fails with FM_UNAVAILABLE and the path in the
 * error, also if the path is no regular file but a device, for example. Never waits.
 */
FM_MUST_USE enum fm_code fm_file_create(const char *path, struct fm_error *error);

/* Identifies the file that a path names. All 0: there is no file, or it can't be examined. */
struct fm_file_id {
    uint64_t device;
    uint64_t inode;
};

struct fm_file_info {
    struct fm_file_id id;
    bool regular;    /* not a folder, a device or anything else */
    int64_t changed; /* time of the last change, in seconds since 1970 */
    int64_t size;    /* in bytes */
};

/*
 * Fills `info` with what is at `path` and returns 0, or an errno value, with `info` all 0. Does not open the file, for
 * the reason given at fm_file_make_private. May block on the disk.
 */
int fm_file_examine(const char *path, struct fm_file_info *info);

/* Returns only the `id` that fm_file_examine reports. */
struct fm_file_id fm_file_identify(const char *path);

/* Checks whether this process may run the program `path`. Returns 0 or an errno value. */
FM_MUST_USE int fm_file_check_program(const char *path);

/*
 * Checks whether the file can be opened for reading. Returns 0 or an errno value. Never waits, not even for a FIFO
 * without a writer.
 */
FM_MUST_USE int fm_file_check_readable(const char *path);

/* Removes a file if it exists and may be removed. */
void fm_file_remove(const char *path);

/*
 * Returns the absolute path of an existing file; the caller frees the path. NULL with errno: there is no file, or no
 * memory.
 */
char *fm_file_resolve(const char *path);

/*
 * Writes the absolute form of `path` into `absolute`, an array of `size` bytes; there need not be such a file. Returns
 * false if there is no room for it, or if the current folder is gone.
 */
FM_MUST_USE bool fm_file_absolute(const char *path, char *absolute, size_t size);

/* The last folder separator in `path`; NULL: there is none. Pure. */
const char *fm_file_last_separator(const char *path);

/*
 * Opens a folder to list its names, in no order, without "." and "..". NULL with errno. This function and
 * fm_folder_next may block on the disk.
 */
struct fm_folder *fm_folder_open(const char *path);

/*
 * Returns the next name, which is valid until the next call. NULL with errno 0: there are no more names. NULL with
 * another errno: a read error.
 */
const char *fm_folder_next(struct fm_folder *folder);

/* Never blocks. */
void fm_folder_close(struct fm_folder *folder);

/* Pure. */
bool fm_file_id_equal(const struct fm_file_id *one, const struct fm_file_id *other);

/*
 * Gives the file `path` the mode 0600; on Windows, where a file has the rights of its folder, it does nothing. Does not
 * open the file, because closing it would drop the locks that a library has on it.
 */
FM_MUST_USE enum fm_code fm_file_make_private(const char *path, struct fm_error *error);

#endif
