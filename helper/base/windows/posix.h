/*
 * What our code uses of POSIX and GNU, and Windows's C library has not. The compiler puts it before each file of ours
 * (CMakeLists.txt). clock_gettime and nanosleep, which <time.h> declares, are there
 * too, so that no library is needed for them. What is more than that is in platform.h.
 */
#ifndef FM_BASE_WINDOWS_POSIX_H
#define FM_BASE_WINDOWS_POSIX_H

#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h> /* says what its printf is */

/* Bytes of a path in UTF-8. Windows's own number counts characters. */
#undef PATH_MAX
#define PATH_MAX 4096

#define SIGKILL 9
#define SIGBUS  10
#define SIGSTOP 17

/* As in string.h elsewhere. */
void *memmem(const void *text, size_t len, const void *wanted, size_t wanted_len);
char *strndup(const char *text, size_t len);

/* As in stdlib.h elsewhere; `overwrite` is not 0. */
int setenv(const char *name, const char *value, int overwrite);

#endif
