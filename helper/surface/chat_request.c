/* The body of chat.completions.create: PROTOCOL.md, "chat.completions.create". */
#include "surface/file.h"
#include "surface/image.h"
#include "surface/request.h"
#include "surface/tools.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#define CHOICES_MAX      128
#define TOKEN_DIGITS_MAX 10 /* digits of INT32_MAX */

/* ---- messages ---- */

static const struct fm_role roles[] = {
    {"system", "system"},
    {"developer", "system"},
    {"user", "user"},
    {"assistant", "assistant"},
    {"tool", "tool"},
    {"function", NULL},
    {0},
};

static const struct fm_rule url_rules[] = {
    {.name = "url", .check = fm_check_image_url, .required = true},
    {.name = "detail", .check = fm_check_enum, .words = fm_image_details},
    {0},
};

static const struct fm_rule image_rules[] = {
    {.name = "type", .check = fm_check_string},
    {.name = "prompt_cache_breakpoint", .check = fm_check_object, .members = fm_breakpoint_rules},
    {.name = "image_url", .check = fm_check_object, .members = url_rules, .required = true},
    {0},
};

static const struct fm_rule file_rules[] = {
    {.name = "type", .check = fm_check_string},
    {.name = "prompt_cache_breakpoint", .check = fm_check_object, .members = fm_breakpoint_rules},
    {.name = "file", .check = fm_check_object, .members = fm_file_rules, .required = true},
    {0},
};

static const struct fm_part_kind parts[] = {
    {.type = "text", .member = "text"},
    {.type = "refusal", .member = "refusal"},
    {.type = "image_url", .member = "image_url", .image = image_rules},
    {.type = "file", .member = "file", .file = file_rules},
    {.type = "input_audio"},
    {0},
};

static const struct fm_rule called_rules[] = {
    {.name = "name", .check = fm_check_name, .required = true},
    {.name = "arguments", .check = fm_check_text, .required = true},
    {.name = "parsed_arguments", .check = fm_check_any}, /* added by the SDK's helpers, like `parsed` below */
    {0},
};

static const struct fm_rule call_rules[] = {
    {.name = "type", .check = fm_check_any},
    {.name = "id", .check = fm_check_text, .min = 1, .required = true},
    {.name = "function", .check = fm_check_object, .members = called_rules, .required = true},
    {0},
};

static const struct fm_rule custom_called_rules[] = {
    {.name = "name", .check = fm_check_name, .required = true},
    {.name = "input", .check = fm_check_text, .required = true},
    {0},
};

static const struct fm_rule custom_call_rules[] = {
    {.name = "type", .check = fm_check_any},
    {.name = "id", .check = fm_check_text, .min = 1, .required = true},
    {.name = "custom", .check = fm_check_object, .members = custom_called_rules, .required = true},
    {0},
};

static const struct fm_rule call_kinds[] = {
    {.name = "function", .members = call_rules},
    {.name = "custom", .members = custom_call_rules},
    {0},
};

static const struct fm_rule message_rules[] = {
    {.name = "role", .check = fm_check_string},
    {.name = "content", .check = fm_check_any},
    {.name = "name", .check = fm_check_string},
    {.name = "refusal", .check = fm_check_string},
    {.name = "annotations", .check = fm_check_array},
    {.name = "parsed", .check = fm_check_any},
    {.name = "reasoning_content", .check = fm_check_string},
    {.name = "tool_calls", .check = fm_check_tools, .members = call_kinds},
    {.name = "tool_call_id", .check = fm_check_text, .min = 1},
    {.name = "function_call", .check = fm_check_unsupported, .note = "Use 'tool_calls' instead."},
    {.name = "audio", .check = fm_check_unsupported, .note = "fm-proxy takes no audio: leave it out."},
    {0},
};

static const struct fm_rule part_rules[] = {
    {.name = "type", .check = fm_check_string},
    {.name = "prompt_cache_breakpoint", .check = fm_check_object, .members = fm_breakpoint_rules},
    {.name = "text", .check = fm_check_string},
    {.name = "refusal", .check = fm_check_string},
    {0},
};

static const struct fm_dialect dialect = {
    .roles = roles,
    .roles_note = "Supported values are: 'system', 'developer', 'user', 'assistant', 'tool'.",
    .parts = parts,
    .parts_note = "Supported values are: 'text', 'refusal', 'image_url', 'file'.",
    .message_rules = message_rules,
    .part_rules = part_rules,
    .stand_in = "refusal",
    .calls = "tool_calls",
};

/* Checks a message's calls, which only the assistant may have, and adds their ids to `ids`. */
static enum fm_code check_calls(struct json_object *message, const struct fm_path *at, struct json_object *ids,
                                struct fm_error *error) {
    struct json_object *calls = json_object_object_get(message, "tool_calls");
    size_t count = calls ? json_object_array_length(calls) : 0;
    enum fm_code code = FM_OK;
    if (count > 0 && !fm_string_is(json_object_object_get(message, "role"), "assistant")) {
        struct fm_path here = {.parent = at, .key = "tool_calls"};
        return fm_reject_value(&here, "Only messages with the role 'assistant' may have calls.", error);
    }
    for (size_t i = 0; i < count && code == FM_OK; i++) {
        code = fm_call_note(ids, json_object_object_get(json_object_array_get_idx(calls, i), "id"), error);
    }
    return code;
}

/* Checks the id of the call that a message answers. A tool's message needs this id; others may not have it. */
static enum fm_code check_call_id(struct json_object *message, const struct fm_path *at, struct json_object *ids,
                                  struct fm_error *error) {
    struct json_object *id = json_object_object_get(message, "tool_call_id");
    struct fm_path here = {.parent = at, .key = "tool_call_id"};
    bool is_tool = fm_string_is(json_object_object_get(message, "role"), "tool");
    if (!is_tool) {
        return id ? fm_reject_value(&here, "Only messages with the role 'tool' may have it.", error) : FM_OK;
    }
    return id ? fm_call_find(ids, id, &here, error) : fm_reject_missing(&here, error);
}

static enum fm_code check_reasoning(struct json_object *message, const struct fm_path *at, struct fm_error *error) {
    struct fm_path here = {.parent = at, .key = "reasoning_content"};
    bool thinks = json_object_object_get(message, "reasoning_content") != NULL;
    bool assistant = fm_string_is(json_object_object_get(message, "role"), "assistant");
    return thinks && !assistant ? fm_reject_value(&here, "Only messages with the role 'assistant' may have it.", error)
                                : FM_OK;
}

static enum fm_code check_message(struct json_object *message, const struct fm_path *at, struct json_object *ids,
                                  struct fm_error *error) {
    enum fm_code code = fm_message_check(&dialect, message, at, error);
    if (code == FM_OK) {
        code = check_reasoning(message, at, error);
    }
    if (code == FM_OK) {
        code = check_calls(message, at, ids, error);
    }
    return code == FM_OK ? check_call_id(message, at, ids, error) : code;
}

static enum fm_code check_messages(const struct fm_rule *rule, struct json_object *value, const struct fm_path *at,
                                   struct fm_error *error) {
    (void)rule;
    if (!json_object_is_type(value, json_type_array)) {
        return fm_reject_type(at, value, "an array", error);
    }
    struct json_object *ids = json_object_new_object();
    size_t count = json_object_array_length(value);
    enum fm_code code = FM_OK;
    for (size_t i = 0; i < count && code == FM_OK; i++) {
        struct fm_path here = {.parent = at, .index = i};
        code = check_message(json_object_array_get_idx(value, i), &here, ids, error);
    }
    json_object_put(ids);
    return code == FM_OK && count == 0 ? fm_reject_value(at, "Expected at least one message.", error) : code;
}

static void write_chat_message(struct json_object *message, struct fm_buf *scratch, struct fm_json_writer *w) {
    struct json_object *calls = json_object_object_get(message, "tool_calls");
    struct json_object *call_id = json_object_object_get(message, "tool_call_id");
    struct json_object *reasoning = json_object_object_get(message, "reasoning_content");
    size_t count = calls ? json_object_array_length(calls) : 0;
    fm_json_object_begin(w);
    fm_message_write(&dialect, message, scratch, w);
    if (reasoning) {
        fm_json_key_value(w, "reasoning", reasoning);
    }
    if (count > 0) {
        fm_json_key(w, "tool_calls");
        fm_json_array_begin(w);
        for (size_t i = 0; i < count; i++) {
            struct json_object *call = json_object_array_get_idx(calls, i);
            struct json_object *custom = json_object_object_get(call, "custom");
            struct json_object *called = custom ? custom : json_object_object_get(call, "function");
            fm_call_write(json_object_object_get(call, "id"), called, scratch, w);
        }
        fm_json_array_end(w);
    }
    if (call_id) {
        fm_json_key_value(w, "tool_call_id", call_id);
    }
    fm_json_object_end(w);
}

static void note_images(struct json_object *body, struct fm_buf *params) {
    struct json_object *messages = json_object_object_get(body, "messages");
    size_t count = json_object_array_length(messages);
    for (size_t i = 0; i < count; i++) {
        struct json_object *content = json_object_object_get(json_object_array_get_idx(messages, i), "content");
        fm_content_note_images(&dialect, content, "messages", i, params);
    }
}

static void write_messages(struct json_object *body, struct fm_json_writer *w) {
    struct json_object *messages = json_object_object_get(body, "messages");
    struct fm_buf scratch;
    fm_buf_init(&scratch, w->buf->max);
    fm_json_key(w, "messages");
    fm_json_array_begin(w);
    size_t count = json_object_array_length(messages);
    for (size_t i = 0; i < count; i++) {
        write_chat_message(json_object_array_get_idx(messages, i), &scratch, w);
    }
    fm_json_array_end(w);
    fm_buf_free(&scratch);
}

/* ---- logit_bias ---- */

/* `key` as a number; -1 if it is not a token id. */
static int64_t token_of(const char *key) {
    size_t digits = strspn(key, "0123456789");
    bool plain = digits > 0 && digits <= TOKEN_DIGITS_MAX && !key[digits] && (key[0] != '0' || digits == 1);
    int64_t token = plain ? strtoll(key, NULL, 10) : -1;
    return token <= INT32_MAX ? token : -1;
}

enum fm_code fm_check_logit_bias(const struct fm_rule *rule, struct json_object *value, const struct fm_path *at,
                                 struct fm_error *error) {
    static const struct fm_rule bias_rule = {.min = -100, .max = 100};
    (void)rule;
    if (!json_object_is_type(value, json_type_object)) {
        return fm_reject_type(at, value, "an object", error);
    }
    if (json_object_object_length(value) > FM_LOGIT_BIASES_MAX) {
        return fm_reject_value(at, "Expected at most 1024 tokens.", error);
    }
    for (struct lh_entry *entry = json_object_get_object(value)->head; entry; entry = lh_entry_next(entry)) {
        struct fm_path here = {.parent = at, .key = lh_entry_k(entry)};
        if (token_of(here.key) < 0) {
            return fm_reject_value(at, "Expected token ids as keys, such as '50256'.", error);
        }
        enum fm_code code = fm_check_number(&bias_rule, lh_entry_v(entry), &here, error);
        if (code != FM_OK) {
            return code;
        }
    }
    return FM_OK;
}

void fm_request_write_logit_bias(struct json_object *body, struct fm_json_writer *w) {
    struct json_object *biases = json_object_object_get(body, "logit_bias");
    if (!biases || json_object_object_length(biases) == 0) {
        return;
    }
    fm_json_key(w, "logit_bias");
    fm_json_array_begin(w);
    for (struct lh_entry *entry = json_object_get_object(biases)->head; entry; entry = lh_entry_next(entry)) {
        fm_json_array_begin(w);
        fm_json_int(w, token_of(lh_entry_k(entry)));
        fm_json_value(w, lh_entry_v(entry));
        fm_json_array_end(w);
    }
    fm_json_array_end(w);
}

/* ---- the body ---- */

static const char *const modalities[] = {"text", NULL};

const struct fm_rule fm_chat_stream_option_rules[] = {
    {.name = "include_usage", .check = fm_check_bool},
    {.name = "include_obfuscation", .check = fm_check_bool},
    {0},
};

const struct fm_rule fm_chat_rules[] = {
    {.name = "messages", .check = check_messages, .required = true},
    {.name = "max_tokens", .check = fm_check_int, .min = 1, .max = FM_TOKENS_MAX},
    {.name = "max_completion_tokens", .check = fm_check_int, .min = 1, .max = FM_TOKENS_MAX},
    {.name = "store", .check = fm_check_bool},
    {.name = "stream_options", .check = fm_check_object, .members = fm_chat_stream_option_rules},
    {.name = "verbosity", .check = fm_check_enum, .words = fm_verbosity_words},
    {.name = "n", .check = fm_check_int, .min = 1, .max = CHOICES_MAX},
    {.name = "response_format", .check = fm_check_variant, .words = fm_format_types, .members = fm_chat_formats},
    {.name = "logprobs", .check = fm_check_bool},
    {.name = "logit_bias", .check = fm_check_logit_bias},
    {.name = "modalities",
     .check = fm_check_only_list,
     .words = modalities,
     .note = "fm-proxy gives text only: use ['text']."},
    {.name = "reasoning_effort", .check = fm_check_enum, .words = fm_effort_words},
    {.name = "functions", .check = fm_check_unsupported, .note = "Use 'tools' instead."},
    {.name = "function_call", .check = fm_check_unsupported, .note = "Use 'tool_choice' instead."},
    {.name = "prediction", .check = fm_check_unsupported},
    {.name = "audio", .check = fm_check_unsupported, .note = "fm-proxy gives text only: leave it out."},
    {.name = "web_search_options", .check = fm_check_unsupported},
    {.name = "moderation", .check = fm_check_unsupported},
    {.members = fm_chat_tool_rules},
};

/* Refuses `top_logprobs` without `logprobs`, like OpenAI. */
static enum fm_code check_top_logprobs(struct json_object *body, struct fm_error *error) {
    const struct fm_path at = {.key = "top_logprobs"};
    bool some = json_object_get_int64(json_object_object_get(body, "top_logprobs")) > 0;
    bool asked = json_object_get_boolean(json_object_object_get(body, "logprobs"));
    return some && !asked ? fm_reject_value(&at, "Set 'logprobs' to true as well.", error) : FM_OK;
}

/* Checks how reasoning is reported: chat has only one way. */
static enum fm_code check_dialect(struct json_object *fm, struct fm_error *error) {
    static const struct fm_path fm_at = {.key = "fm"};
    static const struct fm_path here = {.parent = &fm_at, .key = "reasoning_dialect"};
    bool asked = json_object_object_get(fm, "reasoning_dialect") != NULL;
    return asked ? fm_reject_unsupported(&here, "Only responses.create has it: leave it out.", error) : FM_OK;
}

enum fm_code fm_chat_read(struct json_object *body, const struct fm_ignored *ignored, struct fm_request *request,
                          struct fm_error *error) {
    struct fm_asked_format format;
    struct fm_asked_tools tools;
    enum fm_code code = check_dialect(json_object_object_get(body, "fm"), error);
    code = code ? code : check_top_logprobs(body, error);
    if (code == FM_OK) {
        struct json_object *asked = json_object_object_get(body, "response_format");
        code = fm_format_find(body, &(struct fm_format_place){asked, fm_chat_format_params}, &format, error);
    }
    if (code == FM_OK) {
        code = fm_tools_find(body, true, &format, &tools, error);
    }
    if (code != FM_OK) {
        return code;
    }
    fm_request_begin(request, body, ignored);
    fm_format_note(&format, request);
    fm_tools_note(&tools, request);
    request->choices = json_object_get_int64(json_object_object_get(body, "n"));
    request->unstored = json_object_get_boolean(json_object_object_get(body, "store"));
    note_images(body, &request->image_params);
    struct fm_json_writer job = fm_json_writer_on(&request->job_members);
    write_messages(body, &job);
    /* Reads the token limit. max_tokens is its older name. */
    struct json_object *max_tokens = json_object_object_get(body, "max_completion_tokens");
    max_tokens = max_tokens ? max_tokens : json_object_object_get(body, "max_tokens");
    fm_request_write_sampling(body, max_tokens, &job);
    fm_request_note_extras(request, body);
    fm_request_note_passed(request, body, json_object_object_get(body, "verbosity"), NULL);
    fm_request_write_logit_bias(body, &job);
    bool logprobs = json_object_get_boolean(json_object_object_get(body, "logprobs"));
    fm_request_write_logprobs(request, logprobs, json_object_object_get(body, "top_logprobs"), &job);
    fm_request_write_effort(json_object_object_get(body, "reasoning_effort"), &job);
    fm_format_write_job(&format, &job);
    fm_tools_write_job(&tools, &job);
    return fm_request_end(request, error);
}
