/*
 * The entry point for each call's body: the body is checked against the table of its API, and then read. This is the
 * only file that knows the tables of all APIs. It needs them to tell apart two kinds of parameters: a parameter of
 * another API is refused, and a parameter that no API has is ignored. The files with the tables never call this one.
 */
#include "surface/request.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

/* A sentence that says what to use instead of a parameter of another call. */
struct instead {
    const char *name; /* NULL ends the list */
    const char *note;
};

/* What a call accepts. */
struct call {
    const struct fm_rule *rules;
    const char *const *names; /* NULL: all rows. Else only rows with these names (NULL-terminated), and no extras */
    bool needs_model;         /* a body without `model` is refused; otherwise the default model answers */
    const struct instead *instead;
};

static const struct {
    const char *name;
    const struct fm_rule *rules;
} apis[] = {
    {"responses.create", fm_responses_rules},
    {"chat.completions.create", fm_chat_rules},
    {"completions.create", fm_completions_rules},
    {"embeddings.create", fm_embeddings_rules},
    {"decisions.create", fm_decisions_rules},
};

/* ---- parameters that users know from another call ---- */

#define NO_STORE_NOTE "Send the whole conversation in 'messages'; only responses.create goes on from stored ones."

static const struct instead responses_instead[] = {
    {"messages", "Send them in 'input'; 'messages' is for chat.completions.create."},
    {"max_tokens", "Use 'max_output_tokens' instead."},
    {"max_completion_tokens", "Use 'max_output_tokens' instead."},
    {"reasoning_effort", "Use 'reasoning' instead: {\"effort\": ...}."},
    {"verbosity", "Use 'text' instead: {\"verbosity\": ...}."},
    {"logprobs", "Use 'include' instead: [\"message.output_text.logprobs\"]."},
    {"functions", "Use 'tools' instead."},
    {"function_call", "Use 'tool_choice' instead."},
    {0},
};

/* What to use instead in responses.input_tokens and responses.compact. */
static const struct instead counted_instead[] = {
    {"messages", "Send them in 'input'."},
    {0},
};

static const struct instead chat_instead[] = {
    {"input", "Send it in 'messages'; 'input' is for responses.create and embeddings.create."},
    {"prompt", "Send it in 'messages'; 'prompt' is for completions.create."},
    {"instructions", "Send it as a message with the role 'system'."},
    {"max_output_tokens", "Use 'max_completion_tokens' instead."},
    {"text", "Use 'response_format' and 'verbosity' instead."},
    {"reasoning", "Use 'reasoning_effort' instead."},
    {"include", "For log probabilities use 'logprobs' and 'top_logprobs' instead."},
    {"previous_response_id", NO_STORE_NOTE},
    {"conversation", NO_STORE_NOTE},
    {0},
};

static const struct instead completions_instead[] = {
    {"messages", "Send the text in 'prompt'; 'messages' is for chat.completions.create."},
    {"input", "Send it in 'prompt'; 'input' is for responses.create and embeddings.create."},
    {"max_completion_tokens", "Use 'max_tokens' instead."},
    {"max_output_tokens", "Use 'max_tokens' instead."},
    {"instructions", "Write it into 'prompt', or use chat.completions.create."},
    {"response_format", "Use 'fm.grammar', or chat.completions.create."},
    {0},
};

static const struct instead embeddings_instead[] = {
    {"messages", "Send the texts in 'input'."},
    {"prompt", "Send the text in 'input'."},
    {0},
};

static const struct instead decisions_instead[] = {
    {"messages", "Send them in 'input'."},
    {"instructions", "Send it as a message of 'input' with the role 'system'."},
    {0},
};

static const char *find_instead(const struct call *call, const char *name) {
    const struct instead *row = call->instead;
    while (row->name && strcmp(row->name, name) != 0) {
        row++;
    }
    return row->note;
}

/*
 * Returns a note on which API calls take the parameter `name`. If no call supports it, the note of its rule. NULL: no
 * call knows it.
 */
static const char *say_who_has_it(const char *name, char *note, size_t size) {
    size_t len = 0;
    const char *unsupported = NULL;
    for (size_t i = 0; i < sizeof apis / sizeof apis[0]; i++) {
        const struct fm_rule *rule = fm_rule_find(apis[i].rules, name);
        if (!rule) {
            continue;
        }
        if (rule->check == fm_check_unsupported) {
            unsupported = rule->note;
            continue;
        }
        int written = snprintf(note + len, size - len, "%s%s", len ? ", " : "It is a parameter of ", apis[i].name);
        len += (size_t)written;
    }
    if (len == 0) {
        return unsupported;
    }
    snprintf(note + len, size - len, ": leave it out.");
    return note;
}

/* ---- the check ---- */

/* Whether some API of OpenAI's has this parameter. Extras are not OpenAI's. */
static bool is_known(const char *name) {
    bool found = false;
    for (size_t i = 0; i < sizeof apis / sizeof apis[0] && !found; i++) {
        found = fm_rule_find(apis[i].rules, name) != NULL;
    }
    return found && !fm_param_is_extra(name);
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
    char who[200];
    const char *note = find_instead(call, name);
    if (!note && call->names) {
        note = "This call does not have it: leave it out.";
    }
    return fm_reject_unsupported(&at, note ? note : say_who_has_it(name, who, sizeof who), error);
}

/*
 * Refuses a parameter that only another call has (for example chat's `max_tokens` in responses.create). The caller
 * meant something by it, and dropping it would change the answer. For a call with `names`, extras are dropped instead,
 * because they do not change its answer.
 */
static enum fm_code check_names(const struct call *call, struct json_object *body, struct fm_ignored *ignored,
                                struct fm_error *error) {
    struct lh_entry *next;
    for (struct lh_entry *entry = json_object_get_object(body)->head; entry; entry = next) {
        const char *name = lh_entry_k(entry);
        bool elsewhere = !takes(call, name) && is_known(name);
        bool extra = call->names && fm_param_is_extra(name);
        next = lh_entry_next(entry); /* read now, because this entry may be removed */
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

/* Checks `return_progress`, which is about the events of a stream. */
static enum fm_code check_progress(struct json_object *body, struct fm_error *error) {
    static const struct fm_path at = {.key = "return_progress"};
    bool asked = json_object_get_boolean(json_object_object_get(body, "return_progress"));
    bool stream = json_object_get_boolean(json_object_object_get(body, "stream"));
    return asked && !stream ? fm_reject_value(&at, "Only a stream can report progress: set 'stream' to true.", error)
                            : FM_OK;
}

static enum fm_code check_call(const struct call *call, struct json_object *body, struct fm_ignored *ignored,
                               struct fm_error *error) {
    static const struct fm_path model_at = {.key = "model"};
    enum fm_code code = check_names(call, body, ignored, error);
    if (code == FM_OK && call->needs_model && !json_object_object_get(body, "model")) {
        code = fm_reject_missing(&model_at, error);
    }
    code = code ? code : fm_check_body(call->rules, body, ignored, error);
    return code ? code : check_progress(body, error);
}

enum fm_code fm_responses_parse(struct json_object *params, struct fm_request *request, struct fm_error *error) {
    static const struct call call = {.rules = fm_responses_rules, .instead = responses_instead};
    struct fm_ignored ignored = {0};
    enum fm_code code = check_call(&call, params, &ignored, error);
    return code ? code : fm_responses_read(params, FM_PURPOSE_ANSWER, &ignored, request, error);
}

/*
 * The names are those that change the prompt, or how long the call may take. So the body of another call makes the same
 * prompt here.
 */
enum fm_code fm_input_tokens_parse(struct json_object *params, struct fm_request *request, struct fm_error *error) {
    static const char *const names[] = {
        "model",
        "input",
        "instructions",
        "tools",
        "tool_choice",
        "text",
        "reasoning",
        "truncation",
        "previous_response_id",
        "conversation",
        "parallel_tool_calls",
        "fm",
        "response_format",
        "personality",
        NULL,
    };
    static const struct call call = {.rules = fm_responses_rules, .names = names, .instead = counted_instead};
    struct fm_ignored ignored = {0};
    enum fm_code code = check_call(&call, params, &ignored, error);
    return code ? code : fm_responses_read(params, FM_PURPOSE_COUNT, &ignored, request, error);
}

/* OpenAI requires the model too. */
enum fm_code fm_compact_parse(struct json_object *params, struct fm_request *request, struct fm_error *error) {
    static const char *const names[] = {
        "model",
        "input",
        "instructions",
        "previous_response_id",
        "prompt_cache_key",
        "prompt_cache_retention",
        "service_tier",
        "fm",
        "image",
        "prompt_cache_options",
        NULL,
    };
    static const struct call call = {
        .rules = fm_responses_rules, .names = names, .needs_model = true, .instead = counted_instead};
    struct fm_ignored ignored = {0};
    enum fm_code code = check_call(&call, params, &ignored, error);
    return code ? code : fm_responses_read(params, FM_PURPOSE_SUMMARY, &ignored, request, error);
}

enum fm_code fm_chat_parse(struct json_object *params, struct fm_request *request, struct fm_error *error) {
    static const struct call call = {.rules = fm_chat_rules, .instead = chat_instead};
    struct fm_ignored ignored = {0};
    enum fm_code code = check_call(&call, params, &ignored, error);
    return code ? code : fm_chat_read(params, &ignored, request, error);
}

enum fm_code fm_completions_parse(struct json_object *params, struct fm_request *request, struct fm_error *error) {
    static const struct call call = {.rules = fm_completions_rules, .instead = completions_instead};
    struct fm_ignored ignored = {0};
    enum fm_code code = check_call(&call, params, &ignored, error);
    return code ? code : fm_completions_read(params, &ignored, request, error);
}

enum fm_code fm_embeddings_parse(struct json_object *params, struct fm_request *request, struct fm_error *error) {
    static const struct call call = {.rules = fm_embeddings_rules, .instead = embeddings_instead};
    struct fm_ignored ignored = {0};
    enum fm_code code = check_call(&call, params, &ignored, error);
    return code ? code : fm_embeddings_read(params, &ignored, request, error);
}

enum fm_code fm_decisions_parse(struct json_object *params, struct fm_request *request, struct fm_error *error) {
    static const struct call call = {.rules = fm_decisions_rules, .instead = decisions_instead};
    struct fm_ignored ignored = {0};
    enum fm_code code = fm_decisions_prepare(params, error);
    code = code ? code : check_call(&call, params, &ignored, error);
    return code ? code : fm_decisions_read(params, &ignored, request, error);
}
