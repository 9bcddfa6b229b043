/*
 * Counters for metrics.get: what the helper has done since it started. They only grow. The caller holds the front's
 * lock, except for the byte counters, which any thread may count.
 */
#ifndef FM_FRONT_METRICS_H
#define FM_FRONT_METRICS_H

#include "surface/surface.h"

#include <stdatomic.h>

/* How requests ended; each is counted once. */
enum fm_outcome {
    FM_OUTCOME_COMPLETED,
    FM_OUTCOME_INCOMPLETE, /* ended at a token limit, or by a content filter */
    FM_OUTCOME_FAILED,
    FM_OUTCOME_TIMED_OUT,
    FM_OUTCOME_CANCELLED,
    FM_OUTCOME_REFUSED, /* refused before they were queued */
    FM_OUTCOMES,
};

struct fm_metrics {
    int64_t outcomes[FM_OUTCOMES];
    struct fm_usage tokens;    /* tokens of all choices; the prompt counts for each choice */
    struct fm_timings timings; /* of all choices */
    int64_t engine_starts;
    int64_t engine_deaths; /* engines that died unexpectedly */
    _Atomic int64_t host_received;
    _Atomic int64_t host_sent; /* bytes queued for the host */
    _Atomic int64_t engines_received;
    _Atomic int64_t engines_sent;
};

/* Counts a request that has ended. `error` says how it failed, if it did. */
void fm_metrics_count_end(struct fm_metrics *metrics, enum fm_finish finish, const struct fm_error *error);

/* Counts a choice of an answer: a finished one, or the part that was generated. */
void fm_metrics_count_choice(struct fm_metrics *metrics, const struct fm_answer *answer);

/* Any thread. */
static inline void fm_metrics_count_bytes(_Atomic int64_t *counter, size_t bytes) {
    atomic_fetch_add_explicit(counter, (int64_t)bytes, memory_order_relaxed);
}

#endif
