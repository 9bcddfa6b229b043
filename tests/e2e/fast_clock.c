/*
 * A library for LD_PRELOAD (Linux, glibc) with a monotonic clock that runs faster than the true one, so that a test can
 * wait for a limit of minutes. FM_FAST_CLOCK names a file of two int64_t: the time in ns at which the clock gets fast,
 * and how many extra seconds then pass in each second (0: none). Waits on a condition follow this clock; sleeps and
 * polls keep the true time.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000

struct rate {
    _Atomic int64_t from;
    _Atomic int64_t more;
};

static struct rate *rate;
static int (*true_wait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);

__attribute__((constructor)) static void map_rate(void) {
    const char *path = getenv("FM_FAST_CLOCK");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *mapped = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *rate, PROT_READ, MAP_SHARED, fd, 0);
    rate = mapped == MAP_FAILED ? NULL : mapped;
    if (fd >= 0) {
        close(fd);
    }
    /* x86_64 has two versions of this function; the older one has another layout of conditions */
    *(void **)&true_wait = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    if (!true_wait) {
        *(void **)&true_wait = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    }
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    long failure = syscall(SYS_clock_gettime, clock, now);
    int64_t more = rate ? atomic_load(&rate->more) : 0;
    if (failure == 0 && more && clock == CLOCK_MONOTONIC) {
        int64_t ns = (int64_t)now->tv_sec * SECOND + now->tv_nsec;
        ns += (ns - atomic_load(&rate->from)) * more;
        *now = (struct timespec){.tv_sec = ns / SECOND, .tv_nsec = ns % SECOND};
    }
    return (int)failure;
}

/* All conditions of the helper are on the monotonic clock. */
int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until) {
    struct timespec real = *until;
    int64_t more = rate ? atomic_load(&rate->more) : 0;
    if (more) {
        int64_t from = atomic_load(&rate->from);
        int64_t ns = (int64_t)until->tv_sec * SECOND + until->tv_nsec;
        ns = from + (ns - from) / (more + 1);
        real = (struct timespec){.tv_sec = ns / SECOND, .tv_nsec = ns % SECOND};
    }
    return true_wait(condition, mutex, &real);
}
