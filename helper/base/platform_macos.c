/* platform_os.h and the rest of platform.h and clock.h on macOS. */
#ifdef __APPLE__

#include "base/clock.h"
#include "base/platform.h"
#include "base/platform_confine.h"
#include "base/platform_os.h"

#include <fcntl.h>
#include <libproc.h>
#include <limits.h>
#include <mach-o/dyld.h>
#include <mach/mach.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/event.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysctl.h>
#include <unistd.h>

#define PARENT_POLL_MS 1000 /* how often the parent is checked if there is no event queue */

static pid_t parent_pid;
static int parent_queue = -1;

const char *fm_platform_name(void) {
    return "macos";
}

const char *const fm_os_cache_variable = NULL;
const char *const fm_os_cache_name = "Library/Caches";

int64_t fm_os_changed_ms(const struct stat *info) {
    return (int64_t)info->st_mtimespec.tv_sec * 1000 + info->st_mtimespec.tv_nsec / 1000000;
}

/*
 * On macOS, fsync alone may leave the bytes in the drive's cache (fsync(2)), so F_FULLFSYNC is used. Not every file
 * system has it.
 */
int fm_os_sync(int fd) {
    return fcntl(fd, F_FULLFSYNC) == 0 ? 0 : fsync(fd);
}

int fm_os_pipe(int fds[2]) {
    if (pipe(fds) != 0) {
        return -1;
    }
    fcntl(fds[0], F_SETFD, FD_CLOEXEC);
    fcntl(fds[1], F_SETFD, FD_CLOEXEC);
    return 0;
}

bool fm_os_program_path(char *path, size_t size) {
    char raw[PATH_MAX];
    char real[PATH_MAX];
    uint32_t raw_size = sizeof raw;
    if (_NSGetExecutablePath(raw, &raw_size) != 0 || !realpath(raw, real)) {
        return false;
    }
    return strlcpy(path, real, size) < size;
}

/* macOS does not report this for a UNIX socket. */
size_t fm_socket_unread(int fd) {
    int bytes;
    socklen_t size = sizeof bytes;
    return getsockopt(fd, SOL_SOCKET, SO_NWRITE, &bytes, &size) == 0 && bytes > 0 ? (size_t)bytes : 0;
}

/* macOS has no affinity and no quotas. fm_math_cores knows which cores are the fast ones. */
void fm_processors(struct fm_processors *processors) {
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    int count = online > 0 ? (int)online : 1;
    *processors = (struct fm_processors){.count = count, .cores = count};
}

int64_t fm_memory_limit(void) {
    int64_t bytes = 0;
    size_t size = sizeof bytes;
    return sysctlbyname("hw.memsize", &bytes, &size, NULL, 0) == 0 ? bytes : 0;
}

int fm_macos_version(void) {
    char version[32] = "";
    size_t size = sizeof version - 1;
    bool known = sysctlbyname("kern.osproductversion", version, &size, NULL, 0) == 0;
    return known ? (int)strtol(version, NULL, 10) : 0;
}

void fm_memory_trim(void) {}

void fm_thread_be_prompt(void) {}

void fm_random(void *data, size_t len) {
    arc4random_buf(data, len);
}

/* An event queue polls readable when it has an event. A process that has ended already causes no event. */
int fm_os_watch_process(pid_t pid) {
    int queue = kqueue();
    struct kevent change;
    EV_SET(&change, (uintptr_t)pid, EVFILT_PROC, EV_ADD, NOTE_EXIT, 0, NULL);
    if (queue >= 0 && kevent(queue, &change, 1, NULL, 0, NULL) != 0) {
        close(queue);
        return -1;
    }
    if (queue >= 0) {
        fcntl(queue, F_SETFD, FD_CLOEXEC);
    }
    return queue;
}

void fm_os_note_parent(void) {
    parent_pid = getppid();
    parent_queue = fm_os_watch_process(parent_pid);
}

void fm_os_wait_for_parent(void) {
    const struct timespec pause = {.tv_sec = PARENT_POLL_MS / 1000};
    struct kevent event;
    while (getppid() == parent_pid) {
        int count = parent_queue < 0 ? -1 : kevent(parent_queue, NULL, 0, &event, 1, &pause);
        if (count > 0) {
            return;
        }
        if (count < 0) {
            fm_sleep_ms(PARENT_POLL_MS);
        }
    }
}

/* macOS has no such signal for a parent's death, so the engine watches its parent itself. */
void fm_os_die_with_parent(pid_t parent) {
    (void)parent;
}

/*
 * Seatbelt. Apple calls the function deprecated and leaves it out of the SDK's newer headers; but browsers still use
 * it, and libSystem exports it. With flags 0, the text is a profile, not a profile's name. Open descriptors stay
 * writable: only opening a file is denied.
 */
int sandbox_init(const char *profile, uint64_t flags, char **why);
void sandbox_free_error(char *why);

#define NOTHING_BUT_READING                                                                                            \
    "(version 1)\n(allow default)\n(deny file-write*)\n(deny process-exec*)\n(deny process-fork)\n"

void fm_sandbox_enter(const struct fm_sandbox_needs *needs, struct fm_sandbox *in_force) {
    const char *asked = getenv("FM_ENGINE_SEATBELT");
    char *why = NULL;
    *in_force = (struct fm_sandbox){0};
    if (asked ? strcmp(asked, "off") == 0 : needs->services) {
        return;
    }
    const char *profile = needs->network ? NOTHING_BUT_READING : NOTHING_BUT_READING "(deny network*)\n";
    if (sandbox_init(profile, 0, &why) == 0) {
        in_force->network_denied = !needs->network;
    } else if (why) {
        sandbox_free_error(why);
    }
}

int64_t fm_os_thread_ms(pthread_t thread) {
    thread_basic_info_data_t info;
    mach_msg_type_number_t count = THREAD_BASIC_INFO_COUNT;
    if (thread_info(pthread_mach_thread_np(thread), THREAD_BASIC_INFO, (thread_info_t)&info, &count) != KERN_SUCCESS) {
        return -1;
    }
    int64_t micros = (int64_t)info.user_time.microseconds + info.system_time.microseconds;
    return ((int64_t)info.user_time.seconds + info.system_time.seconds) * 1000 + micros / 1000;
}

int64_t fm_process_memory(pid_t pid) {
    struct proc_taskinfo info;
    int got = proc_pidinfo(pid, PROC_PIDTASKINFO, 0, &info, sizeof info);
    return got == (int)sizeof info ? (int64_t)info.pti_resident_size : -1;
}

int64_t fm_private_memory(void) {
    return -1;
}

void fm_process_hide(void) {
    const struct rlimit none = {.rlim_cur = 0, .rlim_max = 0};
    setrlimit(RLIMIT_CORE, &none);
}

/* macOS has no capabilities: root's powers come from its user id. */
bool fm_drop_capabilities(void) {
    return false;
}

/* Asks the system which descriptors are open, because a loop up to the host's limit could take a million steps. */
bool fm_os_close_rest_on_exec(void) {
    struct proc_fdinfo open_fds[1024];
    int size = proc_pidinfo(getpid(), PROC_PIDLISTFDS, 0, open_fds, sizeof open_fds);
    size_t count = size > 0 ? (size_t)size / sizeof open_fds[0] : 0;
    if (count == 0 || count == sizeof open_fds / sizeof open_fds[0]) {
        return false; /* there may be more */
    }
    for (size_t i = 0; i < count; i++) {
        if (open_fds[i].proc_fd > STDERR_FILENO) {
            fcntl(open_fds[i].proc_fd, F_SETFD, FD_CLOEXEC);
        }
    }
    return true;
}

int fm_cond_init(pthread_cond_t *cond) {
    return pthread_cond_init(cond, NULL);
}

void fm_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t deadline_ms) {
    int64_t left = deadline_ms - fm_now_ms();
    left = left > 0 ? left : 0;
    struct timespec relative = {.tv_sec = (time_t)(left / 1000), .tv_nsec = (long)(left % 1000) * 1000000};
    pthread_cond_timedwait_relative_np(cond, mutex, &relative);
}

#else
typedef int fm_platform_macos_is_empty;
#endif
