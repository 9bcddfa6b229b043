/* The common part of the methods about stored responses. */
#include "front/methods/stored.h"
#include "front/jobs.h"
#include "front/methods/params.h"

enum fm_code fm_stored_ask(struct fm_front *front, const struct fm_method_call *call, fm_store_reply_fn *reply,
                           struct fm_store_query *query, struct fm_error *error) {
    query->ignored = call->ignored;
    fm_front_enter(front);
    enum fm_code code = fm_store_call_locked(front, call->id, reply, query, error);
    fm_front_leave(front);
    return code;
}

struct fm_job *fm_stored_find_running_locked(struct fm_front *front, struct fm_store_query *query) {
    struct fm_job *job = fm_job_by_answer_locked(front, query->id);
    bool found = job && job->answer.surface == &fm_surface_responses && job->answer.request.store;
    query->again = found && job->state == FM_JOB_CLOSING && job->storing;
    return found && job->state != FM_JOB_CLOSING ? job : NULL;
}

enum fm_code fm_stored_get(struct fm_store *store, const char *id, struct fm_stored_response *stored,
                           struct fm_error *error) {
    return store ? fm_store_get(store, id, stored, error) : error->code;
}
