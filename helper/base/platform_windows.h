/* What the files platform_windows*.c share. Only they and tests/windows include this. */
#ifndef FM_BASE_PLATFORM_WINDOWS_H
#define FM_BASE_PLATFORM_WINDOWS_H

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <stdbool.h>
#include <stddef.h>

/* Returns the errno value for an error of GetLastError(). */
int fm_windows_errno(DWORD error);

/*
 * Convert text between UTF-8 and UTF-16; the caller frees the result. NULL: out of memory. Invalid parts become U+FFFD.
 */
wchar_t *fm_windows_wide(const char *text);
char *fm_windows_utf8(const wchar_t *text);

/*
 * Makes a descriptor for fm_read and fm_wait: a thread reads `handle` ahead into the descriptor's buffer, until the
 * buffer is full, and closes `handle` at the end. -1 with errno: the caller still owns `handle`.
 */
int fm_windows_reader(HANDLE handle);

/*
 * Makes a descriptor for fm_write, which owns `handle` from now on. The descriptor blocks if `handle` does. If it is a
 * pipe, fm_set_nonblocking gives it a buffer and a thread. -1 with errno: the caller still owns `handle`.
 */
int fm_windows_writer(HANDLE handle);

/*
 * Lets a caller wait until all that was written to a descriptor of fm_windows_reader has come, without owning that
 * descriptor. NULL when out of memory.
 */
struct fm_windows_tail;
struct fm_windows_tail *fm_windows_tail_new(int fd);

/* Blocks, for `ms` at most (-1: without a limit), until all has come, the buffer is full, or the descriptor is closed.
 */
void fm_windows_tail_wait(struct fm_windows_tail *tail, int ms, bool past_full);

/* Any thread. */
void fm_windows_tail_free(struct fm_windows_tail *tail);

#endif
