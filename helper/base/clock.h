/* Monotonic time. The wall clock is read only for `created_at` and `completed_at`; no deadline depends on it. */
#ifndef FM_BASE_CLOCK_H
#define FM_BASE_CLOCK_H

#include <pthread.h>
#include <stdint.h>

/* Milliseconds and microseconds of the monotonic clock, which never goes back. Any thread; these never block. */
int64_t fm_now_ms(void);
int64_t fm_now_us(void);

/* Processor time of all threads of this process together, in microseconds. On Windows it grows in steps of 15 ms. */
int64_t fm_cpu_time_us(void);

/* Seconds since 1970, by the wall clock. */
int64_t fm_wall_seconds(void);

/* Sleeps for `ms` milliseconds; a signal does not shorten it. */
void fm_sleep_ms(int64_t ms);

/* A condition variable whose timed waits use the monotonic clock. Returns 0 or an errno value. */
int fm_cond_init(pthread_cond_t *cond);

/*
 * Waits on `cond` (initialised by fm_cond_init) with `mutex` held, until signalled or until fm_now_ms() reaches
 * `deadline_ms`. May return early, so the caller checks its condition again.
 */
void fm_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t deadline_ms);

#endif
