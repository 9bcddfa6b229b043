/* What responses.cancel and $/cancelRequest have in common. */
#ifndef FM_FRONT_METHODS_CANCEL_H
#define FM_FRONT_METHODS_CANCEL_H

#include "front/methods/methods.h"

/* Fills `error` for a call that names no request in flight: NOT_FOUND. */
enum fm_code fm_no_such_request(struct fm_error *error);

/*
 * Cancels a job; `call` (if it has an id) is answered after the job's other calls. Fails with RATE_LIMITED. Wants the
 * lock.
 */
FM_MUST_USE enum fm_code fm_cancel_job_locked(struct fm_job *job, const struct fm_rpc_id *call, struct fm_error *error);

/*
 * Cancels the job that the call `request_id` made, like fm_cancel_job_locked. `detach`: a response in the background
 * goes on. Also fails with NOT_FOUND.
 */
FM_MUST_USE enum fm_code fm_cancel_by_call(struct fm_front *front, const struct fm_method_call *call,
                                           const struct fm_rpc_id *request_id, bool detach, struct fm_error *error);

#endif
