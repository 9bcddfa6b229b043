/*
 * What differs between operating systems: processes, descriptors, signals, the sandbox. Only helper/base/platform* may
 * have platform conditionals; all other code is the same on each system.
 */
#ifndef FM_BASE_PLATFORM_H
#define FM_BASE_PLATFORM_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The ending of a program's file name. */
#ifdef _WIN32
#define FM_PROGRAM_SUFFIX ".exe"
#else
#define FM_PROGRAM_SUFFIX ""
#endif

/* ---- descriptors; every one made here is close-on-exec ---- */

/* A pipe. Returns 0 or an errno value. */
FM_MUST_USE int fm_pipe(int *read_end, int *write_end);

/* Never blocks. */
bool fm_is_terminal(int fd);

/* Makes a descriptor non-blocking, unless it is a terminal, whose description is shared with the shell. */
void fm_set_nonblocking(int fd);

/*
 * What fm_wait looks at. With neither `input` nor `room`, it waits until the other side writes no more, even if bytes
 * are still to be read (on Linux; on other systems only for a pipe).
 */
struct fm_waited {
    int fd;     /* -1: none */
    bool input; /* wait for bytes or for the end of input */
    bool room;  /* wait until the descriptor takes bytes */
    bool ready; /* set by fm_wait: the event has come, or the other side is gone, which counts as ready too */
};

#define FM_WAITED_MAX 5

/*
 * Waits until something is ready, for at most `ms` (-1: without a limit). `count` is at most FM_WAITED_MAX. Sets each
 * `ready`, and returns how many are ready; 0: the time is up. A signal does not shorten it. Any thread.
 */
int fm_wait(struct fm_waited *waited, size_t count, int ms);

/* Closes a descriptor that was made here. Bytes that were written to it still arrive, so this may block. */
void fm_close(int fd);

/*
 * Reads up to `len` bytes; blocks until at least one has arrived. EINTR is retried. Returns the count, 0 at the end of
 * input, -1 on an error (errno).
 */
ssize_t fm_read(int fd, void *data, size_t len);

/*
 * Writes at least one byte, and returns how many; blocks if the descriptor does. EINTR is retried. -1 on an error
 * (errno): EAGAIN when a descriptor that does not block takes nothing now.
 */
ssize_t fm_write(int fd, const void *data, size_t len);

/*
 * Does the same as fm_write, but for code inside another program, which SIGPIPE could end: if the reader is gone, this
 * fails with EPIPE and sends no signal.
 */
ssize_t fm_write_quiet(int fd, const void *data, size_t len);

/* Writes all of `len` bytes, blocking. EINTR and short writes are retried. False on an error (errno). */
FM_MUST_USE bool fm_write_all(int fd, const void *data, size_t len);

/* Returns how many bytes written to a socket the other side has not read yet; 0 if `fd` is not a socket. */
size_t fm_socket_unread(int fd);

/* Writes to stderr if that does not block; false when not all of it was written. */
bool fm_stderr_try_write(const char *data, size_t len);

/*
 * Returns a descriptor for stdin that fm_wait can look at. Do not use stdin itself after that. -1 on an error (errno).
 */
int fm_claim_stdin(void);

/*
 * Returns a private descriptor for the original stdout, and makes descriptor 1 a copy of stderr, so that a library's
 * prints never reach the host. -1 on an error (errno).
 */
int fm_claim_stdout(void);

/* Opens /dev/null on each of the descriptors 0 to 2 that is closed, so that no later file gets such a number. */
void fm_fill_std_fds(void);

/* ---- this process ---- */

/* The system: "linux", "macos" or "windows". */
const char *fm_platform_name(void);

/* True when this process has the rights of root. */
bool fm_is_root(void);

/* This process's environment, NAME=VALUE each, NULL-terminated. Not owned by the caller. */
char **fm_process_environment(void);

/* The first number of macOS's version, such as 26; 0 on another system, or if it is not known. Any thread. */
int fm_macos_version(void);

/* Ends this process as that signal would (SIGSTOP stops it). Any thread, whatever signals it blocks. */
void fm_end_by_signal(int number);

/*
 * Prevents that other processes of the same user read this one's memory or environment, and that it leaves a core dump
 * (Linux; macOS only prevents the core dump; Windows does nothing). In a process that holds keys, call it before the
 * first key is read.
 */
void fm_process_hide(void);

/* How many of the machine's processors this process may use at the same time; both numbers are at least 1. */
struct fm_processors {
    int count; /* the processors that its affinity and the CPU quota of its cgroups (rounded up) allow */
    int cores; /* as `count`, but the hyper-threads of one core count once */
};

/* The bytes of memory that a process has in use (resident); -1: not known. Any thread; reads a small file. */
int64_t fm_process_memory(pid_t pid);

/*
 * The bytes of memory that only this process has in use, without mapped files and other shared memory; -1: not known,
 * as on all systems but Linux. Any thread; reads a small file.
 */
int64_t fm_private_memory(void);

/*
 * Removes from this process's resident memory the pages of the file at `path` that it has mapped for reading. A page
 * comes back when it is read; the system's cache keeps it as long as there is room. Only on Linux; elsewhere it does
 * nothing. Any thread; reads a small file.
 */
void fm_mapped_file_drop(const char *path);

#define FM_HUGE_RANGES_MAX 16

/* Mapped files with bytes that are still to be moved into huge pages. All zero: none. */
struct fm_huge_pages {
    size_t size; /* bytes of a huge page */
    size_t count;
    struct {
        uintptr_t from; /* both are multiples of `size` */
        uintptr_t to;
    } ranges[FM_HUGE_RANGES_MAX];
};

/*
 * Adds the parts of the file at `path` that this process has mapped for reading and that fill whole huge pages. Adds
 * nothing if the system has no huge pages to give; so far only Linux has. Reads small files.
 */
void fm_huge_pages_find(struct fm_huge_pages *pages, const char *path);

/*
 * Moves the next part that has been read so far from the file's pages to a huge page in this process's own memory. The
 * same bytes stay at the same addresses. Other threads may read them meanwhile, but nobody may unmap them. False:
 * nothing is left, or there is no memory for it. Blocks for about a millisecond, and for some microseconds for each
 * part that it skips because it was not read.
 */
bool fm_huge_pages_next(struct fm_huge_pages *pages);

/*
 * Returns the current numbers for the calling thread. Any thread; reads a small file for each processor, which never
 * blocks.
 */
void fm_processors(struct fm_processors *processors);

/*
 * Bytes of memory that this process may use: the machine's memory, or what its cgroups allow if that is less. Any
 * thread; reads small files, which never blocks.
 */
int64_t fm_memory_limit(void);

/* Gives freed memory back to the system if the allocator would keep it. */
void fm_memory_trim(void);

/* `len` random bytes from the operating system. */
void fm_random(void *data, size_t len);

/* The folder of the running program, without a trailing slash, NUL-terminated. False when unknown or longer than
 * `size`. */
FM_MUST_USE bool fm_program_dir(char *dir, size_t size);

/*
 * The folder of the library that defines `function`, if the program is linked with that library; otherwise the same as
 * fm_program_dir. On Windows all these libraries lie beside the program.
 */
FM_MUST_USE bool fm_library_dir(const char *function, char *dir, size_t size);

/* Threads made by fm_thread_start have this stack, in bytes. */
#define FM_THREAD_STACK (256u * 1024u)

/*
 * Asks the system's scheduler to run the calling thread soon after it is woken, even beside threads that compute. Threads
 * that it starts are ordinary ones. Never blocks.
 */
void fm_thread_be_prompt(void);

/* Starts a detached thread with all signals blocked. Returns 0 or an errno value. */
FM_MUST_USE int fm_thread_start(void *(*body)(void *), void *argument);

/*
 * Runs `body` to its end on a separate thread that has a stack of at least `stack` bytes and all signals blocked. It is
 * for code that recurses deeply: the caller's stack may be as small as the host's limits made it. Memory is taken as
 * the stack is used, and given back at the end. Blocks. Returns 0, or an errno value when `body` was not run.
 */
FM_MUST_USE int fm_run_on_stack(size_t stack, void (*body)(void *), void *argument);

/*
 * Runs code that can't be interrupted on a separate thread. If the owner gives the task up, that thread frees the
 * task's memory.
 */
struct fm_task;
struct fm_task_calls {
    void (*body)(void *argument);
    void (*ended)(void *argument); /* called on that thread, after `body`, unless the task was given up. May be NULL */
    void (*drop)(void *argument);  /* called on that thread, after `body`, if the task was given up: frees `argument` */
};

/*
 * Starts `calls->body` (`calls` is copied) on a thread that has a stack of at least `stack` bytes and all signals
 * blocked. Does not block. Returns 0, or an errno value if the task is not started: then `*task` is NULL, and the
 * caller still owns `argument`. Make the calls below from one thread at a time.
 */
FM_MUST_USE int fm_task_start(size_t stack, const struct fm_task_calls *calls, void *argument, struct fm_task **task);

/* Waits until `body` and `ended` have returned, or fm_now_ms() reaches `until_ms`. Returns whether they have. */
bool fm_task_wait(struct fm_task *task, int64_t until_ms);

/* The processor time that the thread has used so far, in ms; 0 after its end, -1 if the system does not say. Never
 * blocks. */
int64_t fm_task_cpu_ms(struct fm_task *task);

/*
 * Frees `task`; never blocks for long. True: the task is over, and the caller owns `argument` again. False: the task is
 * given up, and its thread owns `argument` until it calls `drop`.
 */
bool fm_task_end(struct fm_task *task);

/*
 * Runs `body` as a task (fm_task_start) to its end, but at most for `cpu_ms` of its processor time, and for `clock_ms`
 * by the clock: on a busy machine a task needs longer by the clock. Blocks. Returns 0 when `body` has run, ETIMEDOUT
 * when it was given up, or another errno value when it was not run. After ETIMEDOUT the task's thread owns `argument`;
 * after all other values the caller does.
 */
FM_MUST_USE int fm_run_on_stack_within(size_t stack, int64_t cpu_ms, int64_t clock_ms, void (*body)(void *),
                                       void (*drop)(void *), void *argument);

/*
 * Returns a descriptor that polls readable as soon as this process should end: SIGTERM, SIGINT or SIGHUP came, or the
 * parent died. From now on, whatever this process inherited, these signals are blocked and a thread takes them (an
 * ignored SIGHUP stays ignored). SIGCHLD is not blocked and has its default action. SIGPIPE and SIGXFSZ are ignored. A
 * second SIGTERM or SIGINT exits at once. Call once, before the first thread. -1 on an error (errno): this process
 * should end then.
 */
int fm_watch_for_end(void);

/* Makes that descriptor readable, so that this process ends. Any thread, never blocks. */
void fm_ask_for_end(void);

/* ---- the sandbox ---- */

/* What a program that talks to servers may do. */
struct fm_sandbox_client {
    const int *ports; /* TCP ports to connect to, besides port 53 for names */
    size_t port_count;
    const char *const *files; /* files that the program reads, besides those in system folders */
    size_t file_count;
};

/* What a program needs from the system. */
struct fm_sandbox_needs {
    bool network;
    bool gpus;
    const struct fm_sandbox_client *client; /* with `network`: only this part of the network. NULL: all of it */
    bool services; /* needs services of macOS, so there is no Seatbelt unless FM_ENGINE_SEATBELT is "on" */
};

/* Which parts are in force; all false and 0 on a system that has none of them. */
struct fm_sandbox {
    bool no_new_privs;
    int landlock; /* the number of Landlock's ABI; 0: not in force */
    bool seccomp;
    bool network_denied;  /* every kind of socket, not only TCP */
    bool devices_denied;  /* devices, and other processes in /proc; ENGINE.md has the exceptions */
    bool gpus_allowed;    /* GPUs are an exception to `devices_denied`, because they were needed */
    bool no_capabilities; /* root loses them too, but still owns its files */
};

/*
 * After this call, this process can't create, write, change or remove a file, start a program or a process, reach the
 * network (unless `needs->network`; a client can't listen), touch other processes, open devices (GPUs, where
 * `needs->gpus`, are an exception if Landlock can tell them from other files), or gain privileges. It may read files (a
 * client only some), and write to descriptors that are open. Each part works without the others; `in_force` says which
 * parts work. The sandbox can't be undone, and threads inherit it, so call this once, before the first thread. Leaves a
 * few descriptors of /proc open. The rules: ENGINE.md, Sandbox.
 */
void fm_sandbox_enter(const struct fm_sandbox_needs *needs, struct fm_sandbox *in_force);

/* ---- child processes ---- */

struct fm_child {
    pid_t pid;
    int to_child;   /* writes to the child's stdin */
    int from_child; /* reads the child's stdout */
    int errors;     /* reads the child's stderr */
    int ended;      /* polls readable when the child has ended; -1: not on this system, ask fm_child_has_ended */
};

#define FM_CHILD_GIVEN     3 /* the number that the first of these descriptors has in the child */
#define FM_CHILD_GIVEN_MAX 2

/* Descriptors for a child, besides its pipes. The caller owns them, and may close them after the start. */
struct fm_child_given {
    int fds[FM_CHILD_GIVEN_MAX]; /* in the child: FM_CHILD_GIVEN and the numbers after it; -1: none with that number */
    size_t count;
    int64_t file_bytes; /* the child's files can't grow beyond this (its soft RLIMIT_FSIZE); 0: our own limit */
};

/*
 * Starts `path` with no arguments, pipes as stdin, stdout and stderr, default signals, and `env` (NULL-terminated) as
 * its environment. It inherits what `given` says (NULL: nothing; Windows gives nothing), no other descriptor and no
 * capability (not root's either, so it can't read or run files that only a capability gives access to), and leaves no
 * core dump. It leads a session and a process group, so it has no controlling terminal and a terminal's signals do not
 * reach it. On Linux the child is killed when the calling thread ends, so call it from the thread that reaps it. The
 * caller closes the descriptors. Returns 0 or an errno value, also that of a failed exec.
 */
FM_MUST_USE int fm_child_start(struct fm_child *child, const char *path, char *const env[],
                               const struct fm_child_given *given);

/* Does the same as fm_child_start, with arguments: `args`, NULL-terminated, without the program's name; NULL: none. */
FM_MUST_USE int fm_child_start_args(struct fm_child *child, const char *path, char *const args[], char *const env[],
                                    const struct fm_child_given *given);

/* True when the child has ended and waits for fm_child_reap. Never blocks. */
bool fm_child_has_ended(pid_t pid);

/*
 * Sends SIGKILL to the child `pid` and to its process group: to all processes that it started and that did not leave
 * the group. If the child is dead already, the others of the group still get the signal. Do not call it after
 * fm_child_reap, because the number may belong to another process by then.
 */
void fm_child_kill(pid_t pid);

/* The exit status of a program that the system can't load, on Linux and Windows: a library is missing or too old. */
#define FM_CHILD_NOT_LOADED 127

/* Waits for the end of the child. Returns its exit status, or -N when signal N ended it. */
int fm_child_reap(pid_t pid);

#endif
