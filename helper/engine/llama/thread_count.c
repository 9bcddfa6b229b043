/* How many compute threads take part, under thread_count.h. */
#include "engine/llama/thread_count.h"

#define WINDOW_US                                                                                                      \
    80000 /* of computing before a decision: some turns of what the kernel's scheduler gives a program                 \
           */

/* So much of a thread's time may go elsewhere: a desktop's small programs take no more, two that compute take half. */
#define LOST_MAX 0.25

/* Before more threads are tried again. A trial that fails may take two windows. */
#define PAUSE_MIN_MS 250
#define PAUSE_MAX_MS 8000

#define STEADY_US 1000000 /* of computing after a trial: then it went well, and a later loss is another event */

void fm_thread_count_init(struct fm_thread_count *count, int most) {
    *count = (struct fm_thread_count){.most = most, .now = most};
}

/* Threads' worth of time that went elsewhere. */
static double lost(const struct fm_thread_count *count, int64_t wall_us, int64_t cpu_us) {
    return count->now - (double)cpu_us / (double)wall_us;
}

bool fm_thread_count_is_lost(const struct fm_thread_count *count, int64_t wall_us, int64_t cpu_us) {
    return count->now > 1 && wall_us >= WINDOW_US && lost(count, wall_us, cpu_us) > LOST_MAX;
}

/* As many as had all their time. */
static void take_fewer(struct fm_thread_count *count, int64_t now_ms) {
    int whole = (int)(count->cpu_us / count->wall_us);
    int64_t pause = count->good_us < STEADY_US ? 2 * count->pause_ms : 0;
    pause = pause > PAUSE_MIN_MS ? pause : PAUSE_MIN_MS;
    count->now = whole < 1 ? 1 : whole < count->now ? whole : count->now - 1;
    count->pause_ms = pause < PAUSE_MAX_MS ? pause : PAUSE_MAX_MS;
    count->more_ms = now_ms + count->pause_ms;
}

static void take_more(struct fm_thread_count *count) {
    count->now = 2 * count->now < count->most ? 2 * count->now : count->most;
    count->good_us = 0;
}

void fm_thread_count_note(struct fm_thread_count *count, int64_t now_ms, int64_t wall_us, int64_t cpu_us) {
    count->wall_us += wall_us;
    count->cpu_us += cpu_us;
    if (count->wall_us < WINDOW_US) {
        return;
    }
    if (fm_thread_count_is_lost(count, count->wall_us, count->cpu_us)) {
        take_fewer(count, now_ms);
    } else if (count->now < count->most && now_ms >= count->more_ms) {
        take_more(count);
    } else {
        count->good_us += count->wall_us;
    }
    count->wall_us = 0;
    count->cpu_us = 0;
}
