/* $/cancelRequest, as standard LSP clients send it. As a call (with an id) it is answered like responses.cancel. */
#include "front/methods/cancel.h"
#include "front/methods/params.h"

static const struct fm_rule rules[] = {{.name = "id", .check = fm_check_any}, {0}};

static enum fm_code cancel_request(struct fm_front *front, const struct fm_method_call *call,
                                   struct fm_json_writer *result, struct fm_error *error) {
    struct json_object *value;
    struct fm_rpc_id request_id;
    (void)result;
    if (!json_object_object_get_ex(call->params, "id", &value) || !fm_rpc_id_read(value, &request_id)) {
        return fm_params_wrong(error, "id", "invalid_type", "'id' must be the JSON-RPC id of the call to cancel");
    }
    /* a client that sends no id expects no answer */
    return fm_cancel_by_call(front, call, &request_id, call->is_notification, error);
}

const struct fm_method fm_method_cancel_request = {
    "$/cancelRequest", FM_METHOD_NEEDS_PARAMS | FM_METHOD_ANSWERS_LATER | FM_METHOD_NOTIFICATION, rules,
    .run = cancel_request};
