/* Files that others name. */
#ifndef FM_BASE_FILE_H
#define FM_BASE_FILE_H

#include "base/buf.h"
#include "base/error.h"

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

/* Makes the file `path`, empty, with mode 0600, unless there is one. UNAVAILABLE, with the path. Never waits. */
FM_MUST_USE enum fm_code fm_file_create(const char *path, struct fm_error *error);

/* Gives the file `path` the mode 0600. Opens nothing: a close would drop the locks that a library has on it. */
FM_MUST_USE enum fm_code fm_file_make_private(const char *path, struct fm_error *error);

#endif
