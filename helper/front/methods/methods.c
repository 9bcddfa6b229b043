/* The table of methods, and how one is run. */
#include "front/methods/methods.h"
#include "front/methods/create.h"
#include "front/methods/params.h"

#include <string.h>

static const struct fm_method *const rows[] = {
    &fm_method_health_ping,           &fm_method_capabilities_get,
    &fm_method_models_list,           &fm_method_models_retrieve,
    &fm_method_models_load,           &fm_method_models_unload,
    &fm_method_responses_create,      &fm_method_responses_input_tokens,
    &fm_method_responses_compact,     &fm_method_responses_cancel,
    &fm_method_responses_retrieve,    &fm_method_responses_delete,
    &fm_method_responses_input_items, &fm_method_chat_completions_create,
    &fm_method_embeddings_create,     &fm_method_completions_create,
    &fm_method_decisions_create,
    &fm_method_cancel_request,        &fm_method_process_shutdown,
    &fm_method_metrics_get,           &fm_method_requests_get,
};

const struct fm_rule fm_no_params[] = {{0}};

const struct fm_method *fm_method_find(const char *name, size_t len) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strlen(rows[i]->name) == len && memcmp(rows[i]->name, name, len) == 0) {
            return rows[i];
        }
    }
    return NULL;
}

/*
 * Runs a method that has rules for its params. It is a separate function because its paths take 16 KiB of stack, which
 * methods such as health.ping do not need.
 */
static enum fm_code check_and_run(const struct fm_method *method, struct fm_front *front, struct fm_method_call *call,
                                  struct fm_json_writer *result, struct fm_error *error) {
    struct fm_ignored ignored = {0};
    enum fm_code code = fm_check_body(method->params, call->params, &ignored, error);
    const struct fm_buf paths = fm_ignored_paths(&ignored);
    code = code ? code : fm_params_judge_ignored(front, &paths, error);
    if (code != FM_OK) {
        return code;
    }
    call->ignored = &ignored;
    code = method->run(front, call, result, error);
    fm_ignored_write_report(&paths, result);
    return code;
}

static enum fm_code create_job(const struct fm_method *method, struct fm_front *front,
                               const struct fm_rpc_message *message, struct fm_error *error) {
    enum fm_code code = fm_method_create(front, &message->id, message->params, method->surface, error);
    if (code != FM_OK) {
        fm_front_lock(front);
        front->metrics.outcomes[FM_OUTCOME_REFUSED]++;
        fm_front_unlock(front);
    }
    return code;
}

enum fm_code fm_method_run(const struct fm_method *method, struct fm_front *front, const struct fm_rpc_message *message,
                           struct fm_json_writer *result, struct fm_error *error) {
    if (method->surface) {
        return create_job(method, front, message, error);
    }
    struct fm_method_call call = {
        .id = &message->id, .params = message->params, .is_notification = message->kind == FM_RPC_NOTIFICATION};
    return method->params && call.params ? check_and_run(method, front, &call, result, error)
                                         : method->run(front, &call, result, error);
}
