/* The clocks: monotonic time for every deadline; the wall clock only for timestamps. */
#include "base/clock.h"

#include <errno.h>
#include <time.h>

static int64_t read_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t fm_now_ms(void) {
    return read_ns(CLOCK_MONOTONIC) / 1000000;
}

int64_t fm_now_us(void) {
    return read_ns(CLOCK_MONOTONIC) / 1000;
}

int64_t fm_cpu_time_us(void) {
    return read_ns(CLOCK_PROCESS_CPUTIME_ID) / 1000;
}

int64_t fm_wall_seconds(void) {
    return (int64_t)time(NULL);
}

void fm_sleep_ms(int64_t ms) {
    struct timespec left = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}
