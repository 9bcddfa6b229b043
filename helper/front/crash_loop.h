/*
 * An engine that dies again and again: after FM_CRASHES_MAX deaths in a row with one model, without a job that ended
 * well between them, requests for that model are refused for a while that doubles with every further death. Pure: no
 * locks, the clock is handed in.
 */
#ifndef FM_FRONT_CRASH_LOOP_H
#define FM_FRONT_CRASH_LOOP_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

#define FM_CRASHES_MAX      3
#define FM_BACKOFF_FIRST_MS 1000
#define FM_BACKOFF_MAX_MS   30000

/* Zeroed, it is ready. */
struct fm_crash_loop {
    char *model; /* the id of the model that was in the engine; owned */
    unsigned crashes;
    int64_t retry_ms;     /* when an engine may be started again */
    struct fm_error last; /* what the last death was */
};

/* The engine died with `model` in it. Out of memory, the death is not counted. */
void fm_crash_loop_note(struct fm_crash_loop *loop, const char *model, const struct fm_error *error, int64_t now_ms);

/* A job ended well, or nothing counts any more. Frees what is owned. */
void fm_crash_loop_reset(struct fm_crash_loop *loop);

/* FM_OK, or FM_UNAVAILABLE with a detail that tells the reason and when to try again. */
FM_MUST_USE enum fm_code fm_crash_loop_check(const struct fm_crash_loop *loop, const char *model, int64_t now_ms,
                                             struct fm_error *error);

#endif
