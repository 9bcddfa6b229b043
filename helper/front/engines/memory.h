/*
 * How much memory each model takes, and what --memory-budget allows. Pure: no locks.
 */
#ifndef FM_FRONT_ENGINES_MEMORY_H
#define FM_FRONT_ENGINES_MEMORY_H

#include "front/engines/models.h"

#define FM_NEEDS_MAX 16 /* models whose need is remembered */

/* How much memory an engine reported for its model. */
struct fm_need {
    char id[256];    /* the model's id, cut if it is too long; "": none */
    int64_t created; /* `created` of the model's file */
    int64_t bytes;
};

/* All zero is a valid start: nothing is remembered. */
struct fm_needs {
    struct fm_need needs[FM_NEEDS_MAX];
    size_t next; /* where the next entry goes, modulo the number of entries */
};

/* Remembers that an engine reported `bytes` for `model`. */
void fm_needs_note(struct fm_needs *needs, const struct fm_model *model, int64_t bytes);

/*
 * Returns the bytes that `model` takes: what an engine reported, else an estimate. `*known` (may be NULL): it was
 * reported.
 */
int64_t fm_needs_of(const struct fm_needs *needs, const struct fm_model *model, bool *known);

/*
 * Returns FM_UNAVAILABLE if the model can never be loaded within the `budget` that was set (0: none was set). The
 * detail names the option, and a budget that would be enough. Until an engine has reported how much the model takes, a
 * model is refused only if its file is larger than the budget, because the rest depends on the engine's settings.
 */
FM_MUST_USE enum fm_code fm_needs_check(const struct fm_needs *needs, const struct fm_model *model, int64_t budget,
                                        struct fm_error *error);

#endif
