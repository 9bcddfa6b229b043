/*
 * Limits an engine that dies again and again. FM_CRASHES_MAX deaths in a row with one model, without a job of that
 * model that ended well between them, start a pause in which requests for that model are refused. The pause doubles
 * with every further death. Pure: no locks, the caller passes the time.
 */
#ifndef FM_FRONT_ENGINES_CRASH_LOOP_H
#define FM_FRONT_ENGINES_CRASH_LOOP_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FM_CRASHES_MAX      3
#define FM_BACKOFF_FIRST_MS 1000
#define FM_BACKOFF_MAX_MS   30000
#define FM_CRASH_MODELS_MAX 8

/* The deaths with one model. */
struct fm_crashes {
    char *model; /* its id; owned */
    unsigned count;
    int64_t retry_ms;     /* when an engine may be started again */
    struct fm_error last; /* the error of the last death */
};

/* All zero is a valid start: no deaths. */
struct fm_crash_loop {
    struct fm_crashes models[FM_CRASH_MODELS_MAX]; /* the model with the latest death comes first */
    size_t count;
};

/*
 * Notes that the engine died with `model` in it. If FM_CRASH_MODELS_MAX other models are remembered, the one whose last
 * death is the oldest is forgotten. When out of memory, the death is not counted.
 */
void fm_crash_loop_note(struct fm_crash_loop *loop, const char *model, const struct fm_error *error, int64_t now_ms);

/* Notes that a job of `model` ended well: the model's deaths no longer count. */
void fm_crash_loop_reset(struct fm_crash_loop *loop, const char *model);

/* Frees what is owned; afterwards there are no deaths. */
void fm_crash_loop_free(struct fm_crash_loop *loop);

/* FM_OK, or FM_UNAVAILABLE with a detail that says why, and when to try again. */
FM_MUST_USE enum fm_code fm_crash_loop_check(const struct fm_crash_loop *loop, const char *model, int64_t now_ms,
                                             struct fm_error *error);

#endif
