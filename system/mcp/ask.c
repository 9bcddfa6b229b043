/* Asks the user through the client. The question's state has everything that is needed later; nothing else is kept. */
#include "mcp/ask.h"
#include "desktop/refuse.h"

#include <json-c/json.h>
#include <string.h>

#define QUESTION "confirm"

#ifdef SY_GLIB /* states need an HMAC */

/* Whether the client can show a form. An empty object means that it can: forms were the first kind of question. */
static bool can_ask(const struct sy_request *request) {
    struct json_object *abilities = json_object_object_get(request->meta, SY_META "clientCapabilities");
    struct json_object *elicits = json_object_object_get(abilities, "elicitation");
    return request->era >= SY_MODERN && json_object_is_type(elicits, json_type_object) &&
           (json_object_object_length(elicits) == 0 || json_object_object_get(elicits, "form"));
}

/* What the user did: "accept", "decline" or "cancel"; NULL: nothing yet. */
static const char *find_action(const struct sy_request *request) {
    struct json_object *answers = json_object_object_get(request->params, "inputResponses");
    struct json_object *answer =
        json_object_is_type(answers, json_type_object) ? json_object_object_get(answers, QUESTION) : NULL;
    struct json_object *action =
        json_object_is_type(answer, json_type_object) ? json_object_object_get(answer, "action") : NULL;
    return json_object_is_type(action, json_type_string) ? json_object_get_string(action) : NULL;
}

static int64_t desktop_now(const struct sy_caller *caller) {
    return caller->world.desktop.backend->now(caller->world.desktop.self);
}

static enum fm_code make_question(struct sy_caller *caller, const struct sy_plan *plan, struct fm_error *error) {
    fm_buf_reset(&caller->question);
    sy_confirm_text(plan, &caller->question);
    enum fm_code code = sy_confirm_issue(&caller->confirm, plan, desktop_now(caller), caller->state, error);
    caller->asks = code == FM_OK && !caller->question.failed;
    return code == FM_OK && !caller->asks ? fm_fail_no_memory(error) : code;
}

enum fm_code sy_ask(struct sy_caller *caller, const struct sy_request *request, const struct sy_plan *plan,
                    struct fm_error *error) {
    struct sy_loss loss;
    const char *action = find_action(request);
    struct json_object *state = json_object_object_get(request->params, "requestState");
    if (!can_ask(request) || !sy_loses(plan, &loss)) {
        return FM_OK;
    }
    /* a yes without a state that this server gave does not count */
    if (!action || (!state && strcmp(action, "accept") == 0)) {
        return make_question(caller, plan, error);
    }
    if (strcmp(action, "accept") != 0) {
        return sy_refuse(error, "denied", "", "the user said no");
    }
    const char *text = json_object_is_type(state, json_type_string) ? json_object_get_string(state) : "";
    enum fm_code code = sy_confirm_accept(&caller->confirm, plan, text, desktop_now(caller), error);
    caller->forged = code != FM_OK && strcmp(sy_reason(error), "denied") == 0;
    return code;
}

void sy_ask_write(struct sy_caller *caller, struct fm_json_writer *w) {
    static const char schema[] = "{\"type\":\"object\",\"properties\":{}}";
    fm_json_key(w, "inputRequests");
    fm_json_object_begin(w);
    fm_json_key(w, QUESTION);
    fm_json_object_begin(w);
    fm_json_key_str(w, "method", "elicitation/create");
    fm_json_key(w, "params");
    fm_json_object_begin(w);
    fm_json_key_str(w, "mode", "form");
    fm_json_key(w, "message");
    fm_json_string(w, caller->question.data, caller->question.len);
    fm_json_key(w, "requestedSchema");
    fm_json_raw(w, schema, sizeof schema - 1);
    fm_json_object_end(w);
    fm_json_object_end(w);
    fm_json_object_end(w);
    fm_json_key_str(w, "requestState", caller->state);
}

#else

enum fm_code sy_ask(struct sy_caller *caller, const struct sy_request *request, const struct sy_plan *plan,
                    struct fm_error *error) {
    (void)caller;
    (void)request;
    (void)plan;
    (void)error;
    return FM_OK;
}

void sy_ask_write(struct sy_caller *caller, struct fm_json_writer *w) {
    (void)caller;
    (void)w;
}

#endif
