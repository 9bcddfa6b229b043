/* The functions of posix.h. */
#include "base/windows/posix.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <windows.h>

#define SECOND 1000000000 /* in ns */

void *memmem(const void *text, size_t len, const void *wanted, size_t wanted_len) {
    const char *at = text;
    const char *end = at + len;
    if (wanted_len == 0) {
        return (void *)at;
    }
    while ((size_t)(end - at) >= wanted_len &&
           (at = memchr(at, *(const char *)wanted, (size_t)(end - at) - wanted_len + 1))) {
        if (memcmp(at, wanted, wanted_len) == 0) {
            return (void *)at;
        }
        at++;
    }
    return NULL;
}

char *strndup(const char *text, size_t len) {
    size_t used = strnlen(text, len);
    char *copy = malloc(used + 1);
    if (copy) {
        memcpy(copy, text, used);
        copy[used] = '\0';
    }
    return copy;
}

int setenv(const char *name, const char *value, int overwrite) {
    (void)overwrite;
    return _putenv_s(name, value) == 0 ? 0 : -1;
}

/* A FILETIME as a number, in units of 100 ns. */
static int64_t count_of(const FILETIME *time) {
    return (int64_t)((uint64_t)time->dwHighDateTime << 32 | time->dwLowDateTime);
}

/* The processor time of all threads of this process. */
static int read_processor_time(struct timespec *now) {
    FILETIME created;
    FILETIME ended;
    FILETIME kernel;
    FILETIME user;
    if (!GetProcessTimes(GetCurrentProcess(), &created, &ended, &kernel, &user)) {
        errno = EINVAL;
        return -1;
    }
    int64_t sum = count_of(&kernel) + count_of(&user);
    now->tv_sec = sum / (SECOND / 100);
    now->tv_nsec = (long)(sum % (SECOND / 100) * 100);
    return 0;
}

void _exit(int status) {
    TerminateProcess(GetCurrentProcess(), (UINT)status);
    abort(); /* it does not return */
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    LARGE_INTEGER ticks;
    LARGE_INTEGER rate; /* ticks in a second; neither call fails */
    if (clock == CLOCK_PROCESS_CPUTIME_ID) {
        return read_processor_time(now);
    }
    if (clock != CLOCK_MONOTONIC) {
        errno = EINVAL;
        return -1;
    }
    QueryPerformanceFrequency(&rate);
    QueryPerformanceCounter(&ticks);
    now->tv_sec = ticks.QuadPart / rate.QuadPart;
    now->tv_nsec = (long)(ticks.QuadPart % rate.QuadPart * SECOND / rate.QuadPart);
    return 0;
}

/* Sleeps for whole milliseconds, rounded up, and is never interrupted. */
int nanosleep(const struct timespec *time, struct timespec *left) {
    int64_t ms = (int64_t)time->tv_sec * 1000 + (time->tv_nsec + 999999) / 1000000;
    (void)left;
    for (; ms > 0; ms -= INT32_MAX) {
        Sleep((DWORD)(ms < INT32_MAX ? ms : INT32_MAX));
    }
    return 0;
}
