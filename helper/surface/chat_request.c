/* The body of chat.completions.create: PROTOCOL.md, "chat.completions.create". */
#include "surface/format.h"
#include "surface/request.h"

#include <json-c/json.h>

/* ---- messages ---- */

static const struct fm_role roles[] = {
    {"system", "system"},
    {"developer", "system"},
    {"user", "user"},
    {"assistant", "assistant"},
    {"tool", NULL},
    {"function", NULL},
    {0},
};

static const struct fm_part_kind parts[] = {
    {"text", "text"}, {"refusal", "refusal"}, {"image_url", NULL}, {"input_audio", NULL}, {"file", NULL}, {0},
};

static const struct fm_rule message_rules[] = {
    {.name = "role", .check = fm_check_string},
    {.name = "content", .check = fm_check_any},
    {.name = "name", .check = fm_check_string},
    {.name = "refusal", .check = fm_check_string},
    {.name = "annotations", .check = fm_check_array},
    {.name = "tool_calls", .check = fm_check_only_empty_array, .note = "fm-proxy cannot use tools yet."},
    {.name = "function_call", .check = fm_check_unsupported, .note = "fm-proxy cannot use tools yet."},
    {.name = "audio", .check = fm_check_unsupported, .note = "fm-proxy takes text only."},
    {0},
};

static const struct fm_rule part_rules[] = {
    {.name = "type", .check = fm_check_string},
    {.name = "text", .check = fm_check_string},
    {.name = "refusal", .check = fm_check_string},
    {0},
};

static const struct fm_dialect dialect = {
    .roles = roles,
    .roles_note = "Supported values are: 'system', 'developer', 'user', 'assistant'.",
    .parts = parts,
    .parts_note = "Supported values are: 'text', 'refusal'.",
    .message_rules = message_rules,
    .part_rules = part_rules,
    .stand_in = "refusal",
};

static enum fm_code check_messages(const struct fm_rule *rule, struct json_object *value, const struct fm_path *at,
                                   struct fm_error *error) {
    (void)rule;
    if (!json_object_is_type(value, json_type_array)) {
        return fm_reject_type(at, value, "an array", error);
    }
    size_t bytes = 0;
    size_t count = json_object_array_length(value);
    for (size_t i = 0; i < count; i++) {
        struct fm_path here = {.parent = at, .index = i};
        enum fm_code code = fm_message_check(&dialect, json_object_array_get_idx(value, i), &here, &bytes, error);
        if (code != FM_OK) {
            return code;
        }
    }
    return bytes > 0 ? FM_OK : fm_reject_value(at, "Expected some text.", error);
}

static void write_messages(struct json_object *body, struct fm_json_writer *w) {
    struct json_object *messages = json_object_object_get(body, "messages");
    struct fm_buf scratch;
    fm_buf_init(&scratch, w->buf->max);
    fm_json_key(w, "messages");
    fm_json_array_begin(w);
    size_t count = json_object_array_length(messages);
    for (size_t i = 0; i < count; i++) {
        fm_message_write(&dialect, json_object_array_get_idx(messages, i), &scratch, w);
    }
    fm_json_array_end(w);
    fm_buf_free(&scratch);
}

/* ---- the body ---- */

static const char *const modalities[] = {"text", NULL};

static const struct fm_rule stream_option_rules[] = {
    {.name = "include_usage", .check = fm_check_bool},
    {.name = "include_obfuscation", .check = fm_check_bool},
    {0},
};

static const struct fm_rule rules[] = {
    {.name = "messages", .check = check_messages, .required = true},
    {.name = "max_tokens", .check = fm_check_int, .min = 1, .max = FM_TOKENS_MAX},
    {.name = "max_completion_tokens", .check = fm_check_int, .min = 1, .max = FM_TOKENS_MAX},
    {.name = "stream_options", .check = fm_check_object, .members = stream_option_rules},
    {.name = "verbosity", .check = fm_check_enum, .words = fm_verbosity_words},
    {.name = "n", .check = fm_check_only_number, .min = 1, .note = "fm-proxy gives one choice; 1 is accepted."},
    {.name = "response_format", .check = fm_check_variant, .words = fm_format_types, .members = fm_chat_formats},
    {.name = "logprobs", .check = fm_check_only_false, .note = "fm-proxy has no logprobs yet; false is accepted."},
    {.name = "logit_bias",
     .check = fm_check_only_empty_object,
     .note = "fm-proxy has no token biases yet; {} is accepted."},
    {.name = "modalities", .check = fm_check_only_list, .words = modalities, .note = "fm-proxy gives text only."},
    {.name = "reasoning_effort", .check = fm_check_unsupported},
    {.name = "functions", .check = fm_check_unsupported, .note = "fm-proxy cannot use tools yet."},
    {.name = "function_call", .check = fm_check_unsupported, .note = "fm-proxy cannot use tools yet."},
    {.name = "prediction", .check = fm_check_unsupported},
    {.name = "audio", .check = fm_check_unsupported, .note = "fm-proxy gives text only."},
    {.name = "web_search_options", .check = fm_check_unsupported},
    {.members = fm_shared_rules},
};

enum fm_code fm_chat_parse(struct json_object *params, struct fm_request *request, struct fm_error *error) {
    struct fm_asked_format format;
    enum fm_code code = fm_check_members(rules, params, NULL, error);
    if (code == FM_OK) {
        code = fm_format_find(params, json_object_object_get(params, "response_format"), &format, error);
    }
    if (code != FM_OK) {
        return code;
    }
    fm_request_begin(request, params);
    fm_format_note(&format, fm_chat_format_params, request);
    struct json_object *options = json_object_object_get(params, "stream_options");
    request->include_usage = json_object_get_boolean(json_object_object_get(options, "include_usage"));
    struct fm_json_writer job = fm_json_writer_on(&request->job_members);
    write_messages(params, &job);
    /* max_tokens is the older name of the two. */
    struct json_object *max_tokens = json_object_object_get(params, "max_completion_tokens");
    max_tokens = max_tokens ? max_tokens : json_object_object_get(params, "max_tokens");
    fm_request_write_sampling(params, max_tokens, &job);
    fm_format_write_job(&format, &job);
    return fm_request_end(request, error);
}
