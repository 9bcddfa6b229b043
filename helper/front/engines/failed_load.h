/*
 * The loads that failed lately, so that capabilities.get tells of one before the next request meets it. Pure: no locks,
 * the clock is handed in.
 */
#ifndef FM_FRONT_ENGINES_FAILED_LOAD_H
#define FM_FRONT_ENGINES_FAILED_LOAD_H

#include "front/engines/models.h"

/* How long it is told: a host that waits for the model asks again, and then a request has to try. */
#define FM_FAILED_LOAD_MS 60000

#define FM_FAILED_LOADS_MAX 8 /* models; of more, the last ones are remembered */

struct fm_failed_load {
    char id[256];          /* the model's; cut, where it is longer; "": none */
    int64_t created;       /* of the model's file: another file of that name is another model */
    int64_t at_ms;         /* when it failed */
    bool engine_started;   /* the engine was there, so that the model is at fault */
    struct fm_error error; /* why it failed */
};

/* Zeroed, it is ready: none is remembered. */
struct fm_failed_loads {
    struct fm_failed_load loads[FM_FAILED_LOADS_MAX];
    size_t next; /* the place of the next one, modulo their number */
};

/* Remembers that `model` did not load. */
void fm_failed_load_note(struct fm_failed_loads *failed, const struct fm_model *model, bool engine_started,
                         const struct fm_error *error, int64_t now_ms);

/* `model` was loaded: what is remembered of it is not true any more. */
void fm_failed_load_clear(struct fm_failed_loads *failed, const struct fm_model *model);

/* How the load of `model` has failed lately, if its file is still the same; NULL: it has not. Borrowed. */
const struct fm_failed_load *fm_failed_load_of(const struct fm_failed_loads *failed, const struct fm_model *model,
                                               int64_t now_ms);

#endif
