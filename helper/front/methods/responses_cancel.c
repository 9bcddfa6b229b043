/*
 * responses.cancel: cancels a response by its id (POST /responses/{id}/cancel), or by the id of the call that makes it.
 */
#include "front/jobs.h"
#include "front/methods/cancel.h"
#include "front/methods/params.h"
#include "front/methods/stored.h"

#include <string.h>

static const struct fm_rule rules[] = {
    {.name = "id", .check = fm_check_any}, {.name = "request_id", .check = fm_check_any}, {0}};

/* ---- a response that has ended ---- */

static bool can_be_cancelled_again(struct json_object *object) {
    const char *status = json_object_get_string(json_object_object_get(object, "status"));
    bool background = json_object_get_boolean(json_object_object_get(object, "background"));
    return background || (status && strcmp(status, "cancelled") == 0);
}

static enum fm_code reply_cancelled(struct fm_front *front, struct fm_store *store, struct fm_store_query *query,
                                    struct fm_json_writer *result, struct fm_error *error) {
    struct fm_stored_response stored;
    struct json_object *object = NULL;
    (void)front;
    enum fm_code code = fm_stored_get(store, query->id, &stored, error);
    if (code != FM_OK) {
        return code;
    }
    code = fm_stored_json_read(&stored.object, &object, error);
    if (code == FM_OK && !can_be_cancelled_again(object)) {
        code = fm_params_wrong(error, "id", "invalid_value", "Cannot cancel a synchronous response: it has ended.");
    }
    if (code == FM_OK) {
        fm_json_key_value(result, "response", object);
    }
    json_object_put(object);
    fm_stored_response_free(&stored);
    return code;
}

/* ---- the call ---- */

/* Cancels by a response's id. The response may still run, or be stored. */
static enum fm_code cancel_answer(struct fm_front *front, const struct fm_method_call *call, struct fm_error *error) {
    struct fm_store_query query;
    if (fm_params_read_id(call->params, &query, error) != FM_OK) {
        return error->code;
    }
    query.ignored = call->ignored;
    fm_front_enter(front);
    struct fm_job *job = fm_job_by_answer_locked(front, query.id);
    enum fm_code code = job ? fm_cancel_job_locked(job, call->id, error)
                            : fm_store_call_locked(front, call->id, reply_cancelled, &query, error);
    fm_front_leave(front);
    return code;
}

static enum fm_code responses_cancel(struct fm_front *front, const struct fm_method_call *call,
                                     struct fm_json_writer *result, struct fm_error *error) {
    struct json_object *request;
    struct fm_rpc_id request_id;
    (void)result;
    bool by_answer = json_object_object_get_ex(call->params, "id", NULL);
    bool by_request = json_object_object_get_ex(call->params, "request_id", &request);
    if (by_answer && by_request) {
        return fm_params_wrong(error, "request_id", "invalid_value",
                               "'id' or 'request_id' says what to cancel, not both");
    }
    if (by_answer) {
        return cancel_answer(front, call, error);
    }
    if (!by_request) {
        return fm_params_wrong(error, "id", "missing_required_parameter",
                               "'id' or 'request_id' must say what to cancel");
    }
    if (!fm_rpc_id_read(request, &request_id)) {
        return fm_params_wrong(error, "request_id", "invalid_type",
                               "'request_id' must be a JSON-RPC id, a string or an integer");
    }
    return fm_cancel_by_call(front, call, &request_id, false, error);
}

const struct fm_method fm_method_responses_cancel = {
    "responses.cancel", FM_METHOD_NEEDS_PARAMS | FM_METHOD_ANSWERS_LATER, rules, .run = responses_cancel};
