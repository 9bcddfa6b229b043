/*
 * What differs between operating systems: processes, descriptors, signals. The only headers and sources with platform
 * conditionals are helper/base/platform*.
 */
#ifndef FM_BASE_PLATFORM_H
#define FM_BASE_PLATFORM_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- descriptors; every one made here is close-on-exec ---- */

/* A pipe. Returns 0 or an errno value. */
FM_MUST_USE int fm_pipe(int *read_end, int *write_end);

/* Makes a descriptor non-blocking. */
void fm_set_nonblocking(int fd);

/*
 * Reads what is there, up to `len` bytes; blocks until there is something. EINTR is retried. Returns the count, 0 at
 * the end of input, -1 on an error (errno).
 */
ssize_t fm_read(int fd, void *data, size_t len);

/* Writes all of `len` bytes, blocking. EINTR and short writes are retried. False on an error (errno). */
FM_MUST_USE bool fm_write_all(int fd, const void *data, size_t len);

/* How many bytes written to a socket the other side has not taken yet; 0 for what is no socket. */
size_t fm_socket_unread(int fd);

/* Writes to stderr if that does not block; false when not all of it went. */
bool fm_stderr_try_write(const char *data, size_t len);

/*
 * Moves stdout away: returns a private descriptor for what was stdout, and lets descriptor 1 lead to stderr, so that a
 * library's prints never reach the wire. -1 on an error (errno).
 */
int fm_claim_stdout(void);

/* Opens /dev/null on each of descriptors 0 to 2 that is closed, so that no later file lands on one. */
void fm_fill_std_fds(void);

/* ---- this process ---- */

/* What of the machine's processors this process may use at the same time; each is at least 1. */
struct fm_processors {
    int count; /* those of its affinity, no more than the CPU quota of its cgroups pays for, rounded up */
    int cores; /* the same with the hyper-threads of a core counted once */
};

/* As it is now, for the calling thread. Any thread; reads a small file for each processor, which never blocks. */
void fm_processors(struct fm_processors *processors);

/* Gives memory that was freed back to the system, where the allocator would keep it. */
void fm_memory_trim(void);

/* `len` random bytes from the operating system. */
void fm_random(void *data, size_t len);

/* The folder of the running program, without a trailing slash, NUL-terminated. False when unknown or longer than
 * `size`. */
FM_MUST_USE bool fm_program_dir(char *dir, size_t size);

/* Threads made by fm_thread_start have this stack, in bytes. */
#define FM_THREAD_STACK (256u * 1024u)

/* Starts a detached thread with all signals blocked. Returns 0 or an errno value. */
FM_MUST_USE int fm_thread_start(void *(*body)(void *), void *argument);

/*
 * Runs `body` to its end on a thread of its own that has a stack of at least `stack` bytes and all signals blocked, for
 * what recurses deeply: the caller's stack is as small as the host's limits made it. Memory is taken as the stack is
 * used, and given back at the end. Returns 0 or an errno value; then `body` was not run.
 */
FM_MUST_USE int fm_run_on_stack(size_t stack, void (*body)(void *), void *argument);

/*
 * The same for what may take too long and can't be interrupted. Returns 0 when `body` has run, or ETIMEDOUT when it had
 * not after `ms` of processor time, which a busy machine gives it later, or four times as long in all: then `argument`
 * belongs to the thread, which calls `drop` on it after `body`, sooner or later. Any other errno value: `body` was not
 * run, and `argument` is still the caller's.
 */
FM_MUST_USE int fm_run_on_stack_within(size_t stack, int64_t ms, void (*body)(void *), void (*drop)(void *),
                                       void *argument);

/*
 * The end of this process that others ask for: a descriptor that polls readable when SIGTERM or SIGINT came, or when
 * the parent died. SIGTERM, SIGINT and SIGCHLD are unblocked, whatever this process inherited, SIGCHLD is as the system
 * has it, and SIGPIPE is ignored. A second SIGTERM or SIGINT exits at once. Call once, before the first thread. -1 on
 * an error (errno).
 */
int fm_watch_for_end(void);

/* Makes that descriptor readable from inside. Any thread, never blocks. */
void fm_ask_for_end(void);

/* ---- the sandbox ---- */

/* What is in force; all false and 0 where the system has none of it. */
struct fm_sandbox {
    bool no_new_privs;
    int landlock; /* its ABI's number; 0: none */
    bool seccomp;
    bool network_denied;  /* every kind of socket, not TCP alone */
    bool devices_denied;  /* nor of other processes in /proc; ENGINE.md has the exceptions */
    bool no_capabilities; /* root has none of its powers, but owns its files */
};

/*
 * From here on this process can't write, make, change or remove a file, start a program or a process, reach the
 * network (but with `needs_network`), touch other processes, open devices, or gain privileges. It may read files, and
 * write to what is open. Each part works without the others; `in_force` says which do. Can't be undone, and threads
 * inherit it, so call it once, before the first thread. Leaves a few descriptors of /proc open. The rules: ENGINE.md,
 * Sandbox.
 */
void fm_sandbox_enter(bool needs_network, struct fm_sandbox *in_force);

/* ---- child processes ---- */

struct fm_child {
    pid_t pid;
    int to_child;   /* its stdin */
    int from_child; /* its stdout */
    int errors;     /* its stderr */
    int ended;      /* polls readable when it has ended; -1 where the system has none: ask fm_child_has_ended */
};

/*
 * Starts `path` with no arguments, pipes as stdin, stdout and stderr, default signals, and `env` (NULL-terminated) as
 * its environment. It inherits no other descriptor and no capability (root's included, so it may not read or run what
 * they alone would let it), and leaves no core dump. It leads a session and a process group of
 * its own, so no terminal is its controlling one and a terminal's signals do not reach it. On Linux the child is
 * killed when the calling thread ends, so call it from the thread that reaps it. The descriptors are the caller's to
 * close. Returns 0 or an errno value (what exec said included).
 */
FM_MUST_USE int fm_child_start(struct fm_child *child, const char *path, char *const env[]);

/* True when it has ended and waits for fm_child_reap. Never blocks. */
bool fm_child_has_ended(pid_t pid);

/*
 * SIGKILL to it and to its process group: what it started and what did not leave that group. Harmless when it is dead,
 * and reaches the others then; not after fm_child_reap.
 */
void fm_child_kill(pid_t pid);

/* Waits for its end. Returns its exit status, or -N when signal N ended it. */
int fm_child_reap(pid_t pid);

#endif
