/* platform_os.h, platform.h and clock.h on Linux, except the parts that are in the files platform_*_linux.c. */
#ifdef __linux__

#include "base/clock.h"
#include "base/platform.h"
#include "base/platform_os.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <linux/sockios.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* How often the parent is checked if the kernel has no pidfd (before 5.3). */
#define PARENT_POLL_MS 500

const char *fm_platform_name(void) {
    return "linux";
}

#define SHORT_TURN_NS 100000u

static pid_t parent_pid;
static int parent_fd = -1;

/*
 * Asks for the shortest time slices, which Linux 6.12 and later grant (sched_setattr(2): sched_runtime of SCHED_OTHER).
 * Long slices for the computing threads were tried instead, but the longest waits of other threads became longer.
 */
void fm_thread_be_prompt(void) {
    struct { /* struct sched_attr, which the C library does not declare; sched(7) */
        uint32_t size;
        uint32_t policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime_ns;
        uint64_t deadline_ns;
        uint64_t period_ns;
    } attributes = {.size = sizeof attributes};
    if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) == 0 && attributes.policy == SCHED_OTHER) {
        attributes.flags = SCHED_FLAG_RESET_ON_FORK;
        attributes.runtime_ns = SHORT_TURN_NS;
        (void)syscall(SYS_sched_setattr, 0, &attributes, 0); /* an older system ignores or refuses it */
    }
}

int64_t fm_os_thread_ms(pthread_t thread) {
    clockid_t clock;
    struct timespec used;
    bool known = pthread_getcpuclockid(thread, &clock) == 0 && clock_gettime(clock, &used) == 0;
    return known ? (int64_t)used.tv_sec * 1000 + used.tv_nsec / 1000000 : -1;
}

const char *const fm_os_cache_variable = "XDG_CACHE_HOME";
const char *const fm_os_cache_name = ".cache";

int64_t fm_os_changed_ms(const struct stat *info) {
    return (int64_t)info->st_mtim.tv_sec * 1000 + info->st_mtim.tv_nsec / 1000000;
}

int fm_os_sync(int fd) {
    return fdatasync(fd);
}

int fm_os_pipe(int fds[2]) {
    return pipe2(fds, O_CLOEXEC);
}

bool fm_os_program_path(char *path, size_t size) {
    ssize_t len = readlink("/proc/self/exe", path, size);
    if (len <= 0 || (size_t)len >= size) {
        return false;
    }
    path[len] = '\0';
    return true;
}

/* unix(7), SIOCOUTQ: approximate, because the kernel counts whole writes, with its overhead. */
size_t fm_socket_unread(int fd) {
    int bytes;
    return ioctl(fd, SIOCOUTQ, &bytes) == 0 && bytes > 0 ? (size_t)bytes : 0;
}

int fm_macos_version(void) {
    return 0;
}

void fm_memory_trim(void) {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

void fm_random(void *data, size_t len) {
    char *at = data;
    while (len) {
        ssize_t got = getrandom(at, len, 0);
        if (got > 0) {
            at += got;
            len -= (size_t)got;
        }
    }
}

/* pidfd_open(2), since 5.3. */
int fm_os_watch_process(pid_t pid) {
#ifdef SYS_pidfd_open
    return (int)syscall(SYS_pidfd_open, pid, 0u);
#else
    (void)pid;
    return -1;
#endif
}

/*
 * Does not use PR_SET_PDEATHSIG: that watches the thread that forked us, which a host may end early. A pidfd watches
 * the process.
 */
void fm_os_note_parent(void) {
    parent_pid = getppid();
    parent_fd = fm_os_watch_process(parent_pid);
}

void fm_os_wait_for_parent(void) {
    struct pollfd poll_fd = {.fd = parent_fd, .events = POLLIN};
    int timeout = parent_fd >= 0 ? -1 : PARENT_POLL_MS;
    while (getppid() == parent_pid) {
        poll(&poll_fd, 1, timeout);
        if (poll_fd.revents) {
            return;
        }
    }
}

void fm_os_die_with_parent(pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(127);
    }
}

/* The flag came with Linux 5.11, the call with 5.9. Some C libraries are older and lack both numbers. */
#define NR_CLOSE_RANGE      436
#define CLOSE_RANGE_ON_EXEC (1u << 2)

bool fm_os_close_rest_on_exec(void) {
    return syscall(NR_CLOSE_RANGE, 3u, ~0u, CLOSE_RANGE_ON_EXEC) == 0;
}

/* This also hides /proc/PID from other processes, and prevents that a program in core_pattern gets a dump. */
void fm_process_hide(void) {
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

/* Reads statm (proc(5)): all pages, the resident ones, and the shared ones among the resident. False: not known. */
static bool read_statm(pid_t pid, long long pages[3]) {
    char text[128];
    char *rest = text;
    snprintf(text, sizeof text, "/proc/%d/statm", (int)pid);
    int fd = open(text, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0) {
        close(fd);
    }
    text[got > 0 ? got : 0] = '\0';
    for (size_t i = 0; i < 3; i++) {
        pages[i] = strtoll(rest, &rest, 10);
    }
    return pages[1] > 0;
}

int64_t fm_process_memory(pid_t pid) {
    long long pages[3];
    return read_statm(pid, pages) ? (int64_t)pages[1] * sysconf(_SC_PAGESIZE) : -1;
}

int64_t fm_private_memory(void) {
    long long pages[3];
    return read_statm(getpid(), pages) ? (int64_t)(pages[1] - pages[2]) * sysconf(_SC_PAGESIZE) : -1;
}

int fm_cond_init(pthread_cond_t *cond) {
    pthread_condattr_t attr;
    int error = pthread_condattr_init(&attr);
    if (error) {
        return error;
    }
    error = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    error = error ? error : pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
    return error;
}

void fm_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t deadline_ms) {
    struct timespec until = {.tv_sec = (time_t)(deadline_ms / 1000), .tv_nsec = (long)(deadline_ms % 1000) * 1000000};
    pthread_cond_timedwait(cond, mutex, &until);
}

#else
typedef int fm_platform_linux_is_empty;
#endif
