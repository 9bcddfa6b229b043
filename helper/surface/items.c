/* Items of the Responses API: how each item is checked, becomes a message for the engine, and is kept in the store. */
#include "surface/items.h"
#include "surface/file.h"
#include "surface/format.h"
#include "surface/ids.h"
#include "surface/image.h"
#include "surface/messages.h"

#include <json-c/json.h>
#include <string.h>

#define ITEM_ID_MAX     64 /* characters, as in the OpenAI API */
#define INPUT_CHARS_MAX 10485760

/* ---- the shape of each item ---- */

static const struct fm_role roles[] = {
    {"user", "user"}, {"assistant", "assistant"}, {"system", "system"}, {"developer", "system"}, {0},
};

static const struct fm_rule image_rules[] = {
    {.name = "type", .check = fm_check_string},
    {.name = "prompt_cache_breakpoint", .check = fm_check_object, .members = fm_breakpoint_rules},
    {.name = "image_url", .check = fm_check_image_url, .required = true},
    {.name = "detail", .check = fm_check_enum, .words = fm_image_details},
    {.name = "file_id",
     .check = fm_check_unsupported,
     .note = "fm-proxy keeps no files: send the image in 'image_url'."},
    {0},
};

static const struct fm_rule file_rules[] = {
    {.name = "type", .check = fm_check_string},
    {.name = "prompt_cache_breakpoint", .check = fm_check_object, .members = fm_breakpoint_rules},
    {.members = fm_file_rules},
};

static const struct fm_part_kind parts[] = {
    {.type = "input_text", .member = "text"},
    {.type = "output_text", .member = "text"},
    {.type = "refusal", .member = "refusal"},
    {.type = "input_image", .member = "image_url", .image = image_rules},
    {.type = "input_file", .member = "file_data", .file = file_rules},
    {.type = "input_audio"},
    {.type = "computer_screenshot"},
    {0},
};

/*
 * Hosts send earlier output back, so its members `id`, `status`, `phase` and so on are accepted; a model does not see
 * these members. The SDK's helpers add `parsed` and `parsed_arguments`.
 */
static const struct fm_rule message_rules[] = {
    {.name = "type", .check = fm_check_string},
    {.name = "role", .check = fm_check_string},
    {.name = "content", .check = fm_check_any},
    {.name = "id", .check = fm_check_text, .min = 1, .max = ITEM_ID_MAX},
    {.name = "status", .check = fm_check_string},
    {.name = "phase", .check = fm_check_string},
    {0},
};

static const struct fm_rule part_rules[] = {
    {.name = "type", .check = fm_check_string},
    {.name = "prompt_cache_breakpoint", .check = fm_check_object, .members = fm_breakpoint_rules},
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
    .parts_note = "Supported values are: 'input_text', 'output_text', 'refusal', 'input_image', 'input_file'.",
    .message_rules = message_rules,
    .part_rules = part_rules,
};

/* A tool's output may also be a list of parts. */
static const struct fm_part_kind output_parts[] = {
    {.type = "input_text", .member = "text"},
    {.type = "output_text", .member = "text"}, /* from a tool that is itself a model */
    {.type = "input_image"},
    {.type = "input_file", .member = "file_data", .file = file_rules},
    {0},
};

static const struct fm_dialect output_dialect = {
    .parts = output_parts,
    .parts_note = "Supported values are: 'input_text', 'output_text', 'input_file'.",
    .part_rules = part_rules,
};

/* SDKs send back every member of an item that they know; a member without a value is null. */
#define LATER_MEMBERS                                                                                                  \
    {.name = "namespace", .check = fm_check_unsupported, .note = "fm-proxy has no namespaces: leave it out."},         \
        {.name = "caller", .check = fm_check_unsupported, .note = "fm-proxy's calls have no caller: leave it out."},   \
        {.name = "async", .check = fm_check_unsupported, .note = "fm-proxy has no such calls: leave it out."}, {       \
        .name = "created_by", .check = fm_check_string                                                                 \
    }

static const struct fm_rule call_rules[] = {
    {.name = "type", .check = fm_check_any},
    LATER_MEMBERS,
    {.name = "id", .check = fm_check_text, .min = 1, .max = ITEM_ID_MAX},
    {.name = "status", .check = fm_check_string},
    {.name = "call_id", .check = fm_check_text, .min = 1, .required = true},
    {.name = "name", .check = fm_check_name, .required = true},
    {.name = "arguments", .check = fm_check_text, .required = true},
    {.name = "parsed_arguments", .check = fm_check_any},
    {0},
};

static const struct fm_rule custom_call_rules[] = {
    {.name = "type", .check = fm_check_any},
    LATER_MEMBERS,
    {.name = "id", .check = fm_check_text, .min = 1, .max = ITEM_ID_MAX},
    {.name = "status", .check = fm_check_string},
    {.name = "call_id", .check = fm_check_text, .min = 1, .required = true},
    {.name = "name", .check = fm_check_name, .required = true},
    {.name = "input", .check = fm_check_text, .required = true},
    {0},
};

static const struct fm_rule call_output_rules[] = {
    {.name = "type", .check = fm_check_any},
    LATER_MEMBERS,
    {.name = "id", .check = fm_check_text, .min = 1, .max = ITEM_ID_MAX},
    {.name = "status", .check = fm_check_string},
    {.name = "call_id", .check = fm_check_text, .min = 1, .required = true},
    {.name = "output", .check = fm_check_any, .required = true},
    {0},
};

static const struct fm_rule reference_rules[] = {
    {.name = "type", .check = fm_check_any},
    {.name = "id", .check = fm_check_text, .min = 1, .max = ITEM_ID_MAX, .required = true},
    {0},
};

/*
 * Reasoning before an answer. Its `encrypted_content` is a state that the engine wants back (ENGINE.md, State of an
 * answer). An engine ignores a state that comes from another server.
 */
static const struct fm_rule reasoning_rules[] = {
    {.name = "type", .check = fm_check_any},
    LATER_MEMBERS,
    {.name = "id", .check = fm_check_text, .min = 1, .max = ITEM_ID_MAX},
    {.name = "status", .check = fm_check_string},
    {.name = "summary", .check = fm_check_array},
    {.name = "content", .check = fm_check_array},
    {.name = "encrypted_content", .check = fm_check_string},
    {0},
};

/* The summary of a conversation, made by responses.compact. */
static const struct fm_rule compaction_rules[] = {
    {.name = "type", .check = fm_check_any},
    LATER_MEMBERS,
    {.name = "id", .check = fm_check_text, .min = 1, .max = ITEM_ID_MAX},
    {.name = "status", .check = fm_check_string},
    {.name = "encrypted_content", .check = fm_check_string, .min = 1, .required = true},
    {0},
};

static const struct fm_part_kind summary_parts[] = {{.type = "summary_text", .member = "text"}, {0}};
static const struct fm_part_kind thought_parts[] = {{.type = "reasoning_text", .member = "text"},
                                                    {.type = "text", .member = "text"},
                                                    {0}};

static const struct fm_dialect summary_dialect = {
    .parts = summary_parts,
    .parts_note = "Supported values are: 'summary_text'.",
    .part_rules = part_rules,
};

static const struct fm_dialect thought_dialect = {
    .parts = thought_parts,
    .parts_note = "Supported values are: 'reasoning_text', 'text'.",
    .part_rules = part_rules,
};

/* Items of the OpenAI API for tools that fm-proxy does not have. */
static const char *const later_items[] = {
    "compaction_trigger",      "web_search_call",
    "file_search_call",        "computer_call",
    "computer_call_output",    "code_interpreter_call",
    "image_generation_call",   "local_shell_call",
    "local_shell_call_output", "shell_call",
    "shell_call_output",       "apply_patch_call",
    "apply_patch_call_output", "mcp_call",
    "mcp_list_tools",          "mcp_approval_request",
    "mcp_approval_response",   "tool_search_call",
    "tool_search_output",      NULL,
};

static enum fm_code check_message(struct json_object *item, const struct fm_path *at, struct fm_error *error) {
    return fm_message_check(&dialect, item, at, error);
}

static enum fm_code check_call(struct json_object *item, const struct fm_path *at, struct fm_error *error) {
    return fm_check_members(call_rules, item, at, error);
}

static enum fm_code check_custom_call(struct json_object *item, const struct fm_path *at, struct fm_error *error) {
    return fm_check_members(custom_call_rules, item, at, error);
}

static enum fm_code check_call_output(struct json_object *item, const struct fm_path *at, struct fm_error *error) {
    struct fm_path output_at = {.parent = at, .key = "output"};
    enum fm_code code = fm_check_members(call_output_rules, item, at, error);
    return code ? code : fm_content_check(&output_dialect, json_object_object_get(item, "output"), &output_at, error);
}

static enum fm_code check_reasoning(struct json_object *item, const struct fm_path *at, struct fm_error *error) {
    struct json_object *summary = json_object_object_get(item, "summary");
    struct json_object *content = json_object_object_get(item, "content");
    struct fm_path summary_at = {.parent = at, .key = "summary"};
    struct fm_path content_at = {.parent = at, .key = "content"};
    enum fm_code code = fm_check_members(reasoning_rules, item, at, error);
    if (code == FM_OK && summary) {
        code = fm_content_check(&summary_dialect, summary, &summary_at, error);
    }
    return code == FM_OK && content ? fm_content_check(&thought_dialect, content, &content_at, error) : code;
}

static enum fm_code check_compaction(struct json_object *item, const struct fm_path *at, struct fm_error *error) {
    static const char start[] = FM_COMPACTION_START;
    struct fm_path content_at = {.parent = at, .key = "encrypted_content"};
    enum fm_code code = fm_check_members(compaction_rules, item, at, error);
    if (code != FM_OK) {
        return code;
    }
    const char *content = json_object_get_string(json_object_object_get(item, "encrypted_content"));
    bool ours = strncmp(content, start, sizeof start - 1) == 0;
    return ours ? FM_OK
                : fm_reject_value(&content_at, "Expected the text that responses.compact returned, unchanged.", error);
}

static enum fm_code check_reference(struct json_object *item, const struct fm_path *at, struct fm_error *error) {
    return fm_check_members(reference_rules, item, at, error);
}

/* The first row also stands for an item that has a role but no type, because the AI SDK writes messages like that. */
static const struct item_kind {
    const char *type;
    const char *id_prefix; /* the prefix of an id that is drawn for such an item */
    enum fm_code (*check)(struct json_object *item, const struct fm_path *at, struct fm_error *error);
} item_kinds[] = {
    {"message", "msg_", check_message},
    {"function_call", "fc_", check_call},
    {"function_call_output", "fco_", check_call_output},
    {"custom_tool_call", "ctc_", check_custom_call},
    {"custom_tool_call_output", "ctco_", check_call_output},
    {"reasoning", "rs_", check_reasoning},
    {"compaction", FM_COMPACTION_PREFIX, check_compaction},
    {"item_reference", NULL, check_reference},
};

/* The row of an item's type; NULL when no row has it. */
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
            return fm_reject_unsupported(
                at, "fm-proxy takes messages, reasoning, calls of functions and custom tools, their outputs, and compactions.",
                error);
        }
    }
    return fm_reject_value(at,
                           "Supported values are: 'message', 'function_call', 'function_call_output', "
                           "'custom_tool_call', 'custom_tool_call_output', 'reasoning', 'compaction', "
                           "'item_reference'.",
                           error);
}

/* Whether an item is a reference. An item with an id, but without type and role, is a reference too. */
static bool is_bare_reference(struct json_object *item) {
    return !json_object_object_get(item, "type") && !json_object_object_get(item, "role") &&
           json_object_object_get(item, "id");
}

static enum fm_code check_item(struct json_object *item, const struct fm_path *at, struct fm_error *error) {
    if (!json_object_is_type(item, json_type_object)) {
        return fm_reject_type(at, item, "an object", error);
    }
    struct json_object *type = json_object_object_get(item, "type");
    struct fm_path type_at = {.parent = at, .key = "type"};
    if (is_bare_reference(item)) {
        return check_reference(item, at, error);
    }
    if (!type && !json_object_object_get(item, "role")) {
        return fm_reject_missing(&type_at, error);
    }
    if (type && !json_object_is_type(type, json_type_string)) {
        return fm_reject_type(&type_at, type, "a string", error);
    }
    const struct item_kind *kind = find_kind(type);
    return kind ? kind->check(item, at, error) : reject_item_type(type, &type_at, error);
}

/* Ids must be unique, because `after` names an item of a list by its id. */
static enum fm_code check_ids(struct json_object *items, const struct fm_path *at, struct fm_error *error) {
    struct json_object *seen = json_object_new_object();
    enum fm_code code = seen ? FM_OK : fm_fail_no_memory(error);
    size_t count = json_object_array_length(items);
    for (size_t i = 0; i < count && code == FM_OK; i++) {
        struct json_object *id = json_object_object_get(json_object_array_get_idx(items, i), "id");
        struct fm_path item_at = {.parent = at, .index = i};
        struct fm_path id_at = {.parent = &item_at, .key = "id"};
        const char *name = id ? json_object_get_string(id) : NULL;
        if (name && json_object_object_get_ex(seen, name, NULL)) {
            code = fm_reject_value(&id_at, "Another item has this id: each item needs its own.", error);
        } else if (name && json_object_object_add(seen, name, NULL) != 0) {
            code = fm_fail_no_memory(error);
        }
    }
    json_object_put(seen);
    return code;
}

enum fm_code fm_check_input(const struct fm_rule *rule, struct json_object *value, const struct fm_path *at,
                            struct fm_error *error) {
    static const struct fm_rule text_rule = {.max = INPUT_CHARS_MAX};
    (void)rule;
    if (json_object_is_type(value, json_type_string)) {
        return fm_check_string(&text_rule, value, at, error);
    }
    if (!json_object_is_type(value, json_type_array)) {
        return fm_reject_type(at, value, "a string or an array", error);
    }
    enum fm_code code = FM_OK;
    size_t count = json_object_array_length(value);
    for (size_t i = 0; i < count && code == FM_OK; i++) {
        struct fm_path item_at = {.parent = at, .index = i};
        code = check_item(json_object_array_get_idx(value, i), &item_at, error);
    }
    return code ? code : check_ids(value, at, error);
}

/* ---- the whole conversation ---- */

const char *fm_item_reference(struct json_object *item) {
    bool refers = fm_string_is(json_object_object_get(item, "type"), "item_reference") || is_bare_reference(item);
    return refers ? json_object_get_string(json_object_object_get(item, "id")) : NULL;
}

bool fm_items_refer(struct json_object *input) {
    bool list = json_object_is_type(input, json_type_array);
    size_t count = list ? json_object_array_length(input) : 0;
    for (size_t i = 0; i < count; i++) {
        if (fm_item_reference(json_object_array_get_idx(input, i))) {
            return true;
        }
    }
    return false;
}

static bool is_item(struct json_object *items, size_t index, const char *type) {
    return fm_string_is(json_object_object_get(json_object_array_get_idx(items, index), "type"), type);
}

static bool is_call(struct json_object *items, size_t index) {
    return is_item(items, index, "function_call") || is_item(items, index, "custom_tool_call");
}

static bool is_output(struct json_object *items, size_t index) {
    return is_item(items, index, "function_call_output") || is_item(items, index, "custom_tool_call_output");
}

/* `ids` has the ids of the calls so far. */
static enum fm_code check_call_ids(struct json_object *items, size_t index, struct json_object *ids,
                                   const struct fm_path *at, struct fm_error *error) {
    struct json_object *id = json_object_object_get(json_object_array_get_idx(items, index), "call_id");
    if (is_call(items, index)) {
        return fm_call_note(ids, id, error);
    }
    /* the error names the list, as in OpenAI's API */
    return is_output(items, index) ? fm_call_find(ids, id, at, error) : FM_OK;
}

enum fm_code fm_items_check_whole(struct json_object *items, struct fm_error *error) {
    static const struct fm_path at = {.key = "input"};
    struct json_object *ids = json_object_new_object();
    enum fm_code code = FM_OK;
    bool answerable = false; /* an empty message can be answered too; reasoning alone can't */
    size_t count = json_object_array_length(items);
    for (size_t i = 0; i < count && code == FM_OK; i++) {
        answerable |= !is_item(items, i, "reasoning");
        code = check_call_ids(items, i, ids, &at, error);
    }
    json_object_put(ids);
    return code == FM_OK && !answerable ? fm_reject_value(&at, "Expected at least one message.", error) : code;
}

/* The content of an item that may have images, which is a user's message; otherwise NULL. */
static struct json_object *content_with_images(struct json_object *item) {
    return fm_string_is(json_object_object_get(item, "role"), "user") ? json_object_object_get(item, "content") : NULL;
}

bool fm_items_have_images(struct json_object *items) {
    size_t count = json_object_array_length(items);
    size_t i = 0;
    while (i < count && !fm_content_has_images(&dialect, content_with_images(json_object_array_get_idx(items, i)))) {
        i++;
    }
    return i < count;
}

size_t fm_items_image_parts(struct json_object *items) {
    size_t found = 0;
    size_t count = json_object_array_length(items);
    for (size_t i = 0; i < count; i++) {
        struct json_object *content = content_with_images(json_object_array_get_idx(items, i));
        found += fm_content_has_images(&dialect, content) ? json_object_array_length(content) : 0;
    }
    return found;
}

void fm_items_note_images(struct json_object *input, struct fm_buf *params) {
    size_t count = json_object_is_type(input, json_type_array) ? json_object_array_length(input) : 0;
    for (size_t i = 0; i < count; i++) {
        fm_content_note_images(&dialect, content_with_images(json_object_array_get_idx(input, i)), "input", i, params);
    }
}

/* ---- items as messages for the engine ---- */

static void write_call_output(struct json_object *item, struct fm_buf *scratch, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_json_key_str(w, "role", "tool");
    fm_json_key(w, "content");
    fm_content_write(&output_dialect, json_object_object_get(item, "output"), scratch, w);
    fm_json_key_value(w, "tool_call_id", json_object_object_get(item, "call_id"));
    fm_json_object_end(w);
}

/* Writes the summary as a system message. The message says that it is a summary. */
static void write_compaction(struct json_object *item, struct fm_buf *scratch, struct fm_json_writer *w) {
    struct json_object *content = json_object_object_get(item, "encrypted_content");
    size_t start = sizeof FM_COMPACTION_START - 1;
    fm_buf_reset(scratch);
    fm_buf_append_str(scratch, "Summary of the conversation so far:\n");
    fm_buf_append(scratch, json_object_get_string(content) + start,
                  (size_t)json_object_get_string_len(content) - start);
    if (scratch->failed) {
        w->buf->failed = true;
        return;
    }
    fm_turn_write("system", scratch->data, scratch->len, w);
}

/* Whether the item at `index` is the assistant's answer, or a part of one. */
static bool is_answer(struct json_object *items, size_t index) {
    struct json_object *role = json_object_object_get(json_object_array_get_idx(items, index), "role");
    return is_call(items, index) || fm_string_is(role, "assistant");
}

/* Appends the texts of the parts in `list`, which may be NULL. */
static void append_parts(struct json_object *list, struct fm_buf *text) {
    for (size_t i = 0; list && i < json_object_array_length(list); i++) {
        struct json_object *part = json_object_object_get(json_object_array_get_idx(list, i), "text");
        fm_buf_append(text, json_object_get_string(part), (size_t)json_object_get_string_len(part));
    }
}

/* Writes the reasoning of the items from `index` to `end`: for each item its content, or else its summary. */
static void write_reasoning(struct json_object *items, size_t index, size_t end, struct fm_buf *scratch,
                            struct fm_json_writer *w) {
    fm_buf_reset(scratch);
    for (; index < end; index++) {
        struct json_object *item = json_object_array_get_idx(items, index);
        size_t before = scratch->len;
        append_parts(json_object_object_get(item, "content"), scratch);
        if (scratch->len == before) {
            append_parts(json_object_object_get(item, "summary"), scratch);
        }
    }
    if (scratch->len > 0) {
        fm_json_key(w, "reasoning");
        fm_json_string(w, scratch->data, scratch->len);
    }
    w->buf->failed |= scratch->failed;
}

/* Writes the states of the reasoning in both ranges of items, which the engine wants back. */
static void write_states(struct json_object *items, const size_t ranges[2][2], struct fm_json_writer *w) {
    bool any = false;
    for (size_t r = 0; r < 2; r++) {
        for (size_t i = ranges[r][0]; i < ranges[r][1]; i++) {
            struct json_object *item = json_object_array_get_idx(items, i);
            struct json_object *state = json_object_object_get(item, "encrypted_content");
            if (!state || json_object_get_string_len(state) == 0) {
                continue;
            }
            if (!any) {
                fm_json_key(w, "state");
                fm_json_array_begin(w);
                any = true;
            }
            fm_json_value(w, state);
        }
    }
    if (any) {
        fm_json_array_end(w);
    }
}

/*
 * Returns the index after the reasoning that begins at `index`. If the reasoning ends an answer, only its state is
 * kept.
 */
static size_t after_last_thought(struct json_object *items, size_t index) {
    size_t end = index;
    while (is_item(items, end, "reasoning")) {
        end++;
    }
    return end > index && !is_answer(items, end) ? end : index;
}

/*
 * Writes the message at `index`. If it is the assistant's, the reasoning before it and the calls after it belong to the
 * same message, because they were one answer. Calls without a message before them become a message. Reasoning without
 * an answer is left out, but if it follows an answer, its state belongs to that answer. Returns the index of the next
 * item.
 */
static size_t write_turn(struct json_object *items, size_t index, struct fm_buf *scratch, struct fm_json_writer *w) {
    size_t thought = index;
    while (is_item(items, index, "reasoning")) {
        index++;
    }
    size_t thought_end = index;
    if (thought_end > thought && !is_answer(items, index)) {
        return index;
    }
    struct json_object *item = json_object_array_get_idx(items, index);
    bool takes_calls = true;
    fm_json_object_begin(w);
    write_reasoning(items, thought, thought_end, scratch, w);
    if (is_call(items, index)) {
        fm_json_key_str(w, "role", "assistant");
    } else {
        fm_message_write(&dialect, item, scratch, w);
        takes_calls = fm_string_is(json_object_object_get(item, "role"), "assistant");
        index++;
    }
    if (takes_calls && is_call(items, index)) {
        fm_json_key(w, "tool_calls");
        fm_json_array_begin(w);
        for (; is_call(items, index); index++) {
            struct json_object *call = json_object_array_get_idx(items, index);
            fm_call_write(json_object_object_get(call, "call_id"), call, scratch, w);
        }
        fm_json_array_end(w);
    }
    size_t end = takes_calls ? after_last_thought(items, index) : index;
    write_states(items, (const size_t[2][2]){{thought, thought_end}, {index, end}}, w);
    fm_json_object_end(w);
    return end;
}

void fm_items_write_messages(struct json_object *items, struct fm_json_writer *w) {
    struct fm_buf scratch;
    fm_buf_init(&scratch, w->buf->max);
    size_t count = json_object_array_length(items);
    for (size_t i = 0; i < count;) {
        if (is_output(items, i)) {
            write_call_output(json_object_array_get_idx(items, i++), &scratch, w);
        } else if (is_item(items, i, "compaction")) {
            write_compaction(json_object_array_get_idx(items, i++), &scratch, w);
        } else {
            i = write_turn(items, i, &scratch, w);
        }
    }
    fm_buf_free(&scratch);
}

/* ---- items as they are stored ---- */

static void write_part(const char *type, struct json_object *text, struct fm_json_writer *w) {
    bool output = strcmp(type, "output_text") == 0;
    fm_json_array_begin(w);
    fm_json_object_begin(w);
    fm_json_key_str(w, "type", type);
    fm_json_key_value(w, "text", text);
    if (output) { /* clients rely on this member */
        fm_json_key(w, "annotations");
        fm_json_raw(w, "[]", 2);
    }
    fm_json_object_end(w);
    fm_json_array_end(w);
}

static void write_id(struct json_object *id, const char *prefix, struct fm_json_writer *w) {
    char drawn[FM_ID_SIZE];
    fm_json_key(w, "id");
    if (id) {
        fm_json_value(w, id);
        return;
    }
    fm_id_draw(drawn, prefix);
    fm_json_str(w, drawn);
}

static void write_kept_content(struct json_object *item, struct json_object *content, struct fm_json_writer *w) {
    bool assistant = fm_string_is(json_object_object_get(item, "role"), "assistant");
    fm_json_key(w, "content");
    if (json_object_is_type(content, json_type_string)) {
        write_part(assistant ? "output_text" : "input_text", content, w);
    } else {
        fm_json_value(w, content);
    }
}

/* Writes `type`, `id` and `status`, then the item's other members, then its content. */
static void write_kept(struct json_object *item, struct fm_json_writer *w) {
    static const char *const written[] = {"type", "id", "status", "content"};
    const struct item_kind *kind = find_kind(json_object_object_get(item, "type"));
    struct json_object *content = json_object_object_get(item, "content");
    struct json_object *status = json_object_object_get(item, "status");
    fm_json_object_begin(w);
    fm_json_key_str(w, "type", kind->type);
    write_id(json_object_object_get(item, "id"), kind->id_prefix, w);
    fm_json_key_str(w, "status", status ? json_object_get_string(status) : "completed");
    struct json_object_iter member_at;
    json_object_object_foreachC(item, member_at) {
        bool done = false;
        for (size_t i = 0; i < sizeof written / sizeof written[0]; i++) {
            done |= strcmp(member_at.key, written[i]) == 0;
        }
        if (!done && member_at.val) {
            fm_json_key_value(w, member_at.key, member_at.val);
        }
    }
    if (content) {
        write_kept_content(item, content, w);
    }
    if (kind->check == check_reasoning && !json_object_object_get(item, "summary")) { /* clients rely on this member */
        fm_json_key(w, "summary");
        fm_json_raw(w, "[]", 2);
    }
    fm_json_object_end(w);
}

static void write_kept_reference(const char *id, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_json_key_str(w, "type", "item_reference");
    fm_json_key_str(w, "id", id);
    fm_json_object_end(w);
}

static void write_kept_text(struct json_object *text, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_json_key_str(w, "type", "message");
    write_id(NULL, "msg_", w);
    fm_json_key_str(w, "status", "completed");
    fm_json_key_str(w, "role", "user");
    fm_json_key(w, "content");
    write_part("input_text", text, w);
    fm_json_object_end(w);
}

void fm_items_write_kept(struct json_object *input, struct fm_json_writer *w) {
    bool list = json_object_is_type(input, json_type_array);
    size_t count = list ? json_object_array_length(input) : 0;
    fm_json_array_begin(w);
    for (size_t i = 0; i < count; i++) {
        struct json_object *item = json_object_array_get_idx(input, i);
        const char *reference = fm_item_reference(item);
        if (reference) {
            write_kept_reference(reference, w);
        } else {
            write_kept(item, w);
        }
    }
    if (json_object_is_type(input, json_type_string)) {
        write_kept_text(input, w);
    }
    fm_json_array_end(w);
}
