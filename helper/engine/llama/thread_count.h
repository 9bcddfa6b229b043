/*
 * How many of the compute threads take part. ggml's threads wait for each other many times for each token, and spin
 * meanwhile. If another program takes the core of one thread, all threads lose this time. Beside two busy programs, two
 * threads took ten times as long as one thread. So when the threads lose processor time, fewer threads are tried; now
 * and then more threads are tried. The faster number stays. Nothing here blocks; one thread at a time.
 */
#ifndef FM_ENGINE_LLAMA_THREAD_COUNT_H
#define FM_ENGINE_LLAMA_THREAD_COUNT_H

#include <stdbool.h>
#include <stdint.h>

#define FM_BATCH_KINDS 16 /* batches of 1 token, of 2 or 3, of 4 to 7 ...: a token costs about the same in each */

struct fm_thread_count {
    int most;                        /* threads that exist */
    int now;                         /* threads that are to take part; 1 to `most` */
    int before;                      /* while another number is tried: `now` before the trial; else 0 */
    bool loses;                      /* in the last window without a trial, the threads lost processor time */
    int64_t next_ms;                 /* the earliest time of the next trial */
    int64_t pause_ms;                /* the pause before the next trial; doubled while trials fail */
    int64_t wall_us;                 /* the time of computing in this window */
    int64_t cpu_us;                  /* the processor time of computing in this window, of all threads together */
    int64_t took_us[FM_BATCH_KINDS]; /* the part of wall_us that each kind of batch took */
    int64_t tokens[FM_BATCH_KINDS];  /* the tokens that were computed in took_us */
    double cost_us[FM_BATCH_KINDS];  /* what a token took when it was measured last; 0: never */
};

/* One batch, or as much of it as was computed before it was given up. */
struct fm_computed {
    int64_t tokens; /* tokens of the batch; 0: it was given up */
    int64_t wall_us;
    int64_t cpu_us; /* processor time of the process in that time */
};

/* Begins with all of `most` threads. */
void fm_thread_count_init(struct fm_thread_count *count, int most);

/* Call it when a batch was computed, at `now_ms`. Changes ->now when enough was computed to compare. */
void fm_thread_count_note(struct fm_thread_count *count, int64_t now_ms, const struct fm_computed *computed);

/*
 * True if all threads compute, and no other number is being tried or due to be tried. Otherwise short batches are
 * better.
 */
bool fm_thread_count_is_settled(const struct fm_thread_count *count, int64_t now_ms);

/* Whether a batch that is not ready after `wall_us` should be given up, and begun again with fewer threads. */
bool fm_thread_count_is_lost(const struct fm_thread_count *count, int64_t wall_us, int64_t cpu_us);

#endif
