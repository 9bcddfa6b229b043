/*
 * How many of the compute threads take part. ggml's threads wait for each other many times a token, and spin meanwhile:
 * where another program keeps one of them off its core, all of them lose that time. Two threads beside two busy
 * programs were seen to take ten times as long as one. So what the process gets of the processors is compared with what
 * its threads ask for. Nothing here blocks; one thread at a time.
 */
#ifndef FM_ENGINE_LLAMA_THREAD_COUNT_H
#define FM_ENGINE_LLAMA_THREAD_COUNT_H

#include <stdbool.h>
#include <stdint.h>

struct fm_thread_count {
    int most;         /* threads there are */
    int now;          /* threads that are to take part; 1 to `most` */
    int64_t wall_us;  /* computing since the last decision: the time, */
    int64_t cpu_us;   /* and that of the processors, all threads together */
    int64_t good_us;  /* computing without a loss since more threads were tried */
    int64_t more_ms;  /* when they may be tried again */
    int64_t pause_ms; /* before that; doubled while a trial soon ends in a loss */
};

/* All of `most` threads, at first. */
void fm_thread_count_init(struct fm_thread_count *count, int most);

/*
 * The threads computed for `wall_us` microseconds up to `now_ms`, and had `cpu_us` of the processors. Changes ->now
 * when there was enough of that to tell.
 */
void fm_thread_count_note(struct fm_thread_count *count, int64_t now_ms, int64_t wall_us, int64_t cpu_us);

/* Whether so much time is lost already that what is being computed is done sooner from the start, by fewer threads. */
bool fm_thread_count_is_lost(const struct fm_thread_count *count, int64_t wall_us, int64_t cpu_us);

#endif
