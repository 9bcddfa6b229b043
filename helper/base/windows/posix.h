/*
 * The functions of POSIX and GNU that our code uses and Windows's C library lacks. The compiler includes it before each
 * of our files (CMakeLists.txt). Larger differences are in platform.h.
 */
#ifndef FM_BASE_WINDOWS_POSIX_H
#define FM_BASE_WINDOWS_POSIX_H

#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h> /* decides which printf is declared */
#include <time.h>

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

/*
 * As in unistd.h elsewhere: it runs no exit handlers. Windows's own _exit runs the exit code of all libraries when
 * their threads are gone already.
 */
#define _exit fm_windows_exit
_Noreturn void _exit(int status);

/* Uses our own names, because a library that is linked into the llama engine has the usual ones. */
#define clock_gettime fm_windows_clock_gettime
#define nanosleep     fm_windows_nanosleep

/*
 * As in time.h elsewhere. clock_gettime has only the monotonic clock and the clock of the process's CPU time. nanosleep
 * sleeps whole milliseconds and is never interrupted.
 */
int clock_gettime(clockid_t clock, struct timespec *now);
int nanosleep(const struct timespec *time, struct timespec *left);

#endif
