/* The body of responses.create: PROTOCOL.md, "responses.create". */
#include "surface/request.h"
#include "surface/tools.h"

#include <json-c/json.h>
#include <string.h>

#define INPUT_CHARS_MAX 10485760

/* ---- input ---- */

static const struct fm_role roles[] = {
    {"user", "user"}, {"assistant", "assistant"}, {"system", "system"}, {"developer", "system"}, {0},
};

static const struct fm_part_kind parts[] = {
    {"input_text", "text"}, {"output_text", "text"}, {"refusal", "refusal"},        {"input_image", NULL},
    {"input_file", NULL},   {"input_audio", NULL},   {"computer_screenshot", NULL}, {0},
};

/*
 * `id`, `status`, `phase` and the like come back from an earlier output and say nothing to a model. `parsed` and
 * `parsed_arguments` are what the SDK's helpers add to it.
 */
static const struct fm_rule message_rules[] = {
    {.name = "type", .check = fm_check_string},
    {.name = "role", .check = fm_check_string},
    {.name = "content", .check = fm_check_any},
    {.name = "id", .check = fm_check_string},
    {.name = "status", .check = fm_check_string},
    {.name = "phase", .check = fm_check_string},
    {0},
};

static const struct fm_rule part_rules[] = {
    {.name = "type", .check = fm_check_string},
    {.name = "text", .check = fm_check_string},
    {.name = "refusal", .check = fm_check_string},
    {.name = "annotations", .check = fm_check_array},
    {.name = "logprobs", .check = fm_check_array},
    {.name = "parsed", .check = fm_check_any},
    {0},
};

static const struct fm_dialect dialect = {
    .roles = roles,
    .roles_note = "Supported values are: 'user', 'assistant', 'system', 'developer'.",
    .parts = parts,
    .parts_note = "Supported values are: 'input_text', 'output_text', 'refusal'.",
    .message_rules = message_rules,
    .part_rules = part_rules,
};

/* What a tool said may be text parts too. */
static const struct fm_part_kind output_parts[] = {
    {"input_text", "text"}, {"input_image", NULL}, {"input_file", NULL}, {0}};

static const struct fm_dialect output_dialect = {
    .parts = output_parts,
    .parts_note = "Supported values are: 'input_text'.",
    .part_rules = part_rules,
};

/* SDKs send back what they know of an item, as null where it has none. */
#define LATER_MEMBERS                                                                                                  \
    {.name = "namespace", .check = fm_check_unsupported, .note = "fm-proxy has no namespaces."},                       \
        {.name = "caller", .check = fm_check_unsupported, .note = "fm-proxy's calls have no caller."},                 \
        {.name = "async", .check = fm_check_unsupported, .note = "fm-proxy has no such calls."}, {                     \
        .name = "created_by", .check = fm_check_string                                                                 \
    }

static const struct fm_rule call_rules[] = {
    {.name = "type", .check = fm_check_any},
    LATER_MEMBERS,
    {.name = "id", .check = fm_check_string},
    {.name = "status", .check = fm_check_string},
    {.name = "call_id", .check = fm_check_text, .min = 1, .required = true},
    {.name = "name", .check = fm_check_name, .required = true},
    {.name = "arguments", .check = fm_check_text, .required = true},
    {.name = "parsed_arguments", .check = fm_check_any},
    {0},
};

static const struct fm_rule call_output_rules[] = {
    {.name = "type", .check = fm_check_any},
    LATER_MEMBERS,
    {.name = "id", .check = fm_check_string},
    {.name = "status", .check = fm_check_string},
    {.name = "call_id", .check = fm_check_text, .min = 1, .required = true},
    {.name = "output", .check = fm_check_any, .required = true},
    {0},
};

/* Items of the OpenAI API that need other tools, stored responses or reasoning. */
static const char *const later_items[] = {
    "reasoning",
    "item_reference",
    "compaction",
    "compaction_trigger",
    "custom_tool_call",
    "custom_tool_call_output",
    "web_search_call",
    "file_search_call",
    "computer_call",
    "computer_call_output",
    "code_interpreter_call",
    "image_generation_call",
    "local_shell_call",
    "local_shell_call_output",
    "shell_call",
    "shell_call_output",
    "apply_patch_call",
    "apply_patch_call_output",
    "mcp_call",
    "mcp_list_tools",
    "mcp_approval_request",
    "mcp_approval_response",
    "tool_search_call",
    "tool_search_output",
    NULL,
};

/* What is known of the items so far. */
struct item_walk {
    size_t bytes;            /* of text */
    struct json_object *ids; /* of the calls; owned */
};

static enum fm_code check_message(struct json_object *item, const struct fm_path *at, struct item_walk *walk,
                                  struct fm_error *error) {
    return fm_message_check(&dialect, item, at, &walk->bytes, error);
}

static enum fm_code check_call(struct json_object *item, const struct fm_path *at, struct item_walk *walk,
                               struct fm_error *error) {
    enum fm_code code = fm_check_members(call_rules, item, at, error);
    if (code != FM_OK) {
        return code;
    }
    walk->bytes += (size_t)json_object_get_string_len(json_object_object_get(item, "name"));
    return fm_call_note(walk->ids, json_object_object_get(item, "call_id"), error);
}

static enum fm_code check_call_output(struct json_object *item, const struct fm_path *at, struct item_walk *walk,
                                      struct fm_error *error) {
    struct fm_path output_at = {.parent = at, .key = "output"};
    enum fm_code code = fm_check_members(call_output_rules, item, at, error);
    if (code == FM_OK) {
        struct json_object *output = json_object_object_get(item, "output");
        code = fm_content_check(&output_dialect, output, &output_at, &walk->bytes, error);
    }
    /* OpenAI blames the list */
    return code == FM_OK ? fm_call_find(walk->ids, json_object_object_get(item, "call_id"), at->parent, error) : code;
}

static const struct item_kind {
    const char *type;
    enum fm_code (*check)(struct json_object *item, const struct fm_path *at, struct item_walk *walk,
                          struct fm_error *error);
} item_kinds[] = {
    {"message", check_message},
    {"function_call", check_call},
    {"function_call_output", check_call_output},
};

/* NULL when it is none of these. A missing type means a message: that is how the AI SDK writes them. */
static const struct item_kind *find_kind(struct json_object *type) {
    for (size_t i = 0; i < sizeof item_kinds / sizeof item_kinds[0]; i++) {
        if (!type || fm_string_is(type, item_kinds[i].type)) {
            return &item_kinds[i];
        }
    }
    return NULL;
}

static enum fm_code reject_item_type(struct json_object *type, const struct fm_path *at, struct fm_error *error) {
    for (const char *const *name = later_items; *name; name++) {
        if (fm_string_is(type, *name)) {
            return fm_reject_unsupported(at, "fm-proxy takes messages, function calls and their outputs only.", error);
        }
    }
    return fm_reject_value(at, "Supported values are: 'message', 'function_call', 'function_call_output'.", error);
}

static enum fm_code check_item(struct json_object *item, const struct fm_path *at, struct item_walk *walk,
                               struct fm_error *error) {
    if (!json_object_is_type(item, json_type_object)) {
        return fm_reject_type(at, item, "an object", error);
    }
    struct json_object *type = json_object_object_get(item, "type");
    struct fm_path type_at = {.parent = at, .key = "type"};
    if (!type && !json_object_object_get(item, "role")) {
        return fm_reject_missing(&type_at, error);
    }
    if (type && !json_object_is_type(type, json_type_string)) {
        return fm_reject_type(&type_at, type, "a string", error);
    }
    const struct item_kind *kind = find_kind(type);
    return kind ? kind->check(item, at, walk, error) : reject_item_type(type, &type_at, error);
}

static enum fm_code check_items(struct json_object *items, const struct fm_path *at, struct fm_error *error) {
    struct item_walk walk = {.ids = json_object_new_object()};
    enum fm_code code = FM_OK;
    size_t count = json_object_array_length(items);
    for (size_t i = 0; i < count && code == FM_OK; i++) {
        struct fm_path item_at = {.parent = at, .index = i};
        code = check_item(json_object_array_get_idx(items, i), &item_at, &walk, error);
    }
    json_object_put(walk.ids);
    return code == FM_OK && walk.bytes == 0 ? fm_reject_value(at, "Expected some text.", error) : code;
}

static enum fm_code check_input(const struct fm_rule *rule, struct json_object *value, const struct fm_path *at,
                                struct fm_error *error) {
    if (json_object_is_type(value, json_type_array)) {
        return check_items(value, at, error);
    }
    if (!json_object_is_type(value, json_type_string)) {
        return fm_reject_type(at, value, "a string or an array", error);
    }
    return fm_check_string(rule, value, at, error);
}

static bool is_item(struct json_object *items, size_t index, const char *type) {
    return fm_string_is(json_object_object_get(json_object_array_get_idx(items, index), "type"), type);
}

static void write_call_output(struct json_object *item, struct fm_buf *scratch, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_json_key_str(w, "role", "tool");
    fm_json_key(w, "content");
    fm_content_write(&output_dialect, json_object_object_get(item, "output"), scratch, w);
    fm_json_key_value(w, "tool_call_id", json_object_object_get(item, "call_id"));
    fm_json_object_end(w);
}

/*
 * Writes the message at `index`, and the calls behind it as its own where it is the assistant's: they were one answer.
 * Calls without a message before them are one too. Returns the index of the item that follows.
 */
static size_t write_turn(struct json_object *items, size_t index, struct fm_buf *scratch, struct fm_json_writer *w) {
    struct json_object *item = json_object_array_get_idx(items, index);
    bool takes_calls = true;
    fm_json_object_begin(w);
    if (is_item(items, index, "function_call")) {
        fm_json_key_str(w, "role", "assistant");
    } else {
        fm_message_write(&dialect, item, scratch, w);
        takes_calls = fm_string_is(json_object_object_get(item, "role"), "assistant");
        index++;
    }
    if (takes_calls && is_item(items, index, "function_call")) {
        fm_json_key(w, "tool_calls");
        fm_json_array_begin(w);
        for (; is_item(items, index, "function_call"); index++) {
            struct json_object *call = json_object_array_get_idx(items, index);
            fm_call_write(json_object_object_get(call, "call_id"), call, w);
        }
        fm_json_array_end(w);
    }
    fm_json_object_end(w);
    return index;
}

static void write_items(struct json_object *items, struct fm_json_writer *w) {
    struct fm_buf scratch;
    fm_buf_init(&scratch, w->buf->max);
    size_t count = json_object_array_length(items);
    for (size_t i = 0; i < count;) {
        if (is_item(items, i, "function_call_output")) {
            write_call_output(json_object_array_get_idx(items, i++), &scratch, w);
        } else {
            i = write_turn(items, i, &scratch, w);
        }
    }
    fm_buf_free(&scratch);
}

static void write_messages(struct json_object *body, struct fm_json_writer *w) {
    struct json_object *instructions = json_object_object_get(body, "instructions");
    struct json_object *input = json_object_object_get(body, "input");
    fm_json_key(w, "messages");
    fm_json_array_begin(w);
    if (instructions) {
        size_t len = (size_t)json_object_get_string_len(instructions);
        fm_turn_write("system", json_object_get_string(instructions), len, w);
    }
    if (json_object_is_type(input, json_type_string)) {
        fm_turn_write("user", json_object_get_string(input), (size_t)json_object_get_string_len(input), w);
    } else {
        write_items(input, w);
    }
    fm_json_array_end(w);
}

/* ---- the body ---- */

static const char *const truncations[] = {"disabled", NULL};

static const struct fm_rule text_rules[] = {
    {.name = "format", .check = fm_check_variant, .words = fm_format_types, .members = fm_responses_formats},
    {.name = "verbosity", .check = fm_check_enum, .words = fm_verbosity_words},
    {0},
};

static const struct fm_rule reasoning_rules[] = {
    {.name = "effort", .check = fm_check_unsupported},
    {.name = "summary", .check = fm_check_unsupported},
    {.name = "generate_summary", .check = fm_check_unsupported},
    {0},
};

static const struct fm_rule stream_option_rules[] = {
    {.name = "include_obfuscation", .check = fm_check_bool},
    {0},
};

static const struct fm_rule rules[] = {
    {.name = "input", .check = check_input, .min = 1, .max = INPUT_CHARS_MAX, .required = true},
    {.name = "instructions", .check = fm_check_string},
    {.name = "max_output_tokens", .check = fm_check_int, .min = 1, .max = FM_TOKENS_MAX},
    {.name = "max_tool_calls", .check = fm_check_int, .min = 1, .max = FM_TOKENS_MAX},
    {.name = "text", .check = fm_check_object, .members = text_rules},
    {.name = "reasoning", .check = fm_check_object, .members = reasoning_rules},
    {.name = "stream_options", .check = fm_check_object, .members = stream_option_rules},
    {.name = "truncation",
     .check = fm_check_only_words,
     .words = truncations,
     .note = "fm-proxy cannot drop turns yet; 'disabled' is accepted."},
    {.name = "background", .check = fm_check_only_false},
    {.name = "include", .check = fm_check_only_empty_array},
    {.name = "previous_response_id", .check = fm_check_unsupported, .note = "fm-proxy stores nothing yet."},
    {.name = "conversation", .check = fm_check_unsupported, .note = "fm-proxy stores nothing yet."},
    {.name = "prompt", .check = fm_check_unsupported},
    {.name = "context_management", .check = fm_check_unsupported},
    {.name = "moderation", .check = fm_check_unsupported},
    {.name = "prompt_cache_options", .check = fm_check_unsupported},
    {.members = fm_responses_tool_rules},
};

/* ---- what the Response object says back ---- */

static const struct {
    const char *name;
    const char *fallback; /* JSON */
} echoed[] = {
    {"instructions", "null"},      {"metadata", "{}"},
    {"temperature", "1"},          {"top_p", "1"},
    {"max_output_tokens", "null"}, {"max_tool_calls", "null"},
    {"tool_choice", "\"auto\""},   {"parallel_tool_calls", "true"},
    {"safety_identifier", "null"}, {"prompt_cache_key", "null"},
};

/* Parameters that have one accepted value each. */
static const char fixed[] = "\"truncation\":\"disabled\",\"background\":false,\"store\":false,"
                            "\"service_tier\":\"default\",\"previous_response_id\":null,"
                            "\"reasoning\":{\"effort\":null,\"summary\":null},\"top_logprobs\":0,"
                            "\"presence_penalty\":0,\"frequency_penalty\":0";

static void write_value_or(struct json_object *value, const char *fallback, struct fm_json_writer *w) {
    if (value) {
        fm_json_value(w, value);
    } else {
        fm_json_raw(w, fallback, strlen(fallback));
    }
}

static void write_echo(struct json_object *body, const struct fm_asked_format *format,
                       const struct fm_asked_tools *tools, struct fm_json_writer *w) {
    for (size_t i = 0; i < sizeof echoed / sizeof echoed[0]; i++) {
        fm_json_key(w, echoed[i].name);
        write_value_or(json_object_object_get(body, echoed[i].name), echoed[i].fallback, w);
    }
    struct json_object *text = json_object_object_get(body, "text");
    fm_json_key(w, "text");
    fm_json_object_begin(w);
    fm_json_key(w, "format");
    fm_format_write_echo(format, w);
    fm_json_key(w, "verbosity");
    write_value_or(json_object_object_get(text, "verbosity"), "\"medium\"", w);
    fm_json_object_end(w);
    fm_json_key(w, "tools");
    fm_tools_write_echo(tools, w);
    fm_json_raw(w, fixed, sizeof fixed - 1);
}

enum fm_code fm_responses_parse(struct json_object *params, struct fm_request *request, struct fm_error *error) {
    struct fm_asked_format format;
    struct fm_asked_tools tools;
    enum fm_code code = fm_check_members(rules, params, NULL, error);
    if (code == FM_OK) {
        struct json_object *text = json_object_object_get(params, "text");
        code = fm_format_find(params, json_object_object_get(text, "format"), &format, error);
    }
    if (code == FM_OK) {
        code = fm_tools_find(params, false, &format, &tools, error);
    }
    if (code != FM_OK) {
        return code;
    }
    fm_request_begin(request, params);
    fm_format_note(&format, fm_responses_format_params, request);
    fm_tools_note(&tools, request);
    struct fm_json_writer job = fm_json_writer_on(&request->job_members);
    write_messages(params, &job);
    fm_request_write_sampling(params, json_object_object_get(params, "max_output_tokens"), &job);
    fm_format_write_job(&format, &job);
    fm_tools_write_job(&tools, &job);
    struct fm_json_writer echo = fm_json_writer_on(&request->echo);
    write_echo(params, &format, &tools, &echo);
    return fm_request_end(request, error);
}
