/*
 * Where each call's body comes in: it is checked against the table of its API, and then read. This is the only file
 * that knows the tables of all APIs, which it takes to tell a parameter of another API, which is refused, from one that
 * no API has, which is ignored. The files with the tables never call this one.
 */
#include "surface/request.h"

#include <json-c/json.h>
#include <string.h>

/* The parameters of a call. */
struct call {
    const struct fm_rule *rules;
    const char *const *names; /* NULL: all rows. Else only those with these names (NULL-terminated), and no extras */
    bool needs_model;         /* a body without `model` is refused; otherwise the default model answers */
};

/* A parameter of OpenAI's, of whichever API. Extras are not. */
static bool is_known(const char *name) {
    static const struct fm_rule *const all_rules[] = {fm_responses_rules, fm_chat_rules, fm_completions_rules,
                                                      fm_embeddings_rules};
    bool found = false;
    for (size_t i = 0; i < sizeof all_rules / sizeof all_rules[0] && !found; i++) {
        found = fm_rule_find(all_rules[i], name) != NULL;
    }
    return found && !fm_rule_find(fm_extra_rules, name);
}

static bool is_listed(const char *const *names, const char *name) {
    while (*names && strcmp(*names, name) != 0) {
        names++;
    }
    return *names != NULL;
}

static bool takes(const struct call *call, const char *name) {
    return fm_rule_find(call->rules, name) && (!call->names || is_listed(call->names, name));
}

static enum fm_code reject_elsewhere(const struct call *call, const char *name, struct fm_error *error) {
    const struct fm_path at = {.key = name};
    return fm_reject_unsupported(&at,
                                 call->names ? "This call does not have it: leave it out."
                                             : "Another API has this parameter, this one does not: leave it out.",
                                 error);
}

/*
 * Refuses a parameter that only another call has (chat's `max_tokens` in responses.create, say): the caller meant
 * something by it, and dropping it would change the answer. Extras change no answer of a call with `names`.
 */
static enum fm_code check_names(const struct call *call, struct json_object *body, struct fm_ignored *ignored,
                                struct fm_error *error) {
    struct lh_entry *next;
    for (struct lh_entry *entry = json_object_get_object(body)->head; entry; entry = next) {
        const char *name = lh_entry_k(entry);
        bool elsewhere = !takes(call, name) && is_known(name);
        bool extra = call->names && fm_rule_find(fm_extra_rules, name);
        next = lh_entry_next(entry); /* before this one may go */
        if (elsewhere && lh_entry_v(entry)) {
            return reject_elsewhere(call, name, error);
        }
        if (extra) {
            fm_ignored_add(ignored, name);
        }
        if (elsewhere || extra) { /* null is absent */
            json_object_object_del(body, name);
        }
    }
    return FM_OK;
}

static enum fm_code check(const struct call *call, struct json_object *body, struct fm_ignored *ignored,
                          struct fm_error *error) {
    static const struct fm_path model_at = {.key = "model"};
    enum fm_code code = check_names(call, body, ignored, error);
    if (code == FM_OK && call->needs_model && !json_object_object_get(body, "model")) {
        code = fm_reject_missing(&model_at, error);
    }
    return code ? code : fm_check_body(call->rules, body, ignored, error);
}

enum fm_code fm_responses_parse(struct json_object *params, struct fm_request *request, struct fm_error *error) {
    static const struct call call = {.rules = fm_responses_rules};
    struct fm_ignored ignored = {0};
    enum fm_code code = check(&call, params, &ignored, error);
    return code ? code : fm_responses_read(params, FM_PURPOSE_ANSWER, &ignored, request, error);
}

/* The names are those that change the prompt, or how long the call may take: the same body makes the same prompt. */
enum fm_code fm_input_tokens_parse(struct json_object *params, struct fm_request *request, struct fm_error *error) {
    static const char *const names[] = {
        "model",           "input",      "instructions",         "tools",        "tool_choice",         "text",
        "reasoning",       "truncation", "previous_response_id", "conversation", "parallel_tool_calls", "fm",
        "response_format", NULL,
    };
    static const struct call call = {.rules = fm_responses_rules, .names = names};
    struct fm_ignored ignored = {0};
    enum fm_code code = check(&call, params, &ignored, error);
    return code ? code : fm_responses_read(params, FM_PURPOSE_COUNT, &ignored, request, error);
}

/* OpenAI requires the model too. */
enum fm_code fm_compact_parse(struct json_object *params, struct fm_request *request, struct fm_error *error) {
    static const char *const names[] = {
        "model",        "input", "instructions", "previous_response_id", "prompt_cache_key", "prompt_cache_retention",
        "service_tier", "fm",    NULL,
    };
    static const struct call call = {.rules = fm_responses_rules, .names = names, .needs_model = true};
    struct fm_ignored ignored = {0};
    enum fm_code code = check(&call, params, &ignored, error);
    return code ? code : fm_responses_read(params, FM_PURPOSE_SUMMARY, &ignored, request, error);
}

enum fm_code fm_chat_parse(struct json_object *params, struct fm_request *request, struct fm_error *error) {
    static const struct call call = {.rules = fm_chat_rules};
    struct fm_ignored ignored = {0};
    enum fm_code code = check(&call, params, &ignored, error);
    return code ? code : fm_chat_read(params, &ignored, request, error);
}

enum fm_code fm_completions_parse(struct json_object *params, struct fm_request *request, struct fm_error *error) {
    static const struct call call = {.rules = fm_completions_rules};
    struct fm_ignored ignored = {0};
    enum fm_code code = check(&call, params, &ignored, error);
    return code ? code : fm_completions_read(params, &ignored, request, error);
}

enum fm_code fm_embeddings_parse(struct json_object *params, struct fm_request *request, struct fm_error *error) {
    static const struct call call = {.rules = fm_embeddings_rules};
    struct fm_ignored ignored = {0};
    enum fm_code code = check(&call, params, &ignored, error);
    return code ? code : fm_embeddings_read(params, &ignored, request, error);
}
