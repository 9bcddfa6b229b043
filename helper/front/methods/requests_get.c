/*
 * requests.get reports the progress of a request in flight. With it a host can tell a request that waits from a helper
 * that hangs.
 */
#include "front/jobs.h"
#include "front/methods/cancel.h"
#include "front/methods/params.h"

static const struct fm_rule rules[] = {{.name = "request_id", .check = fm_check_any}, {0}};

static const char *state_of(const struct fm_job *job) {
    if (job->stopping || job->state == FM_JOB_CLOSING) {
        return "ending";
    }
    return fm_job_is_held(job) ? "running" : "queued";
}

static enum fm_code requests_get(struct fm_front *front, const struct fm_method_call *call,
                                 struct fm_json_writer *result, struct fm_error *error) {
    struct json_object *value;
    struct fm_rpc_id request_id;
    if (!json_object_object_get_ex(call->params, "request_id", &value)) {
        return fm_params_wrong(error, "request_id", "missing_required_parameter",
                               "'request_id' must say which request: the JSON-RPC id of its call");
    }
    if (!fm_rpc_id_read(value, &request_id)) {
        return fm_params_wrong(error, "request_id", "invalid_type",
                               "'request_id' must be a JSON-RPC id, a string or an integer");
    }
    fm_front_lock(front);
    const struct fm_job *job = fm_job_by_call_locked(front, &request_id);
    const char *state = job ? state_of(job) : NULL;
    fm_front_unlock(front);
    if (!state) {
        return fm_no_such_request(error);
    }
    fm_json_key_str(result, "state", state);
    return FM_OK;
}

const struct fm_method fm_method_requests_get = {"requests.get", FM_METHOD_NEEDS_PARAMS, rules, .run = requests_get};
