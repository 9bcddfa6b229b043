/* The parts of platform.h that POSIX covers on Linux and macOS; platform_linux.c and platform_macos.c have the rest. */
#include "base/clock.h"
#include "base/file.h"
#include "base/platform.h"
#include "base/platform_confine.h"
#include "base/platform_os.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * If the system has no call that closes all descriptors, only those below this number are closed: the limit itself can
 * be in the billions.
 */
#define FD_MAX ((rlim_t)1 << 20)

#define PRIVATE_MODE (S_IRUSR | S_IWUSR)

extern char **environ;

static int end_pipe_write = -1;

int fm_pipe(int *read_end, int *write_end) {
    int fds[2];
    if (fm_os_pipe(fds) != 0) {
        return errno;
    }
    *read_end = fds[0];
    *write_end = fds[1];
    return 0;
}

void fm_close(int fd) {
    close(fd);
}

bool fm_is_terminal(int fd) {
    return isatty(fd);
}

void fm_set_nonblocking(int fd) {
    int flags = isatty(fd) ? -1 : fcntl(fd, F_GETFL);
    if (flags >= 0) {
        fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    }
}

int fm_wait(struct fm_waited *waited, size_t count, int ms) {
    struct pollfd fds[FM_WAITED_MAX];
    for (size_t i = 0; i < count; i++) {
        short events = (short)((waited[i].input ? POLLIN : 0) | (waited[i].room ? POLLOUT : 0));
#ifdef POLLRDHUP /* without POLLRDHUP, the end of a socket is noticed only when it is read */
        events = events ? events : POLLRDHUP;
#endif
        fds[i] = (struct pollfd){.fd = waited[i].fd, .events = events};
    }
    int64_t end = ms > 0 ? fm_now_ms() + ms : 0;
    int ready;
    while ((ready = poll(fds, (nfds_t)count, ms)) < 0 && errno == EINTR) {
        int64_t left = end - fm_now_ms();
        ms = ms < 0 ? ms : left > 0 ? (int)left : 0;
    }
    for (size_t i = 0; i < count; i++) {
        waited[i].ready = ready > 0 && fds[i].revents;
    }
    return ready > 0 ? ready : 0;
}

/* Waits until a non-blocking descriptor is ready: a host may give us such a descriptor (Node does). */
static bool wait_ready(int fd, short events) {
    struct pollfd poll_fd = {.fd = fd, .events = events};
    return poll(&poll_fd, 1, -1) >= 0 || errno == EINTR;
}

ssize_t fm_read(int fd, void *data, size_t len) {
    for (;;) {
        ssize_t got = read(fd, data, len);
        if (got >= 0) {
            return got;
        }
        bool again = errno == EAGAIN || errno == EWOULDBLOCK;
        if (errno != EINTR && !(again && wait_ready(fd, POLLIN))) {
            return -1;
        }
    }
}

ssize_t fm_write(int fd, const void *data, size_t len) {
    ssize_t sent;
    do {
        sent = write(fd, data, len);
    } while (sent < 0 && errno == EINTR);
    return sent;
}

/* SIGPIPE goes to the thread that wrote. A SIGPIPE that was pending before stays pending. */
ssize_t fm_write_quiet(int fd, const void *data, size_t len) {
    sigset_t pipe_signal;
    sigset_t before;
    sigset_t pending;
    int number;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    sigpending(&pending);
    bool was_pending = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
    ssize_t sent = fm_write(fd, data, len);
    int error = errno;
    sigpending(&pending);
    if (sent < 0 && error == EPIPE && !was_pending && sigismember(&pending, SIGPIPE) == 1) {
        sigwait(&pipe_signal, &number);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return sent;
}

bool fm_write_all(int fd, const void *data, size_t len) {
    const char *at = data;
    while (len) {
        ssize_t sent = fm_write(fd, at, len);
        if (sent >= 0) {
            at += sent;
            len -= (size_t)sent;
        } else if (errno != EAGAIN || !wait_ready(fd, POLLOUT)) {
            return false;
        }
    }
    return true;
}

bool fm_stderr_try_write(const char *data, size_t len) {
    struct pollfd poll_fd = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (poll(&poll_fd, 1, 0) != 1 || !(poll_fd.revents & POLLOUT)) {
        return false;
    }
    /* A pipe that polls writable takes PIPE_BUF bytes at once; a log line is shorter. */
    return write(STDERR_FILENO, data, len) == (ssize_t)len;
}

int fm_claim_stdin(void) {
    return STDIN_FILENO;
}

int fm_claim_stdout(void) {
    int wire = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    if (wire >= 0 && dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
        close(wire);
        return -1;
    }
    return wire;
}

void fm_fill_std_fds(void) {
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF) {
            int null_fd = open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY);
            (void)null_fd; /* open() takes the lowest free number, which is `fd` */
        }
    }
}

int fm_os_open(const char *path, bool create, bool *regular) {
    struct stat info;
    int flags = (create ? O_RDWR | O_CREAT : O_RDONLY) | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    int fd = open(path, flags, PRIVATE_MODE);
    if (fd >= 0 && fstat(fd, &info) != 0) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    *regular = fd >= 0 && S_ISREG(info.st_mode);
    return fd;
}

int fm_os_make_private(const char *path) {
    return chmod(path, PRIVATE_MODE) == 0 ? 0 : errno;
}

int fm_file_examine(const char *path, struct fm_file_info *info) {
    struct stat status;
    *info = (struct fm_file_info){.regular = false};
    if (stat(path, &status) != 0) {
        return errno;
    }
    info->id = (struct fm_file_id){.device = (uint64_t)status.st_dev, .inode = (uint64_t)status.st_ino};
    info->regular = S_ISREG(status.st_mode);
    info->changed = (int64_t)status.st_mtime;
    info->size = (int64_t)status.st_size;
    return 0;
}

int fm_file_check_program(const char *path) {
    return access(path, X_OK) == 0 ? 0 : errno;
}

void fm_file_remove(const char *path) {
    unlink(path);
}

char *fm_file_resolve(const char *path) {
    return realpath(path, NULL);
}

bool fm_file_absolute(const char *path, char *absolute, size_t size) {
    size_t len = 0;
    if (path[0] != '/') {
        if (!getcwd(absolute, size)) {
            return false;
        }
        len = strlen(absolute);
        while (path[0] == '.' && path[1] == '/') {
            path += strspn(path + 1, "/") + 1;
        }
    }
    const char *between = len > 0 && absolute[len - 1] != '/' ? "/" : "";
    return (size_t)snprintf(absolute + len, size - len, "%s%s", between, path) < size - len;
}

const char *fm_file_last_separator(const char *path) {
    return strrchr(path, '/');
}

/* struct fm_folder is a DIR. */
struct fm_folder *fm_folder_open(const char *path) {
    return (struct fm_folder *)opendir(path);
}

const char *fm_folder_next(struct fm_folder *folder) {
    const struct dirent *entry;
    do {
        errno = 0; /* so that an error differs from the end of the list */
        entry = readdir((DIR *)folder);
    } while (entry && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0));
    return entry ? entry->d_name : NULL;
}

void fm_folder_close(struct fm_folder *folder) {
    closedir((DIR *)folder);
}

/* Copies the folder of `path`. False: the path has no folder, or the folder is longer than `size`. */
static bool dir_of(const char *path, char *dir, size_t size) {
    const char *slash = strrchr(path, '/');
    if (!slash || (size_t)(slash - path) >= size) {
        return false;
    }
    size_t len = slash == path ? 1 : (size_t)(slash - path);
    memcpy(dir, path, len);
    dir[len] = '\0';
    return true;
}

bool fm_program_dir(char *dir, size_t size) {
    char path[PATH_MAX];
    return fm_os_program_path(path, sizeof path) && dir_of(path, dir, size);
}

bool fm_library_dir(const char *function, char *dir, size_t size) {
    Dl_info info;
    void *symbol = dlsym(RTLD_DEFAULT, function);
    return symbol && dladdr(symbol, &info) && info.dli_fname && dir_of(info.dli_fname, dir, size);
}

int fm_os_thread_start(pthread_t *thread, int detached, size_t stack, void *(*body)(void *), void *argument) {
    pthread_attr_t attr;
    sigset_t all;
    sigset_t before;
    int error = pthread_attr_init(&attr);
    if (error) {
        return error;
    }
    pthread_attr_setdetachstate(&attr, detached);
    pthread_attr_setstacksize(&attr, stack);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(thread, &attr, body, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return error;
}

bool fm_is_root(void) {
    return geteuid() == 0;
}

char **fm_process_environment(void) {
    return environ;
}

void fm_end_by_signal(int number) {
    signal(number, SIG_DFL);
    /* raise() would not do: this thread may block the signal, but kill() reaches a thread that does not */
    kill(getpid(), number);
}

void fm_ask_for_end(void) {
    ssize_t ignored = write(end_pipe_write, "r", 1); /* a full pipe is readable already */
    (void)ignored;
}

static bool outlives_terminal; /* SIGHUP is ignored, as under nohup */

static void end_signals(sigset_t *set) {
    sigemptyset(set);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGINT);
    if (!outlives_terminal) {
        sigaddset(set, SIGHUP);
    }
}

/*
 * Takes the signals in this thread, because a handler could interrupt any code. When a terminal is closed, SIGHUP may
 * come twice, from the shell and from the system, so a second SIGHUP does not exit at once.
 */
static void *signal_watch(void *unused) {
    (void)unused;
    sigset_t set;
    int number;
    bool seen = false;
    end_signals(&set);
    while (sigwait(&set, &number) == 0) {
        if (seen && number != SIGHUP) {
            _exit(128 + number);
        }
        seen |= number != SIGHUP;
        fm_ask_for_end();
    }
    return NULL;
}

static void *parent_watch(void *unused) {
    (void)unused;
    fm_os_wait_for_parent();
    fm_ask_for_end();
    return NULL;
}

/*
 * A signal that the host ignores or blocks stays so after exec. If SIGCHLD stayed ignored, the system would reap our
 * children: their exit status would be lost, and another process could get their number.
 */
static void take_signals(void) {
    sigset_t set;
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    outlives_terminal = signal(SIGHUP, SIG_DFL) == SIG_IGN;
    if (outlives_terminal) {
        signal(SIGHUP, SIG_IGN);
    }
    signal(SIGCHLD, SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* so that a write beyond a file's size limit is an error and does not end us */
    end_signals(&set);        /* only the thread signal_watch takes these signals */
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

int fm_watch_for_end(void) {
    int read_end = -1;
    int error = fm_pipe(&read_end, &end_pipe_write);
    if (error) {
        errno = error;
        return -1;
    }
    fm_set_nonblocking(end_pipe_write);
    fm_os_note_parent();
    take_signals();
    error = fm_thread_start(signal_watch, NULL);
    if (error) {
        close(read_end);
        close(end_pipe_write);
        errno = error;
        return -1;
    }
    error = fm_thread_start(parent_watch, NULL);
    if (error) {
        errno = error; /* the pipe stays open, because the first thread uses it */
        return -1;
    }
    return read_end;
}

/* In the child: closes descriptors, because the engine must not get those that the host left open in this process. */
static void close_rest_on_exec(void) {
    struct rlimit files;
    if (fm_os_close_rest_on_exec()) {
        return;
    }
    rlim_t end = getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < FD_MAX ? files.rlim_cur : FD_MAX;
    for (int fd = 3; fd < (int)end; fd++) {
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    }
}

/*
 * In the child: its memory holds prompts, which must not reach a disk. The limit is 1, not 0: with 0, Linux still hands
 * the dump to a program in core_pattern. A limit of 1 prevents that too, and is too small for a file (fs/coredump.c).
 */
static void forbid_core_dumps(void) {
    const struct rlimit limit = {.rlim_cur = 1, .rlim_max = 1};
    setrlimit(RLIMIT_CORE, &limit);
}

/*
 * In the child: the given descriptors become 3, 4 and so on, and stay open. `*report` may have one of these numbers, so
 * it gets a higher one.
 */
static bool take_given(const struct fm_child_given *given, int *report) {
    int copies[FM_CHILD_GIVEN_MAX];
    const int beyond = FM_CHILD_GIVEN + FM_CHILD_GIVEN_MAX;
    bool ok = given->count <= FM_CHILD_GIVEN_MAX;
    int moved = fcntl(*report, F_DUPFD_CLOEXEC, beyond);
    ok = ok && moved >= 0;
    *report = moved >= 0 ? moved : *report;
    for (size_t i = 0; i < given->count && ok; i++) {
        copies[i] = given->fds[i] >= 0 ? fcntl(given->fds[i], F_DUPFD_CLOEXEC, beyond) : -1;
        ok = copies[i] >= 0 || given->fds[i] < 0;
    }
    for (size_t i = 0; i < given->count && ok; i++) {
        ok = copies[i] < 0 || dup2(copies[i], FM_CHILD_GIVEN + (int)i) >= 0;
    }
    return ok;
}

/* In the child: limits the length of its files. The limit does not apply to pipes. */
static bool limit_files(const struct fm_child_given *given) {
    struct rlimit limit;
    if (given->file_bytes <= 0) {
        return true;
    }
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0) {
        return false;
    }
    rlim_t most = (rlim_t)given->file_bytes;
    limit.rlim_cur = most < limit.rlim_cur ? most : limit.rlim_cur; /* RLIM_INFINITY is the largest number */
    return setrlimit(RLIMIT_FSIZE, &limit) == 0;
}

/* In the child, between fork and exec: only async-signal-safe functions and plain system calls. */
static void become(const char *path, char *const argv[], char *const env[], const int standard[3],
                   const struct fm_child_given *given, int report, pid_t parent) {
    sigset_t none;
    fm_os_die_with_parent(parent);
    setsid(); /* so the child has no controlling terminal, and has a process group for fm_child_kill */
    for (int number = 1; number < NSIG; number++) {
        signal(number, SIG_DFL);
    }
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    close_rest_on_exec();
    forbid_core_dumps();
    fm_drop_capabilities();
    if (dup2(standard[0], STDIN_FILENO) >= 0 && dup2(standard[1], STDOUT_FILENO) >= 0 &&
        dup2(standard[2], STDERR_FILENO) >= 0 && (!given || (take_given(given, &report) && limit_files(given)))) {
        execve(path, argv, env);
    }
    int error = errno;
    ssize_t ignored = write(report, &error, sizeof error);
    (void)ignored;
    _exit(127);
}

static void close_all(const int *fds, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (fds[i] >= 0) {
            close(fds[i]);
        }
    }
}

/*
 * Returns a list: the program's name, then `args`. The caller frees the list; the strings are not copied. NULL: out of
 * memory.
 */
static char **make_argv(const char *path, char *const args[]) {
    size_t count = 0;
    while (args && args[count]) {
        count++;
    }
    char **argv = calloc(count + 2, sizeof *argv);
    if (argv) {
        argv[0] = (char *)path;
        for (size_t i = 0; i < count; i++) {
            argv[i + 1] = args[i];
        }
    }
    return argv;
}

int fm_child_start(struct fm_child *child, const char *path, char *const env[], const struct fm_child_given *given) {
    return fm_child_start_args(child, path, NULL, env, given);
}

int fm_child_start_args(struct fm_child *child, const char *path, char *const args[], char *const env[],
                        const struct fm_child_given *given) {
    enum { IN_READ, IN_WRITE, OUT_READ, OUT_WRITE, ERR_READ, ERR_WRITE, REPORT_READ, REPORT_WRITE, COUNT };
    int fds[COUNT] = {-1, -1, -1, -1, -1, -1, -1, -1};
    int error = fm_pipe(&fds[IN_READ], &fds[IN_WRITE]);
    error = error ? error : fm_pipe(&fds[OUT_READ], &fds[OUT_WRITE]);
    error = error ? error : fm_pipe(&fds[ERR_READ], &fds[ERR_WRITE]);
    error = error ? error : fm_pipe(&fds[REPORT_READ], &fds[REPORT_WRITE]);
    char **argv = error ? NULL : make_argv(path, args);
    if (!argv) {
        error = error ? error : ENOMEM;
        close_all(fds, COUNT);
        return error;
    }
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        const int standard[3] = {fds[IN_READ], fds[OUT_WRITE], fds[ERR_WRITE]};
        become(path, argv, env, standard, given, fds[REPORT_WRITE], parent);
    }
    error = pid < 0 ? errno : 0;
    free(argv);
    close_all((int[]){fds[IN_READ], fds[OUT_WRITE], fds[ERR_WRITE], fds[REPORT_WRITE]}, 4);
    /* A successful exec closes the report pipe, so the end of input means success. */
    if (!error && fm_read(fds[REPORT_READ], &error, sizeof error) > 0) {
        fm_child_reap(pid);
    }
    close(fds[REPORT_READ]);
    if (error) {
        close_all((int[]){fds[IN_WRITE], fds[OUT_READ], fds[ERR_READ]}, 3);
        return error;
    }
    *child = (struct fm_child){
        .pid = pid,
        .to_child = fds[IN_WRITE],
        .from_child = fds[OUT_READ],
        .errors = fds[ERR_READ],
        .ended = fm_os_watch_process(pid),
    };
    return 0;
}

bool fm_child_has_ended(pid_t pid) {
    siginfo_t info = {.si_pid = 0};
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == pid;
}

void fm_child_kill(pid_t pid) {
    kill(-pid, SIGKILL);
}

int fm_child_reap(pid_t pid) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) {
            return 0;
        }
    }
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}
