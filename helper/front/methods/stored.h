/* What the methods about stored responses have in common. */
#ifndef FM_FRONT_METHODS_STORED_H
#define FM_FRONT_METHODS_STORED_H

#include "front/methods/methods.h"
#include "front/store/queue.h"

/*
 * Starts the query of a call about the response that its params name, which the store's thread answers later by
 * `reply`. On failure the caller answers.
 */
FM_MUST_USE enum fm_code fm_stored_ask(struct fm_front *front, const struct fm_method_call *call,
                                       fm_store_reply_fn *reply, struct fm_store_query *query, struct fm_error *error);

/*
 * The job of the response that `query` names, as long as it runs; NULL: it has ended. When it is about to be stored,
 * and so after what the store does now, `query->again` is set. Wants the lock.
 */
struct fm_job *fm_stored_find_running_locked(struct fm_front *front, struct fm_store_query *query);

/* fm_store_get, where there is a store; else `error` is filled already. */
FM_MUST_USE enum fm_code fm_stored_get(struct fm_store *store, const char *id, struct fm_stored_response *stored,
                                       struct fm_error *error);

#endif
