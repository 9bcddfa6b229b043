/* What responses.cancel and $/cancelRequest have in common. */
#include "front/methods/cancel.h"
#include "front/jobs.h"

enum fm_code fm_no_such_request(struct fm_error *error) {
    fm_fail(error, FM_NOT_FOUND, "no such request is in flight: it was never made, or it has ended");
    error->reason = "response_not_found";
    return error->code;
}

/* Adds `call` (if it has an id) to the calls that are answered after the job's create call. */
static enum fm_code await_locked(struct fm_job *job, const struct fm_rpc_id *call, struct fm_error *error) {
    if (call->len && job->cancel_count == FM_CANCEL_WAITERS) {
        return fm_fail_too_many(error, "%d calls wait for this cancel already", FM_CANCEL_WAITERS);
    }
    if (call->len) {
        job->cancel_calls[job->cancel_count++] = *call;
    }
    return FM_OK;
}

enum fm_code fm_cancel_job_locked(struct fm_job *job, const struct fm_rpc_id *call, struct fm_error *error) {
    struct fm_error reason;
    if (await_locked(job, call, error) != FM_OK) {
        return error->code;
    }
    fm_fail(&reason, FM_CANCELLED, "the request was cancelled");
    fm_job_stop_locked(job, &reason);
    return FM_OK;
}

/* Detaches the call that made the job: it gets no more events. The response that it made, or follows, goes on. */
static enum fm_code detach_locked(struct fm_job *job, const struct fm_rpc_id *call, struct fm_error *error) {
    if (await_locked(job, call, error) != FM_OK) {
        return error->code;
    }
    job->stream = false;
    return FM_OK;
}

enum fm_code fm_cancel_by_call(struct fm_front *front, const struct fm_method_call *call,
                               const struct fm_rpc_id *request_id, bool detach, struct fm_error *error) {
    fm_front_enter(front);
    struct fm_job *job = fm_job_by_call_locked(front, request_id);
    enum fm_code code = FM_OK;
    if (!job) {
        code = fm_no_such_request(error);
    } else if (job->replays || (detach && job->answer.request.background)) {
        code = detach_locked(job, call->id, error);
    } else {
        code = fm_cancel_job_locked(job, call->id, error);
    }
    fm_front_leave(front);
    return code;
}
