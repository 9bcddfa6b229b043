/* Files that others name. */
#ifndef FM_BASE_FILE_H
#define FM_BASE_FILE_H

#include "base/error.h"

/*
 * Looks whether `path` can be read, is a regular file, and begins with the bytes of `magic`, a text that names the
 * format too, such as "GGUF". Never waits, as opening a FIFO would. Failures are FM_UNAVAILABLE and name the file.
 */
FM_MUST_USE enum fm_code fm_file_check_magic(const char *path, const char *magic, struct fm_error *error);

#endif
