/* How many compute threads take part: thread_count.h. */
#include "engine/llama/thread_count.h"

#include <string.h>

#define WINDOW_US                                                                                                      \
    80000 /* of computing before a decision: some turns of what the kernel's scheduler gives a program                 \
           */

/*
 * The part of a thread's time that may be lost before fewer threads are tried. A desktop's small programs do not take
 * more.
 */
#define LOST_MAX 0.25

/* Threads that each lose this much of their time compute next to nothing. */
#define LOST_MUCH 0.4

/* Another number of threads must be this much faster to stay. */
#define FASTER 0.92

/* The pause before another number is tried again. A trial that fails takes a window or two. */
#define PAUSE_MIN_MS 250
#define PAUSE_MAX_MS 8000

void fm_thread_count_init(struct fm_thread_count *count, int most) {
    *count = (struct fm_thread_count){.most = most, .now = most, .pause_ms = PAUSE_MIN_MS};
}

static size_t kind_of(int64_t tokens) {
    size_t kind = 0;
    for (; tokens > 1 && kind + 1 < FM_BATCH_KINDS; tokens /= 2) {
        kind++;
    }
    return kind;
}

/* Lost time, as a number of threads. */
static double lost(const struct fm_thread_count *count, int64_t wall_us, int64_t cpu_us) {
    return wall_us > 0 ? count->now - (double)cpu_us / (double)wall_us : 0;
}

bool fm_thread_count_is_lost(const struct fm_thread_count *count, int64_t wall_us, int64_t cpu_us) {
    double much = count->before && count->before < count->now ? LOST_MAX : LOST_MUCH * count->now;
    return count->now > 1 && wall_us >= WINDOW_US && lost(count, wall_us, cpu_us) > much;
}

bool fm_thread_count_is_settled(const struct fm_thread_count *count, int64_t now_ms) {
    return count->now == count->most && !count->before && !(count->loses && now_ms >= count->next_ms);
}

/* ---- trials ---- */

/* The window's time in proportion to the earlier times of such batches; 0: there were none. */
static double compare_times(const struct fm_thread_count *count) {
    double took = 0;
    double expected = 0;
    for (size_t i = 0; i < FM_BATCH_KINDS; i++) {
        if (count->tokens[i] && count->cost_us[i] > 0) {
            took += (double)count->took_us[i];
            expected += count->cost_us[i] * (double)count->tokens[i];
        }
    }
    return expected > 0 ? took / expected : 0;
}

/* Changes the costs that the window did not measure by `ratio`, because the measured costs changed by it. */
static void remember_costs(struct fm_thread_count *count, double ratio) {
    for (size_t i = 0; i < FM_BATCH_KINDS; i++) {
        bool seen = count->tokens[i] > 0;
        count->cost_us[i] = seen ? (double)count->took_us[i] / (double)count->tokens[i] : count->cost_us[i] * ratio;
    }
}

/* The number of threads that would get all their time. */
static int fewer(const struct fm_thread_count *count) {
    int whole = (int)(count->cpu_us / count->wall_us);
    return whole < 1 ? 1 : whole < count->now ? whole : count->now - 1;
}

/* Ends the trial: the new number stays, or the old one comes back. */
static void settle_trial(struct fm_thread_count *count, int64_t now_ms, bool stays) {
    count->now = stays ? count->now : count->before;
    count->before = 0;
    count->pause_ms = stays ? PAUSE_MIN_MS : 2 * count->pause_ms;
    count->pause_ms = count->pause_ms < PAUSE_MAX_MS ? count->pause_ms : PAUSE_MAX_MS;
    count->next_ms = now_ms + count->pause_ms;
}

static void end_trial(struct fm_thread_count *count, int64_t now_ms) {
    double ratio = compare_times(count);
    if (ratio > 0) { /* otherwise the trial continues, until there is a batch of a kind that was measured before */
        bool stays = ratio < FASTER;
        settle_trial(count, now_ms, stays);
        if (stays) {
            remember_costs(count, ratio);
        }
    }
}

/*
 * Fewer threads after two windows in a row: a single window may be disturbed for a moment only, and a trial amid a
 * prompt takes as long as a batch of the prompt.
 */
static void begin_trial(struct fm_thread_count *count, int64_t now_ms) {
    bool loses = count->now > 1 && lost(count, count->wall_us, count->cpu_us) > LOST_MAX;
    bool at_first = loses && !count->loses;
    count->loses = loses;
    remember_costs(count, 1);
    if (now_ms < count->next_ms || at_first || (!loses && count->now == count->most)) {
        return;
    }
    count->before = count->now;
    count->now = loses ? fewer(count) : 2 * count->now < count->most ? 2 * count->now : count->most;
}

static void begin_window(struct fm_thread_count *count) {
    count->wall_us = 0;
    count->cpu_us = 0;
    memset(count->took_us, 0, sizeof count->took_us);
    memset(count->tokens, 0, sizeof count->tokens);
}

/* Handles a batch that was given up: it only shows that the present number of threads is too large. */
static void give_up(struct fm_thread_count *count, int64_t now_ms) {
    if (count->before && count->before < count->now) {
        settle_trial(count, now_ms, false);
    } else {
        count->now = fewer(count);
        settle_trial(count, now_ms, true);
    }
    begin_window(count);
}

void fm_thread_count_note(struct fm_thread_count *count, int64_t now_ms, const struct fm_computed *computed) {
    if (computed->tokens == 0 && !fm_thread_count_is_lost(count, computed->wall_us, computed->cpu_us)) {
        return; /* the batch was given up for another reason */
    }
    count->wall_us += computed->wall_us;
    count->cpu_us += computed->cpu_us;
    if (computed->tokens == 0) {
        give_up(count, now_ms);
        return;
    }
    size_t kind = kind_of(computed->tokens);
    count->took_us[kind] += computed->wall_us;
    count->tokens[kind] += computed->tokens;
    if (count->wall_us >= WINDOW_US) {
        count->before ? end_trial(count, now_ms) : begin_trial(count, now_ms);
        begin_window(count);
    }
}
