/* What platform.c asks of each operating system. Nobody else includes this. */
#ifndef FM_BASE_PLATFORM_OS_H
#define FM_BASE_PLATFORM_OS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* pipe(2), both ends close-on-exec. 0, or -1 with errno. */
int fm_os_pipe(int fds[2]);

/* The absolute path of the running program. */
bool fm_os_program_path(char *path, size_t size);

/* Remembers who the parent is; before anything that takes time. */
void fm_os_note_parent(void);

/* Blocks until the parent that was noted is gone. */
void fm_os_wait_for_parent(void);

/* A descriptor that polls readable from that process's end on, close-on-exec; -1 where there is none. */
int fm_os_watch_process(pid_t pid);

/* In a child before exec: SIGKILL when the thread that forked ends. `parent` is the process that forked.
 * Async-signal-safe. */
void fm_os_die_with_parent(pid_t parent);

/* In a child before exec: every descriptor from 3 on becomes close-on-exec. False where the system has no call for it.
 * Async-signal-safe. */
bool fm_os_close_rest_on_exec(void);

/* Processor time of a thread that has not ended, in ms; -1 where it can't be had. */
int64_t fm_os_thread_ms(pthread_t thread);

#endif
