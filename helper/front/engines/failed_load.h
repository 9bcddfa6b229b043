/*
 * The last load that failed, so that capabilities.get tells of it before the next request meets it. Pure: no locks, the
 * clock is handed in.
 */
#ifndef FM_FRONT_ENGINES_FAILED_LOAD_H
#define FM_FRONT_ENGINES_FAILED_LOAD_H

#include "front/engines/models.h"

/* How long it is told: a host that waits for the model asks again, and then a request has to try. */
#define FM_FAILED_LOAD_MS 60000

/* Zeroed, it is ready: none is remembered. */
struct fm_failed_load {
    char id[256];          /* the model's; cut, where it is longer; "": none */
    int64_t created;       /* of the model's file: another file of that name is another model */
    int64_t at_ms;         /* when it failed */
    bool engine_started;   /* the engine was there, so that the model is at fault */
    struct fm_error error; /* why it failed */
};

/* Remembers that `model` did not load. */
void fm_failed_load_note(struct fm_failed_load *failed, const struct fm_model *model, bool engine_started,
                         const struct fm_error *error, int64_t now_ms);

/* A model was loaded: nothing is remembered. */
void fm_failed_load_clear(struct fm_failed_load *failed);

/* Whether the load of `model` has failed lately, and its file is still the same. */
bool fm_failed_load_is_of(const struct fm_failed_load *failed, const struct fm_model *model, int64_t now_ms);

#endif
