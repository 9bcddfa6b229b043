/*
 * Which engines a request may go to, and why the others can't have it. The order is that of --engine; an engine that is
 * known to be unavailable is passed over. A model's name that belongs to an engine means that engine.
 */
#ifndef FM_FRONT_ENGINES_ROUTE_H
#define FM_FRONT_ENGINES_ROUTE_H

#include "front/state.h"

/*
 * Fills `route`, with one model at least, for a request that names its model, may have images, and may not leave this
 * machine. UNAVAILABLE, NOT_FOUND or INVALID_REQUEST: no engine can take it; there is nothing to free then. Reads
 * folders and headers; takes the lock for a moment. Reader's thread.
 */
FM_MUST_USE enum fm_code fm_route_find(struct fm_front *front, const struct fm_request *request, struct fm_route *route,
                                       struct fm_error *error);

/*
 * The model that `name` means, as models.retrieve shows it. On failure there is nothing to free. Reads folders and
 * headers; takes the lock for a moment. Same thread as fm_route_find.
 */
FM_MUST_USE enum fm_code fm_route_look_up(struct fm_front *front, const char *name, struct fm_model *model,
                                          struct fm_error *error);

/*
 * Appends the models of a program, as far as is known: those of an engine that lists them are copied. FM_INTERNAL: out
 * of memory. Reads folders; takes the lock for a moment.
 */
FM_MUST_USE enum fm_code fm_program_models(struct fm_front *front, const struct fm_program *program,
                                           struct fm_model_list *list, struct fm_error *error);

/* Whether an engine can take a request now. */
enum fm_readiness {
    FM_READY_YES,
    FM_READY_NO,      /* `error` says why, with a reason_code */
    FM_READY_UNKNOWN, /* a process is asking it: ask again later */
};

/*
 * Uses what is known; if nothing is known, or it is too old, starts a process that asks. Never waits for it. Reads
 * headers; takes the lock for a moment.
 */
enum fm_readiness fm_program_readiness(struct fm_front *front, struct fm_program *program, struct fm_error *error);

/*
 * Sets only `error->detail`: why none of `count` engines (1 to FM_PROGRAMS_MAX) is available, with the text of
 * `errors[i]` for the engine `names[i]`, each cut to its share. Pure.
 */
void fm_route_explain(const char *const names[], const struct fm_error errors[], size_t count, struct fm_error *error);

#endif
