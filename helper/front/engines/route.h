/*
 * Decides which engines a request may go to, and why the others can't take it. The order is that of --engine. An engine
 * that is known to be unavailable is passed over. If the name of a model belongs to one engine, the request goes to
 * that engine.
 */
#ifndef FM_FRONT_ENGINES_ROUTE_H
#define FM_FRONT_ENGINES_ROUTE_H

#include "front/state.h"

/*
 * Fills `route`, with at least one model, for a request that names its model, may have images, and may have to stay on
 * this machine. UNAVAILABLE, NOT_FOUND or INVALID_REQUEST: no engine can take the request; in that case there is
 * nothing to free. Reads folders and headers; takes the lock for a moment. Call it on the reader's thread.
 */
FM_MUST_USE enum fm_code fm_route_find(struct fm_front *front, const struct fm_request *request, struct fm_route *route,
                                       struct fm_error *error);

/*
 * Looks up the model that `name` means, as models.retrieve shows it. On failure there is nothing to free. Reads folders
 * and headers; takes the lock for a moment. Call it on the same thread as fm_route_find.
 */
FM_MUST_USE enum fm_code fm_route_look_up(struct fm_front *front, const char *name, struct fm_model *model,
                                          struct fm_error *error);

/*
 * Appends the known models of a program. If the engine lists its models, they are copied from its list. FM_INTERNAL:
 * out of memory. Reads folders; takes the lock for a moment.
 */
FM_MUST_USE enum fm_code fm_program_models(struct fm_front *front, const struct fm_program *program,
                                           struct fm_model_list *list, struct fm_error *error);

/* Whether an engine can take a request now. */
enum fm_readiness {
    FM_READY_YES,
    FM_READY_NO,      /* `error` says why, with a reason_code */
    FM_READY_UNKNOWN, /* a process is asking the engine: check again later */
};

/*
 * Whether an engine can take a request, from what is known. If nothing is known, or it is too old, starts a process
 * that asks the engine, but does not wait for it. Reads headers; takes the lock for a moment.
 */
enum fm_readiness fm_program_readiness(struct fm_front *front, struct fm_program *program, struct fm_error *error);

/*
 * Sets only `error->detail`: why none of `count` engines (1 to FM_PROGRAMS_MAX) is available. It has the text of
 * `errors[i]` for the engine `names[i]`, each cut to its share. Pure.
 */
void fm_route_explain(const char *const names[], const struct fm_error errors[], size_t count, struct fm_error *error);

#endif
