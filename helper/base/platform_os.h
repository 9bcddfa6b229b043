/* What platform.c asks of each operating system. Only the platform*.c files, file.c and tests include this. */
#ifndef FM_BASE_PLATFORM_OS_H
#define FM_BASE_PLATFORM_OS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct fm_sandbox;
struct fm_sandbox_needs;
struct stat;

/*
 * The user's cache folder: the environment variable that names it (NULL: none), and the folder below HOME that is used
 * otherwise.
 */
extern const char *const fm_os_cache_variable;
extern const char *const fm_os_cache_name;

/* When the file was last written, in ms since 1970. */
int64_t fm_os_changed_ms(const struct stat *info);

/* Blocks until the file's bytes, and its length, are on the disk. Returns 0, or -1 with errno. */
int fm_os_sync(int fd);

/* pipe(2), both ends close-on-exec. 0, or -1 with errno. */
int fm_os_pipe(int fds[2]);

/*
 * Opens `path` for reading. With `create`, opens it for writing too, and creates it with mode 0600 unless it exists.
 * Sets `*regular` if it is a regular file. Never waits, whatever is at that path. Returns a descriptor for fm_read and
 * close, close-on-exec; -1 with errno.
 */
int fm_os_open(const char *path, bool create, bool *regular);

/* Gives the file the mode 0600 without opening it. Returns 0 or an errno value. */
int fm_os_make_private(const char *path);

/* The absolute path of the running program. */
bool fm_os_program_path(char *path, size_t size);

/* Remembers who the parent is. Call it first, because the parent may end at any time. */
void fm_os_note_parent(void);

/* Blocks until the parent is gone that was remembered. */
void fm_os_wait_for_parent(void);

/*
 * Returns a descriptor, close-on-exec, that polls readable once the process `pid` has ended; -1 if the system has no
 * such descriptor.
 */
int fm_os_watch_process(pid_t pid);

/*
 * In a child before exec: asks for SIGKILL when the thread that forked ends. `parent` is the process that forked.
 * Async-signal-safe.
 */
void fm_os_die_with_parent(pid_t parent);

/*
 * In a child before exec: makes every descriptor from 3 on close-on-exec. False: the system has no call for that.
 * Async-signal-safe.
 */
bool fm_os_close_rest_on_exec(void);

/*
 * The Landlock part of fm_sandbox_enter; only Linux has it. Returns the number of Landlock's ABI, 0 when it is not in
 * force. `may_write`: files may be changed. Sets `devices_denied` and `gpus_allowed` of `in_force`. May open files.
 */
int fm_os_landlock_enter(const struct fm_sandbox_needs *needs, bool may_write, struct fm_sandbox *in_force);

/*
 * Linux: how many processors the CPU quotas of a process's cgroups allow, rounded up, at least 1; 0: there is no quota.
 * `root` is where the cgroups are mounted, `membership` the text of the process's /proc/PID/cgroup. Knows cgroups of
 * version 1 and 2. Never blocks.
 */
int fm_os_quota(const char *root, const char *membership);

/*
 * Linux: how much memory the limits of a process's cgroups allow, in bytes. The parameters are those of fm_os_quota.
 * Never blocks.
 */
int64_t fm_os_memory_limit(const char *root, const char *membership);

/*
 * Linux: how many cores the processors with `allowed` set (of `count`) belong to. `topology` is the folder of sysfs
 * with one folder for each processor; a processor without a file there counts as a core. Never blocks.
 */
int fm_os_cores(const char *topology, const bool *allowed, size_t count);

/*
 * Calls pthread_create with a stack of that many bytes, detached or not (PTHREAD_CREATE_...), and all signals blocked.
 */
int fm_os_thread_start(pthread_t *thread, int detached, size_t stack, void *(*body)(void *), void *argument);

/* Processor time of a thread that has not ended, in ms; -1 if the system does not say. */
int64_t fm_os_thread_ms(pthread_t thread);

#endif
