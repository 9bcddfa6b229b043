/*
 * The loads that failed recently. With this, capabilities.get reports such a failure before the next request runs into
 * it. Pure: no locks, the caller passes the time.
 */
#ifndef FM_FRONT_ENGINES_FAILED_LOAD_H
#define FM_FRONT_ENGINES_FAILED_LOAD_H

#include "front/engines/models.h"

/*
 * How long a failure is reported. A host that waits for the model asks again; after this time a request has to try the
 * load.
 */
#define FM_FAILED_LOAD_MS 60000

#define FM_FAILED_LOADS_MAX 8 /* models; if more failed, only the last of them are remembered */

struct fm_failed_load {
    char id[256];          /* the model's id, cut if it is too long; "": none */
    int64_t created;       /* `created` of the model's file: a different file with the same name is another model */
    int64_t at_ms;         /* when it failed */
    bool engine_started;   /* the engine itself was running, so the model caused the failure */
    struct fm_error error; /* why it failed */
};

/* All zero: no failure is remembered. */
struct fm_failed_loads {
    struct fm_failed_load loads[FM_FAILED_LOADS_MAX];
    size_t next; /* where the next failed load is noted, modulo FM_FAILED_LOADS_MAX */
};

/* Remembers that `model` did not load. */
void fm_failed_load_note(struct fm_failed_loads *failed, const struct fm_model *model, bool engine_started,
                         const struct fm_error *error, int64_t now_ms);

/* `model` was loaded: forgets its failure. */
void fm_failed_load_clear(struct fm_failed_loads *failed, const struct fm_model *model);

/* The recent failure to load `model`, if its file is still the same; NULL: there is none. Borrowed. */
const struct fm_failed_load *fm_failed_load_of(const struct fm_failed_loads *failed, const struct fm_model *model,
                                               int64_t now_ms);

#endif
