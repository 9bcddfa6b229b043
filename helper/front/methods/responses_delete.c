/* responses.delete: DELETE /responses/{id}. */
#include "front/methods/params.h"
#include "front/methods/stored.h"

static const struct fm_rule rules[] = {{.name = "id", .check = fm_check_any}, {0}};

static bool is_running(struct fm_front *front, struct fm_store_query *query) {
    fm_front_lock(front);
    bool running = fm_stored_find_running_locked(front, query);
    fm_front_unlock(front);
    return running;
}

static enum fm_code reply_deleted(struct fm_front *front, struct fm_store *store, struct fm_store_query *query,
                                  struct fm_json_writer *result, struct fm_error *error) {
    if (is_running(front, query)) {
        return fm_params_wrong(error, "id", "invalid_value", "The response is still in progress; cancel it first.");
    }
    if (query->again) {
        return FM_OK;
    }
    enum fm_code code = store ? fm_store_delete(store, query->id, error) : error->code;
    if (code == FM_OK) {
        fm_json_key_str(result, "id", query->id);
        fm_json_key_str(result, "object", "response");
        fm_json_key_bool(result, "deleted", true);
    }
    return code;
}

static enum fm_code responses_delete(struct fm_front *front, const struct fm_method_call *call,
                                     struct fm_json_writer *result, struct fm_error *error) {
    struct fm_store_query query;
    (void)result;
    enum fm_code code = fm_params_read_id(call->params, &query, error);
    return code ? code : fm_stored_ask(front, call, reply_deleted, &query, error);
}

const struct fm_method fm_method_responses_delete = {
    "responses.delete", FM_METHOD_NEEDS_PARAMS | FM_METHOD_ANSWERS_LATER, rules, .run = responses_delete};
