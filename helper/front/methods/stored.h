/* The common part of the methods about stored responses. */
#ifndef FM_FRONT_METHODS_STORED_H
#define FM_FRONT_METHODS_STORED_H

#include "front/methods/methods.h"
#include "front/store/queue.h"

/*
 * Starts the query of a call about the response that its params name; the store's thread answers it later with `reply`.
 * On failure the caller answers.
 */
FM_MUST_USE enum fm_code fm_stored_ask(struct fm_front *front, const struct fm_method_call *call,
                                       fm_store_reply_fn *reply, struct fm_store_query *query, struct fm_error *error);

/*
 * The job that makes the response of `query`; NULL: no such job runs. If the job has ended, but its response is still
 * to be stored after the store's present work, sets `query->again`. Wants the lock.
 */
struct fm_job *fm_stored_find_running_locked(struct fm_front *front, struct fm_store_query *query);

/* Calls fm_store_get if there is a store; otherwise `error` is filled already. */
FM_MUST_USE enum fm_code fm_stored_get(struct fm_store *store, const char *id, struct fm_stored_response *stored,
                                       struct fm_error *error);

#endif
