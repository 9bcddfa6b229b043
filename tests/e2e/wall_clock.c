/*
 * A library for LD_PRELOAD (Linux, glibc) that changes the wall clock while a process runs. FM_WALL_CLOCK names a file
 * of one int64_t: the seconds that are added to time(), gettimeofday() and CLOCK_REALTIME. A test writes the file to
 * set the clock. Waits of the kernel until a wall-clock time use the true clock.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const _Atomic int64_t *shift;

__attribute__((constructor)) static void map_shift(void) {
    const char *path = getenv("FM_WALL_CLOCK");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *mapped = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *shift, PROT_READ, MAP_SHARED, fd, 0);
    shift = mapped == MAP_FAILED ? NULL : mapped;
    if (fd >= 0) {
        close(fd);
    }
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    long failure = syscall(SYS_clock_gettime, clock, now);
    if (failure == 0 && shift && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        now->tv_sec += (time_t)atomic_load(shift);
    }
    return (int)failure;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec exact;
    (void)zone;
    int failure = clock_gettime(CLOCK_REALTIME, &exact);
    *now = (struct timeval){.tv_sec = exact.tv_sec, .tv_usec = exact.tv_nsec / 1000};
    return failure;
}

time_t time(time_t *now) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (now) {
        *now = exact.tv_sec;
    }
    return exact.tv_sec;
}
