/*
 * Descriptors, threads, children and the end of a process, and what happens when the system refuses a call. The linker
 * wraps the system calls; `faults` says which of them fails next, and how.
 */
#include "base/clock.h"
#include "base/platform.h"
#include "base/platform_os.h"
#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WAIT_MS 120000

/* ---- calls that fail ---- */

struct fault {
    const char *call;
    int skip;  /* this many calls succeed first */
    int error; /* the call fails with this errno; 0: the call does less than requested */
};

static struct fault faults[8];
static size_t fault_count;

static void plan(const char *call, int skip, int error) {
    assert_true(fault_count < COUNT(faults));
    faults[fault_count++] = (struct fault){call, skip, error};
}

static int reset(void **state) {
    (void)state;
    fault_count = 0;
    return 0;
}

/* The planned fault of this call, which is used once. NULL: the call succeeds. Calls of other threads do not count. */
static const struct fault *due(const char *call) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct fault found;
    const struct fault *result = NULL;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < fault_count && !result; i++) {
        if (strcmp(faults[i].call, call) != 0) {
            continue;
        }
        if (faults[i].skip-- > 0) {
            break;
        }
        found = faults[i];
        memmove(&faults[i], &faults[i + 1], (fault_count - i - 1) * sizeof faults[0]);
        fault_count--;
        result = &found;
    }
    pthread_mutex_unlock(&lock);
    if (result && result->error) {
        errno = result->error;
    }
    return result;
}

ssize_t __real_read(int fd, void *data, size_t len);
ssize_t __wrap_read(int fd, void *data, size_t len);
ssize_t __wrap_read(int fd, void *data, size_t len) {
    const struct fault *fault = due("read");
    return fault && fault->error ? -1 : __real_read(fd, data, fault ? 1 : len);
}

ssize_t __real_write(int fd, const void *data, size_t len);
ssize_t __wrap_write(int fd, const void *data, size_t len);
ssize_t __wrap_write(int fd, const void *data, size_t len) {
    const struct fault *fault = due("write");
    return fault && fault->error ? -1 : __real_write(fd, data, fault ? 1 : len);
}

#define FAULT_MS 5       /* duration of a call that fails */
static int poll_timeout; /* the timeout of the last call */
int __real_poll(struct pollfd *fds, nfds_t count, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout) {
    poll_timeout = timeout;
    if (!due("poll")) {
        return __real_poll(fds, count, timeout);
    }
    int error = errno;
    for (int64_t start = fm_now_ms(); fm_now_ms() - start < FAULT_MS;) {
    }
    errno = error;
    return -1;
}

int __real_pipe2(int fds[2], int flags);
int __wrap_pipe2(int fds[2], int flags);
int __wrap_pipe2(int fds[2], int flags) {
    return due("pipe2") ? -1 : __real_pipe2(fds, flags);
}

int __real_dup2(int from, int to);
int __wrap_dup2(int from, int to);
int __wrap_dup2(int from, int to) {
    return due("dup2") ? -1 : __real_dup2(from, to);
}

pid_t __real_fork(void);
pid_t __wrap_fork(void);
pid_t __wrap_fork(void) {
    return due("fork") ? -1 : __real_fork();
}

pid_t __real_waitpid(pid_t pid, int *status, int options);
pid_t __wrap_waitpid(pid_t pid, int *status, int options);
pid_t __wrap_waitpid(pid_t pid, int *status, int options) {
    return due("waitpid") ? -1 : __real_waitpid(pid, status, options);
}

int __real_pthread_attr_init(pthread_attr_t *attr);
int __wrap_pthread_attr_init(pthread_attr_t *attr);
int __wrap_pthread_attr_init(pthread_attr_t *attr) {
    const struct fault *fault = due("pthread_attr_init");
    return fault ? fault->error : __real_pthread_attr_init(attr);
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *), void *argument) {
    const struct fault *fault = due("pthread_create");
    return fault ? fault->error : __real_pthread_create(thread, attr, body, argument);
}

int __real_pthread_condattr_init(pthread_condattr_t *attr);
int __wrap_pthread_condattr_init(pthread_condattr_t *attr);
int __wrap_pthread_condattr_init(pthread_condattr_t *attr) {
    const struct fault *fault = due("pthread_condattr_init");
    return fault ? fault->error : __real_pthread_condattr_init(attr);
}

int __real_pthread_condattr_setclock(pthread_condattr_t *attr, clockid_t clock);
int __wrap_pthread_condattr_setclock(pthread_condattr_t *attr, clockid_t clock);
int __wrap_pthread_condattr_setclock(pthread_condattr_t *attr, clockid_t clock) {
    const struct fault *fault = due("pthread_condattr_setclock");
    return fault ? fault->error : __real_pthread_condattr_setclock(attr, clock);
}

ssize_t __real_getrandom(void *data, size_t len, unsigned flags);
ssize_t __wrap_getrandom(void *data, size_t len, unsigned flags);
ssize_t __wrap_getrandom(void *data, size_t len, unsigned flags) {
    const struct fault *fault = due("getrandom");
    return fault && fault->error ? -1 : __real_getrandom(data, fault ? 1 : len, flags);
}

int __real_nanosleep(const struct timespec *time, struct timespec *left);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left) {
    return due("nanosleep") ? -1 : __real_nanosleep(time, left);
}

static const char *program_path; /* NULL: the real path */

ssize_t __real_readlink(const char *path, char *text, size_t size);
ssize_t __wrap_readlink(const char *path, char *text, size_t size);
ssize_t __wrap_readlink(const char *path, char *text, size_t size) {
    if (due("readlink")) {
        return -1;
    }
    if (!program_path) {
        return __real_readlink(path, text, size);
    }
    size_t len = strlen(program_path) < size ? strlen(program_path) : size;
    memcpy(text, program_path, len);
    return (ssize_t)len;
}

static bool no_pidfd;

long __real_syscall(long number, long first, long second);
long __wrap_syscall(long number, long first, long second);
long __wrap_syscall(long number, long first, long second) {
    if (no_pidfd) {
        errno = ENOSYS;
        return -1;
    }
    return __real_syscall(number, first, second);
}

/* ---- descriptors ---- */

static void make_pipe(int fds[2]) {
    assert_int_equal(fm_pipe(&fds[0], &fds[1]), 0);
}

static void close_pipe(const int fds[2]) {
    close(fds[0]);
    close(fds[1]);
}

static void pipes_close_on_exec(void **state) {
    (void)state;
    int fds[2];
    make_pipe(fds);
    assert_true(fcntl(fds[0], F_GETFD) & FD_CLOEXEC);
    assert_true(fcntl(fds[1], F_GETFD) & FD_CLOEXEC);
    fm_set_nonblocking(fds[0]);
    assert_true(fcntl(fds[0], F_GETFL) & O_NONBLOCK);
    fm_set_nonblocking(-1); /* this is not a descriptor: nothing happens */
    close_pipe(fds);
    plan("pipe2", 0, EMFILE);
    assert_int_equal(fm_pipe(&fds[0], &fds[1]), EMFILE);
}

static const struct {
    const char *name;
    struct fault faults[3]; /* the faults before the first one without a name */
    int error;              /* 0: the call succeeds */
} io_rows[] = {
    {"nothing wrong", {{NULL, 0, 0}}, 0},
    {"short", {{"io", 0, 0}}, 0},
    {"short twice", {{"io", 0, 0}, {"io", 0, 0}}, 0},
    {"interrupted", {{"io", 0, EINTR}}, 0},
    {"interrupted twice", {{"io", 0, EINTR}, {"io", 0, EINTR}}, 0},
    {"not ready", {{"io", 0, EAGAIN}}, 0},
    {"not ready, and the wait is interrupted", {{"io", 0, EAGAIN}, {"poll", 0, EINTR}}, 0},
    {"not ready, and the wait fails", {{"io", 0, EAGAIN}, {"poll", 0, ENOMEM}}, ENOMEM},
    {"broken", {{"io", 0, EIO}}, EIO},
    {"interrupted, then broken", {{"io", 0, EINTR}, {"io", 0, EPIPE}}, EPIPE},
    {"short, then broken", {{"io", 0, 0}, {"io", 0, EPIPE}}, EPIPE},
};

static void plan_row(size_t row, const char *call) {
    fault_count = 0;
    for (size_t i = 0; i < COUNT(io_rows[row].faults) && io_rows[row].faults[i].call; i++) {
        const struct fault *fault = &io_rows[row].faults[i];
        plan(strcmp(fault->call, "io") == 0 ? call : fault->call, fault->skip, fault->error);
    }
}

static void reads_go_on(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(io_rows); i++) {
        int fds[2];
        char got[8] = "";
        make_pipe(fds);
        fm_set_nonblocking(fds[0]);
        assert_int_equal(__real_write(fds[1], "abc", 3), 3);
        plan_row(i, "read");
        size_t len = 0;
        ssize_t more = 1;
        while (len < 3 && (more = fm_read(fds[0], got + len, sizeof got - len)) > 0) {
            len += (size_t)more;
        }
        int error = more < 0 ? errno : 0;
        if (error != io_rows[i].error || (!error && strcmp(got, "abc") != 0)) {
            fail_msg("%s: errno %d, \"%s\"", io_rows[i].name, error, got);
        }
        close_pipe(fds);
    }
}

static void writes_go_on(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(io_rows); i++) {
        int fds[2];
        char got[8] = "";
        make_pipe(fds);
        plan_row(i, "write");
        bool ok = fm_write_all(fds[1], "abc", 3);
        int error = ok ? 0 : errno;
        fault_count = 0;
        if (error != io_rows[i].error) {
            fail_msg("%s: errno %d", io_rows[i].name, error);
        }
        if (ok) {
            assert_int_equal(__real_read(fds[0], got, sizeof got), 3);
            assert_string_equal(got, "abc");
        }
        close_pipe(fds);
    }
}

/* Returns how many of these are ready at once. `seen` gets a letter for each: r if it is ready, or -. */
static int look(struct fm_waited waited[3], int ms, char seen[4]) {
    int ready = fm_wait(waited, 3, ms);
    for (int i = 0; i < 3; i++) {
        seen[i] = waited[i].ready ? 'r' : '-';
    }
    seen[3] = '\0';
    return ready;
}

static void waits_tell_what_is_ready(void **state) {
    int fds[2];
    char seen[4];
    (void)state;
    make_pipe(fds);
    struct fm_waited waited[3] = {{.fd = fds[0], .input = true}, {.fd = -1, .input = true}, {.fd = fds[0]}};
    assert_int_equal(look(waited, 0, seen), 0);
    assert_string_equal(seen, "---");
    assert_int_equal(__real_write(fds[1], "a", 1), 1);
    assert_int_equal(look(waited, -1, seen), 1);
    assert_string_equal(seen, "r--");
    waited[1] = (struct fm_waited){.fd = fds[1], .room = true};
    assert_int_equal(look(waited, -1, seen), 2);
    assert_string_equal(seen, "rr-");
    fm_close(fds[1]);
    waited[1].fd = -1;
    assert_int_equal(look(waited, -1, seen), 2); /* the other side has closed */
    assert_string_equal(seen, "r-r");
    fm_close(fds[0]);
}

static void a_wait_goes_on_after_a_signal(void **state) {
    int fds[2];
    char seen[4];
    (void)state;
    make_pipe(fds);
    struct fm_waited waited[3] = {{.fd = fds[0], .input = true}, {.fd = -1}, {.fd = -1}};
    for (int ms = -1; ms <= 60000; ms += 60001) { /* without a limit, and with one */
        __real_write(fds[1], "a", 1);
        plan("poll", 0, EINTR);
        assert_int_equal(look(waited, ms, seen), 1);
        assert_int_equal(fault_count, 0);
    }
    waited[0].fd = -1;
    plan("poll", 0, EINTR);
    plan("poll", 0, EINTR);
    plan("poll", 0, EINTR);
    int64_t before = fm_now_ms();
    assert_int_equal(look(waited, 30, seen), 0);
    assert_true(fm_now_ms() - before >= 30);
    assert_true(poll_timeout <= 30 - 3 * FAULT_MS);
    plan("poll", 0, ENOMEM);
    assert_int_equal(look(waited, -1, seen), 0);
    assert_string_equal(seen, "---");
    close_pipe(fds);
}

static void *read_late(void *argument) {
    static char bytes[65536];
    const int *fds = argument;
    fm_sleep_ms(50);
    for (size_t left = 200000; left;) {
        ssize_t got = __real_read(fds[0], bytes, left < sizeof bytes ? left : sizeof bytes);
        left -= got > 0 ? (size_t)got : left;
    }
    return NULL;
}

/* fm_write_all waits for room in a pipe that is full, also if another process has made the pipe non-blocking. */
static void a_write_waits_for_its_reader(void **state) {
    (void)state;
    static const char bytes[200000];
    int fds[2];
    pthread_t reader;
    make_pipe(fds);
    fm_set_nonblocking(fds[1]);
    assert_int_equal(__real_pthread_create(&reader, NULL, read_late, fds), 0);
    assert_true(fm_write_all(fds[1], bytes, sizeof bytes));
    pthread_join(reader, NULL);
    close_pipe(fds);
}

static void the_end_of_input_is_zero(void **state) {
    (void)state;
    int fds[2];
    char byte;
    make_pipe(fds);
    close(fds[1]);
    assert_int_equal(fm_read(fds[0], &byte, 1), 0);
    close(fds[0]);
}

/* Runs `body` in a child process; returns its exit status. */
static int in_child(int (*body)(void)) {
    pid_t pid = __real_fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        _exit(body());
    }
    int status = 0;
    assert_int_equal(__real_waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            return __LINE__ % 200 + 20;                                                                                \
        }                                                                                                              \
    } while (0)

static int stderr_that_is_full(void) {
    int fds[2];
    char bytes[65536] = {0};
    CHECK(fm_pipe(&fds[0], &fds[1]) == 0 && __real_dup2(fds[1], STDERR_FILENO) == STDERR_FILENO);
    CHECK(fm_stderr_try_write("line\n", 5));
    int blocking = fcntl(fds[1], F_GETFL);
    fm_set_nonblocking(fds[1]);
    while (__real_write(fds[1], bytes, sizeof bytes) > 0) {
    }
    CHECK(fcntl(fds[1], F_SETFL, blocking) == 0);
    alarm(WAIT_MS / 1000);
    CHECK(!fm_stderr_try_write("line\n", 5)); /* dropped, without waiting */
    alarm(0);
    CHECK(__real_read(fds[0], bytes, sizeof bytes) > 4096);
    CHECK(fm_stderr_try_write("line\n", 5));
    close(fds[0]);
    signal(SIGPIPE, SIG_IGN);
    CHECK(!fm_stderr_try_write("line\n", 5)); /* the pipe has no reader any more */
    close(STDERR_FILENO);
    CHECK(!fm_stderr_try_write("line\n", 5));
    return 0;
}

static int stdout_that_is_claimed(void) {
    int fds[2];
    char bytes[8] = "";
    CHECK(fm_pipe(&fds[0], &fds[1]) == 0 && __real_dup2(fds[1], STDOUT_FILENO) == STDOUT_FILENO);
    int wire = fm_claim_stdout();
    CHECK(wire > STDERR_FILENO && (fcntl(wire, F_GETFD) & FD_CLOEXEC));
    CHECK(__real_write(wire, "w", 1) == 1 && __real_read(fds[0], bytes, sizeof bytes) == 1 && bytes[0] == 'w');
    struct stat out;
    struct stat err;
    CHECK(fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &err) == 0);
    CHECK(out.st_ino == err.st_ino && out.st_dev == err.st_dev);
    plan("dup2", 0, EBADF);
    CHECK(fm_claim_stdout() == -1);
    close(STDOUT_FILENO);
    CHECK(fm_claim_stdout() == -1);
    return 0;
}

static int closed_descriptors(void) {
    fm_fill_std_fds(); /* all three are open, so nothing happens */
    close(0);
    close(1);
    close(2);
    fm_fill_std_fds();
    char byte;
    CHECK(__real_read(0, &byte, 1) == 0);
    CHECK(__real_write(1, "x", 1) == 1 && __real_write(2, "x", 1) == 1);
    int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    CHECK(next > 2);
    return 0;
}

static void standard_descriptors(void **state) {
    (void)state;
    assert_int_equal(in_child(stderr_that_is_full), 0);
    assert_int_equal(in_child(stdout_that_is_claimed), 0);
    assert_int_equal(in_child(closed_descriptors), 0);
}

/* ---- this process ---- */

static void random_bytes_are_all_there(void **state) {
    (void)state;
    unsigned char bytes[64] = {0};
    plan("getrandom", 0, EINTR);
    plan("getrandom", 0, 0);
    fm_random(bytes, sizeof bytes);
    assert_int_equal(fault_count, 0);
    size_t zeros = 0;
    for (size_t i = 0; i < sizeof bytes; i++) {
        zeros += bytes[i] == 0;
    }
    assert_in_range(zeros, 0, 16);
}

static void the_programs_folder(void **state) {
    (void)state;
    static char long_path[PATH_MAX + 10];
    char dir[PATH_MAX];
    assert_true(fm_program_dir(dir, sizeof dir));
    assert_int_equal(dir[0], '/');
    assert_string_equal(strrchr(dir, '/'), "/tests-bin");
    assert_false(fm_program_dir(dir, 5));
    plan("readlink", 0, ENOENT);
    assert_false(fm_program_dir(dir, sizeof dir));
    memset(long_path, 'x', sizeof long_path - 1);
    static const struct {
        const char *path;
        const char *dir; /* NULL: not known */
    } rows[] = {{"/program", "/"}, {"/a/b", "/a"}, {"program", NULL}, {long_path, NULL}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        program_path = rows[i].path;
        bool known = fm_program_dir(dir, sizeof dir);
        program_path = NULL;
        assert_int_equal(known, rows[i].dir != NULL);
        if (known) {
            assert_string_equal(dir, rows[i].dir);
        }
    }
}

static void sleep_outlasts_a_signal(void **state) {
    (void)state;
    int64_t before = fm_now_us();
    plan("nanosleep", 0, EINTR);
    fm_sleep_ms(30);
    assert_true(fm_now_us() - before >= 30000);
    plan("nanosleep", 0, EINVAL);
    before = fm_now_us();
    fm_sleep_ms(60000); /* an error other than EINTR does not cause an endless loop */
    assert_true(fm_now_us() - before < 30000000);
}

static void conditions_use_the_monotonic_clock(void **state) {
    (void)state;
    pthread_cond_t cond;
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    plan("pthread_condattr_init", 0, ENOMEM);
    assert_int_equal(fm_cond_init(&cond), ENOMEM);
    plan("pthread_condattr_setclock", 0, EINVAL);
    assert_int_equal(fm_cond_init(&cond), EINVAL);
    assert_int_equal(fm_cond_init(&cond), 0);
    int64_t deadline = fm_now_ms() + 20;
    pthread_mutex_lock(&mutex);
    while (fm_now_ms() < deadline) {
        fm_cond_wait_until(&cond, &mutex, deadline);
    }
    pthread_mutex_unlock(&mutex);
    assert_true(fm_now_ms() - deadline < WAIT_MS);
    pthread_cond_destroy(&cond);
}

/* ---- threads ---- */

struct thread_report {
    pthread_mutex_t lock;
    pthread_cond_t told;
    bool ran;
    bool blocks_all;
};

static void *tell(void *argument) {
    struct thread_report *report = argument;
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    pthread_mutex_lock(&report->lock);
    report->ran = true;
    report->blocks_all = sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGINT) == 1;
    pthread_cond_signal(&report->told);
    pthread_mutex_unlock(&report->lock);
    return NULL;
}

static void threads_block_signals(void **state) {
    (void)state;
    static struct thread_report report = {.lock = PTHREAD_MUTEX_INITIALIZER, .told = PTHREAD_COND_INITIALIZER};
    plan("pthread_attr_init", 0, ENOMEM);
    assert_int_equal(fm_thread_start(tell, &report), ENOMEM);
    plan("pthread_create", 0, EAGAIN);
    assert_int_equal(fm_thread_start(tell, &report), EAGAIN);
    assert_int_equal(fm_thread_start(tell, &report), 0);
    pthread_mutex_lock(&report.lock);
    while (!report.ran) {
        pthread_cond_wait(&report.told, &report.lock);
    }
    assert_true(report.blocks_all);
    pthread_mutex_unlock(&report.lock);
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask); /* our own mask is unchanged */
    assert_int_equal(sigismember(&mask, SIGTERM), 0);
}

#define DEEP ((size_t)64 * 1024 * 1024)

/* Recurses with large frames on one stack, and writes a page of each frame. */
static size_t recurse(size_t left) {
    volatile char frame[64 * 1024];
    frame[0] = 1;
    frame[sizeof frame / 2] = 1;
    return left > sizeof frame ? recurse(left - sizeof frame) + (size_t)frame[0] : (size_t)frame[sizeof frame / 2];
}

static void go_deep(void *argument) {
    struct thread_report *report = argument;
    tell(report);
    assert_int_equal(recurse(DEEP), DEEP / (64 * 1024));
}

static void a_stack_of_any_size(void **state) {
    (void)state;
    struct thread_report report = {.lock = PTHREAD_MUTEX_INITIALIZER, .told = PTHREAD_COND_INITIALIZER};
    plan("pthread_create", 0, EAGAIN);
    assert_int_equal(fm_run_on_stack(DEEP, go_deep, &report), EAGAIN);
    assert_false(report.ran);
    assert_int_equal(fm_run_on_stack(DEEP + DEEP / 8 + 1, go_deep, &report), 0); /* not of whole pages */
    assert_true(report.ran);
    assert_true(report.blocks_all);
}

/* The state of a thread that is too late. It waits for `go`. drop_late is called for it after its end. */
struct late {
    pthread_mutex_t lock;
    pthread_cond_t told;
    bool go;
    bool ran;
    bool dropped;
};

static void run_late(void *argument) {
    struct late *late = argument;
    pthread_mutex_lock(&late->lock);
    while (!late->go) {
        pthread_cond_wait(&late->told, &late->lock);
    }
    late->ran = true;
    pthread_mutex_unlock(&late->lock);
}

static void drop_late(void *argument) {
    struct late *late = argument;
    pthread_mutex_lock(&late->lock);
    late->dropped = true;
    pthread_cond_broadcast(&late->told);
    pthread_mutex_unlock(&late->lock);
}

static void sleep_long(void *ms) {
    fm_sleep_ms(*(const int64_t *)ms);
}

/* A call that only waits because the machine is busy must not fail. */
static void a_call_that_waits(void **state) {
    (void)state;
    int64_t ms = 500;
    assert_int_equal(fm_run_on_stack_within(DEEP, ms / 10, WAIT_MS, sleep_long, drop_late, &ms), 0);
}

static void a_call_that_takes_too_long(void **state) {
    (void)state;
    static struct late late = {.lock = PTHREAD_MUTEX_INITIALIZER, .told = PTHREAD_COND_INITIALIZER};
    struct thread_report report = {.lock = PTHREAD_MUTEX_INITIALIZER, .told = PTHREAD_COND_INITIALIZER};
    plan("pthread_condattr_init", 0, ENOMEM);
    assert_int_equal(fm_run_on_stack_within(DEEP + DEEP / 8, WAIT_MS, WAIT_MS, go_deep, drop_late, &report), ENOMEM);
    plan("pthread_create", 0, EAGAIN);
    assert_int_equal(fm_run_on_stack_within(DEEP + DEEP / 8, WAIT_MS, WAIT_MS, go_deep, drop_late, &report), EAGAIN);
    assert_false(report.ran);
    assert_int_equal(fm_run_on_stack_within(DEEP + DEEP / 8, WAIT_MS, WAIT_MS, go_deep, drop_late, &report), 0);
    assert_true(report.ran);
    assert_true(report.blocks_all);
    assert_int_equal(fm_run_on_stack_within(DEEP + DEEP / 8, 20, 80, run_late, drop_late, &late), ETIMEDOUT);
    pthread_mutex_lock(&late.lock);
    assert_false(late.ran || late.dropped);
    late.go = true;
    pthread_cond_broadcast(&late.told);
    while (!late.dropped) {
        pthread_cond_wait(&late.told, &late.lock);
    }
    assert_true(late.ran);
    pthread_mutex_unlock(&late.lock);
}

/* ---- requests to end this process ---- */

static bool readable(int fd, int wait_ms) {
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    return __real_poll(&poll_fd, 1, wait_ms) == 1;
}

static int end_by_a_call(void) {
    int end = fm_watch_for_end();
    CHECK(end >= 0 && !readable(end, 0));
    fm_ask_for_end();
    CHECK(readable(end, 0));
    for (int i = 0; i < 70000; i++) { /* more requests than the pipe holds, and no call waits */
        fm_ask_for_end();
    }
    return 0;
}

static int end_by_a_signal(void) {
    int end = fm_watch_for_end();
    CHECK(end >= 0 && !readable(end, 0));
    raise(SIGPIPE); /* SIGPIPE is ignored from now on */
    kill(getpid(), SIGTERM);
    CHECK(readable(end, WAIT_MS));
    kill(getpid(), SIGINT); /* the second signal ends the process at once */
    fm_sleep_ms(WAIT_MS);
    return 1;
}

/* Signals may be in this state when a host starts us. */
static int signals_that_were_blocked_and_ignored(void) {
    struct fm_child child;
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    signal(SIGCHLD, SIG_IGN);
    kill(getpid(), SIGTERM); /* this signal stays pending until it is handled */
    int end = fm_watch_for_end();
    CHECK(end >= 0 && readable(end, WAIT_MS));
    CHECK(fm_child_start(&child, "/bin/false", (char *[]){NULL}, NULL) == 0);
    CHECK(fm_child_reap(child.pid) == 1);
    kill(getpid(), SIGINT);
    fm_sleep_ms(WAIT_MS);
    return 1;
}

static int signals_that_were_ignored(void) {
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    int end = fm_watch_for_end();
    CHECK(end >= 0);
    kill(getpid(), SIGINT);
    CHECK(readable(end, WAIT_MS));
    kill(getpid(), SIGTERM);
    fm_sleep_ms(WAIT_MS);
    return 1;
}

/* When a terminal closes, both its shell and the system may send SIGHUP. */
static int end_with_the_terminal(void) {
    signal(SIGHUP, SIG_DFL); /* because these tests may run under nohup */
    int end = fm_watch_for_end();
    char byte;
    for (int i = 0; i < 2; i++) {
        kill(getpid(), SIGHUP);
        CHECK(end >= 0 && readable(end, WAIT_MS) && __real_read(end, &byte, 1) == 1);
    }
    kill(getpid(), SIGTERM); /* the first of the signals that end the process at once when they come twice */
    CHECK(readable(end, WAIT_MS));
    return 0;
}

static int no_end_with_the_terminal(void) {
    signal(SIGHUP, SIG_IGN);
    int end = fm_watch_for_end();
    kill(getpid(), SIGHUP);
    kill(getpid(), SIGTERM);
    char byte;
    CHECK(end >= 0 && readable(end, WAIT_MS) && __real_read(end, &byte, 1) == 1);
    CHECK(!readable(end, 0)); /* SIGHUP would have come first */
    return 0;
}

static int end_that_cannot_be_watched(void) {
    plan("pipe2", 0, EMFILE);
    CHECK(fm_watch_for_end() == -1 && errno == EMFILE);
    for (int thread = 0; thread < 2; thread++) {
        plan("pthread_create", thread, EAGAIN);
        CHECK(fm_watch_for_end() == -1 && errno == EAGAIN);
    }
    return 0;
}

static void ends(void **state) {
    (void)state;
    assert_int_equal(in_child(end_by_a_call), 0);
    assert_int_equal(in_child(end_by_a_signal), 128 + SIGINT);
    assert_int_equal(in_child(signals_that_were_blocked_and_ignored), 128 + SIGINT);
    assert_int_equal(in_child(signals_that_were_ignored), 128 + SIGTERM);
    assert_int_equal(in_child(end_with_the_terminal), 0);
    assert_int_equal(in_child(no_end_with_the_terminal), 0);
    assert_int_equal(in_child(end_that_cannot_be_watched), 0);
}

/* Runs in the grandchild. Reports when it watches its parent, and then what it has seen. */
static void watch_the_parent(int ready, int result) {
    int end = fm_watch_for_end();
    /* there is no end while the parent lives; after this call the watch is in its poll */
    bool early = end < 0 || readable(end, 100);
    ssize_t told = __real_write(ready, "r", 1);
    char seen = !early && told == 1 && readable(end, WAIT_MS) ? 'y' : 'n';
    told = __real_write(result, &seen, 1);
    _exit(told == 1 ? 0 : 1);
}

static void the_parents_death_is_seen(void **state) {
    (void)state;
    for (int kernel = 0; kernel < 2; kernel++) {
        int ready[2];
        int result[2];
        char byte = ' ';
        make_pipe(ready);
        make_pipe(result);
        no_pidfd = kernel == 1; /* kernels before 5.3 need polling */
        pid_t parent = __real_fork();
        if (parent == 0) {
            if (__real_fork() == 0) {
                watch_the_parent(ready[1], result[1]);
            }
            ssize_t told = __real_read(ready[0], &byte, 1);
            _exit(told == 1 ? 0 : 1);
        }
        close(result[1]);
        int status;
        assert_int_equal(__real_waitpid(parent, &status, 0), parent);
        no_pidfd = false;
        assert_int_equal(status, 0);
        assert_true(readable(result[0], WAIT_MS));
        assert_int_equal(__real_read(result[0], &byte, 1), 1);
        assert_int_equal(byte, 'y');
        close_pipe(ready);
        close(result[0]);
    }
}

/* ---- children ---- */

static char *const no_environment[] = {NULL};

static long open_descriptors(void) {
    long count = 0;
    for (int fd = 0; fd < 256; fd++) {
        count += fcntl(fd, F_GETFD) >= 0;
    }
    return count;
}

static void a_child_gets_its_arguments(void **state) {
    (void)state;
    struct fm_child child;
    char got[32] = "";
    size_t len = 0;
    char *const args[] = {"-c", "printf '%s|' \"$0\" \"$@\"", "a b", "", "\"c\" \\", NULL};
    assert_int_equal(fm_child_start_args(&child, "/bin/sh", args, no_environment, NULL), 0);
    close(child.to_child);
    for (ssize_t more; (more = fm_read(child.from_child, got + len, sizeof got - 1 - len)) > 0;) {
        len += (size_t)more;
    }
    assert_string_equal(got, "a b||\"c\" \\|");
    close(child.from_child);
    close(child.errors);
    close(child.ended);
    assert_int_equal(fm_child_reap(child.pid), 0);
}

/* Runs in a process where SIGPIPE has its default action, which would end the process. */
static int a_pipe_without_a_reader(void) {
    int fds[2];
    sigset_t set;
    sigset_t pending;
    signal(SIGPIPE, SIG_DFL);
    CHECK(fm_pipe(&fds[0], &fds[1]) == 0);
    CHECK(fm_write_quiet(fds[1], "abc", 3) == 3);
    close(fds[0]);
    CHECK(fm_write_quiet(fds[1], "abc", 3) == -1 && errno == EPIPE);
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    sigprocmask(SIG_BLOCK, &set, NULL); /* for a host that waits for SIGPIPE: a pending one stays pending */
    kill(getpid(), SIGPIPE);
    CHECK(fm_write_quiet(fds[1], "abc", 3) == -1 && errno == EPIPE);
    CHECK(sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1);
    return 0;
}

static void a_quiet_write_raises_no_signal(void **state) {
    (void)state;
    assert_int_equal(in_child(a_pipe_without_a_reader), 0);
}

static void a_child_has_three_pipes(void **state) {
    (void)state;
    struct fm_child child;
    char got[8] = "";
    assert_int_equal(fm_child_start(&child, "/bin/sh", no_environment, NULL), 0);
    static const char command[] = "printf abc; printf de >&2\n";
    assert_true(fm_write_all(child.to_child, command, sizeof command - 1));
    close(child.to_child);
    size_t len = 0;
    for (ssize_t more; (more = fm_read(child.from_child, got + len, sizeof got - len)) > 0;) {
        len += (size_t)more;
    }
    assert_string_equal(got, "abc");
    close(child.from_child);
    assert_int_equal(fm_read(child.errors, got, sizeof got), 2);
    assert_memory_equal(got, "de", 2);
    assert_int_equal(fm_read(child.errors, got, sizeof got), 0);
    close(child.errors);
    plan("waitpid", 0, EINTR);
    assert_int_equal(fm_child_reap(child.pid), 0);
    assert_int_equal(fm_child_reap(child.pid), 0); /* the process is not our child any more, so there is no wait */
}

/* The child gets its descriptors under the right numbers, whatever numbers they have in this process: even the same
 * numbers in another order. */
static void a_child_has_what_it_is_given(void **state) {
    (void)state;
    static const char command[] = "printf abc >&4; cat <&3; ls /proc/self/fd >&2\n";
    struct fm_child child;
    char got[16] = "";
    int in[2];
    int out[2];
    int moved[2];
    assert_int_equal(pipe(in), 0);
    assert_int_equal(pipe(out), 0);
    moved[0] = fcntl(in[0], F_DUPFD, 20);
    moved[1] = fcntl(out[1], F_DUPFD, 20);
    close(in[0]);
    close(out[1]);
    int saved[2] = {fcntl(3, F_DUPFD, 30), fcntl(4, F_DUPFD, 30)};
    assert_int_equal(dup2(moved[1], 3), 3);
    assert_int_equal(dup2(moved[0], 4), 4);
    const struct fm_child_given given = {.fds = {4, 3}, .count = 2};
    assert_int_equal(fm_child_start(&child, "/bin/sh", no_environment, &given), 0);
    close(3);
    close(4);
    for (int i = 0; i < 2; i++) {
        close(moved[i]);
        assert_true(saved[i] < 0 || dup2(saved[i], 3 + i) == 3 + i);
        close(saved[i] < 0 ? 3 + i : saved[i]);
    }
    assert_true(fm_write_all(in[1], "xyz", 3));
    close(in[1]);
    assert_true(fm_write_all(child.to_child, command, sizeof command - 1));
    close(child.to_child);
    assert_int_equal(fm_read(out[0], got, sizeof got), 3);
    assert_memory_equal(got, "abc", 3);
    assert_int_equal(fm_read(child.from_child, got, sizeof got), 3);
    assert_memory_equal(got, "xyz", 3);
    assert_int_equal(fm_child_reap(child.pid), 0);
    close(out[0]);
    close(child.from_child);
    close(child.errors);
}

/* A descriptor that the child does not get is closed in the child, and the others have their numbers. */
static void a_child_may_be_given_less(void **state) {
    (void)state;
    static const char command[] = "(cat <&3) 2>/dev/null && echo 3; printf x >&4\n";
    struct fm_child child;
    char got[16] = "";
    int out[2];
    assert_int_equal(fm_pipe(&out[0], &out[1]), 0);
    const struct fm_child_given given = {.fds = {-1, out[1]}, .count = 2};
    assert_int_equal(fm_child_start(&child, "/bin/sh", no_environment, &given), 0);
    close(out[1]);
    assert_true(fm_write_all(child.to_child, command, sizeof command - 1));
    close(child.to_child);
    assert_int_equal(fm_read(out[0], got, sizeof got), 1);
    assert_int_equal(fm_read(child.from_child, got, sizeof got), 0);
    assert_int_equal(fm_child_reap(child.pid), 0);
    close(out[0]);
    close(child.from_child);
    close(child.errors);
}

static void a_killed_child_says_so(void **state) {
    (void)state;
    struct fm_child child;
    assert_int_equal(fm_child_start(&child, "/bin/cat", no_environment, NULL), 0);
    fm_child_kill(child.pid);
    assert_int_equal(fm_child_reap(child.pid), -SIGKILL);
    close(child.to_child);
    close(child.from_child);
    close(child.errors);
    assert_int_equal(fm_child_start(&child, "/bin/false", no_environment, NULL), 0);
    assert_int_equal(fm_child_reap(child.pid), 1);
    close(child.to_child);
    close(child.from_child);
    close(child.errors);
}

/* The killed child's own child keeps the pipe open as long as it lives. */
static void a_killed_child_takes_its_own_along(void **state) {
    (void)state;
    static const char start[] = "/bin/sleep 60 & echo x\n";
    struct fm_child child;
    char byte;
    assert_int_equal(fm_child_start(&child, "/bin/sh", no_environment, NULL), 0);
    assert_int_equal(getsid(child.pid), child.pid);
    assert_int_equal(getpgid(child.pid), child.pid);
    assert_true(fm_write_all(child.to_child, start, sizeof start - 1));
    assert_int_equal(fm_read(child.from_child, &byte, 1), 1);
    assert_int_equal(fm_read(child.from_child, &byte, 1), 1);
    fm_child_kill(child.pid);
    assert_int_equal(fm_child_reap(child.pid), -SIGKILL);
    assert_true(readable(child.from_child, WAIT_MS));
    assert_int_equal(fm_read(child.from_child, &byte, 1), 0);
    close(child.to_child);
    close(child.from_child);
    close(child.errors);
}

/* Whatever call fails, the error is returned and nothing is left open. */
static void a_start_that_fails_leaves_nothing(void **state) {
    (void)state;
    static const struct {
        const char *path;
        struct fault fault;
        int error;
    } rows[] = {
        {"/bin/cat", {"pipe2", 0, EMFILE}, EMFILE},   {"/bin/cat", {"pipe2", 1, ENFILE}, ENFILE},
        {"/bin/cat", {"pipe2", 2, EMFILE}, EMFILE},   {"/bin/cat", {"pipe2", 3, EMFILE}, EMFILE},
        {"/bin/cat", {"fork", 0, EAGAIN}, EAGAIN},    {"/bin/cat", {"dup2", 0, EBADF}, EBADF},
        {"/bin/cat", {"dup2", 1, EBADF}, EBADF},      {"/bin/cat", {"dup2", 2, EBADF}, EBADF},
        {"/no/such/program", {"none", 0, 0}, ENOENT}, {"/dev/null", {"none", 0, 0}, EACCES},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fm_child child;
        long before = open_descriptors();
        fault_count = 0;
        plan(rows[i].fault.call, rows[i].fault.skip, rows[i].fault.error);
        int error = fm_child_start(&child, rows[i].path, no_environment, NULL);
        fault_count = 0;
        if (error != rows[i].error || open_descriptors() != before) {
            fail_msg("row %zu: %s, %ld descriptors more", i, strerror(error), open_descriptors() - before);
        }
        assert_int_equal(__real_waitpid(-1, NULL, WNOHANG), -1); /* and there is no child */
    }
}

static void memory_of_a_process(void **state) {
    (void)state;
    const size_t size = 32u << 20;
    int64_t before = fm_process_memory(getpid());
    assert_true(before > 0);
    char *bytes = malloc(size);
    assert_non_null(bytes);
    for (size_t i = 0; i < size; i += 512) {
        ((volatile char *)bytes)[i] = 1;
    }
    assert_true(fm_process_memory(getpid()) - before > (int64_t)size / 2);
    free(bytes);
    assert_true(fm_process_memory(INT32_MAX) == -1);
}

/* Twelve pages of 2 MiB, which the kernel may turn into huge pages. */
#define MAPPED ((size_t)24 << 20)

static void expect_bytes(const char *bytes, size_t len, char wanted) {
    for (size_t i = 0; i < len; i += 4096) {
        assert_int_equal(((volatile const char *)bytes)[i], wanted);
    }
}

/* Maps a file, and reads all of it. */
static const char *map_file(char path[], char fill) {
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    char *bytes = malloc(MAPPED);
    assert_non_null(bytes);
    memset(bytes, fill, MAPPED);
    assert_int_equal(write(fd, bytes, MAPPED), MAPPED);
    free(bytes);
    const char *mapped = mmap(NULL, MAPPED, PROT_READ, MAP_SHARED, fd, 0);
    assert_true(mapped != MAP_FAILED);
    expect_bytes(mapped, MAPPED, fill);
    close(fd);
    return mapped;
}

static void drops_a_mapped_file(void **state) {
    (void)state;
    char path[] = "/tmp/fm-mapped-XXXXXX";
    const char *mapped = map_file(path, 'a');
    int64_t before = fm_process_memory(getpid());
    fm_mapped_file_drop(path);
    if (strcmp(fm_platform_name(), "linux") == 0) {
        assert_true(fm_private_memory() > 0 && fm_private_memory() < before);
        assert_true(before - fm_process_memory(getpid()) > (int64_t)MAPPED / 2);
    }
    expect_bytes(mapped, MAPPED, 'a');
    fm_mapped_file_drop("/nowhere");
    munmap((void *)mapped, MAPPED);
    unlink(path);
}

/* Pages that are not read are not copied. */
static void moves_what_is_read(void **state) {
    (void)state;
    char path[] = "/tmp/fm-moved-XXXXXX";
    struct fm_huge_pages pages = {.size = 0};
    const char *mapped = map_file(path, 'b');
    fm_huge_pages_find(&pages, path);
    if (pages.count == 0) {
        print_message("no huge pages here\n");
    } else {
        fm_mapped_file_drop(path);
        const char *from = (const char *)pages.ranges[0].from;
        expect_bytes(from, 2 * pages.size, 'b');
        size_t moved = 0;
        while (fm_huge_pages_next(&pages)) {
            moved++;
        }
        assert_int_equal(moved, 2);
        expect_bytes(mapped, MAPPED, 'b');
    }
    munmap((void *)mapped, MAPPED);
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drops_a_mapped_file),
        cmocka_unit_test(moves_what_is_read),
        cmocka_unit_test_setup(pipes_close_on_exec, reset),
        cmocka_unit_test_setup(reads_go_on, reset),
        cmocka_unit_test_setup(writes_go_on, reset),
        cmocka_unit_test_setup(waits_tell_what_is_ready, reset),
        cmocka_unit_test_setup(a_wait_goes_on_after_a_signal, reset),
        cmocka_unit_test_setup(a_write_waits_for_its_reader, reset),
        cmocka_unit_test_setup(the_end_of_input_is_zero, reset),
        cmocka_unit_test_setup(standard_descriptors, reset),
        cmocka_unit_test_setup(random_bytes_are_all_there, reset),
        cmocka_unit_test_setup(the_programs_folder, reset),
        cmocka_unit_test_setup(sleep_outlasts_a_signal, reset),
        cmocka_unit_test_setup(conditions_use_the_monotonic_clock, reset),
        cmocka_unit_test_setup(threads_block_signals, reset),
        cmocka_unit_test_setup(a_call_that_waits, reset),
        cmocka_unit_test_setup(a_call_that_takes_too_long, reset),
        cmocka_unit_test_setup(a_stack_of_any_size, reset),
        cmocka_unit_test_setup(ends, reset),
        cmocka_unit_test_setup(the_parents_death_is_seen, reset),
        cmocka_unit_test_setup(a_child_gets_its_arguments, reset),
        cmocka_unit_test_setup(a_quiet_write_raises_no_signal, reset),
        cmocka_unit_test_setup(a_child_has_three_pipes, reset),
        cmocka_unit_test_setup(a_child_has_what_it_is_given, reset),
        cmocka_unit_test_setup(a_child_may_be_given_less, reset),
        cmocka_unit_test_setup(a_child_has_what_it_is_given, reset),
        cmocka_unit_test_setup(a_child_may_be_given_less, reset),
        cmocka_unit_test_setup(a_killed_child_says_so, reset),
        cmocka_unit_test_setup(a_killed_child_takes_its_own_along, reset),
        cmocka_unit_test_setup(a_start_that_fails_leaves_nothing, reset),
        cmocka_unit_test(memory_of_a_process),
    };
    return cmocka_run_group_tests_name("platform", tests, NULL, NULL);
}
