/* The body of responses.create, and of the calls that take a part of it. PROTOCOL.md, "responses.create". */
#include "protocol/frame.h"
#include "surface/format.h"
#include "surface/items.h"
#include "surface/request.h"
#include "surface/tools.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

/* ---- include ---- */

/*
 * The value of `include` that has an effect. All other values are accepted without effect: what they ask for never
 * exists, or is always in the response.
 */
#define INCLUDE_LOGPROBS "message.output_text.logprobs"

static const char *const includables[] = {
    INCLUDE_LOGPROBS,
    "reasoning.encrypted_content",
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
    NULL,
};

static bool is_includable(struct json_object *value) {
    const char *const *word = includables;
    while (*word && !fm_string_is(value, *word)) {
        word++;
    }
    return *word != NULL;
}

enum fm_code fm_check_include(const struct fm_rule *rule, struct json_object *value, const struct fm_path *at,
                              struct fm_error *error) {
    static const struct fm_rule entry_rule = {0};
    enum fm_code code = fm_check_array(rule, value, at, error);
    size_t count = code == FM_OK ? json_object_array_length(value) : 0;
    for (size_t i = 0; i < count && code == FM_OK; i++) {
        struct fm_path here = {.parent = at, .index = i};
        struct json_object *entry = json_object_array_get_idx(value, i);
        code = fm_check_string(&entry_rule, entry, &here, error);
        if (code == FM_OK && !is_includable(entry)) {
            code = fm_reject_value(&here, "Expected one of OpenAI's values, such as '" INCLUDE_LOGPROBS "'.", error);
        }
    }
    return code;
}

static bool includes(struct json_object *body, const char *what) {
    struct json_object *list = json_object_object_get(body, "include");
    size_t count = list ? json_object_array_length(list) : 0;
    size_t i = 0;
    while (i < count && !fm_string_is(json_object_array_get_idx(list, i), what)) {
        i++;
    }
    return i < count;
}

#define ECHO_MAX (FM_FRAME_BODY_MAX - (3u << 19)) /* bytes; the rest of a frame is for the output */

/* ---- the body ---- */

static const char *const truncations[] = {"auto", "disabled", NULL};

static const struct fm_rule text_rules[] = {
    {.name = "format", .check = fm_check_variant, .words = fm_format_types, .members = fm_responses_formats},
    {.name = "verbosity", .check = fm_check_enum, .words = fm_verbosity_words},
    {0},
};

static const char *const summary_words[] = {"auto", "concise", "detailed", NULL};

static const char *const contexts[] = {"auto", NULL};
static const char *const modes[] = {"standard", NULL};

static const struct fm_rule reasoning_rules[] = {
    {.name = "context",
     .check = fm_check_only_word,
     .words = contexts,
     .note = "The model's chat template decides which earlier reasoning it reads: use 'auto', or leave it out."},
    {.name = "mode",
     .check = fm_check_only_word,
     .words = modes,
     .note = "fm-proxy has one mode: use 'standard', or leave it out."},
    {.name = "effort", .check = fm_check_enum, .words = fm_effort_words},
    {.name = "summary", .check = fm_check_enum, .words = summary_words},
    {.name = "generate_summary", .check = fm_check_enum, .words = summary_words}, /* the older name of `summary` */
    {0},
};

static const char *const windows[] = {"soonest", NULL};

static const struct fm_rule background_rules[] = {
    {.name = "completion_window",
     .check = fm_check_only_word,
     .words = windows,
     .note = "fm-proxy answers as soon as it can: use 'soonest', or leave it out."},
    {.name = "continuation_id", .check = fm_check_string},
    {0},
};

static const char *const compressions[] = {"auto", "disabled", NULL};

static const struct fm_rule image_rules[] = {
    {.name = "context_compression",
     .check = fm_check_only_word,
     .words = compressions,
     .note = "fm-proxy compresses no images: use 'disabled', or leave it out."},
    {0},
};

static const struct fm_rule stream_option_rules[] = {
    {.name = "include_obfuscation", .check = fm_check_bool},
    {0},
};

const struct fm_rule fm_responses_rules[] = {
    {.name = "input", .check = fm_check_input},
    {.name = "instructions", .check = fm_check_string},
    {.name = "max_output_tokens", .check = fm_check_int, .min = 1, .max = FM_TOKENS_MAX},
    {.name = "max_tool_calls", .check = fm_check_int, .min = 1, .max = FM_TOKENS_MAX},
    {.name = "text", .check = fm_check_object, .members = text_rules},
    {.name = "response_format", .check = fm_check_any_format}, /* chat's name for `text.format` */
    {.name = "reasoning", .check = fm_check_object, .members = reasoning_rules},
    {.name = "stream_options", .check = fm_check_object, .members = stream_option_rules},
    {.name = "truncation", .check = fm_check_enum, .words = truncations},
    {.name = "store", .check = fm_check_bool},
    {.name = "background", .check = fm_check_bool},
    {.name = "background_options", .check = fm_check_object, .members = background_rules},
    {.name = "image", .check = fm_check_object, .members = image_rules},
    {.name = "include", .check = fm_check_include},
    {.name = "previous_response_id", .check = fm_check_text, .min = 1},
    {.name = "conversation", .check = fm_check_unsupported, .note = "Use 'previous_response_id' instead."},
    {.name = "prompt",
     .check = fm_check_unsupported,
     .note = "Send the text in 'input'; fm-proxy keeps no prompt templates."},
    {.name = "context_management", .check = fm_check_unsupported},
    {.name = "moderation", .check = fm_check_unsupported},
    {.name = "access_programs", .check = fm_check_unsupported},
    {.name = "personality",
     .check = fm_check_unsupported,
     .note = "fm-proxy has no styles of models: describe the style in 'instructions'."},
    {.members = fm_responses_tool_rules},
};

/* ---- what the Response object repeats ---- */

static const struct {
    const char *name;
    const char *fallback; /* JSON */
} echoed[] = {
    {"instructions", "null"},       {"metadata", "{}"},
    {"temperature", "1"},           {"top_p", "1"},
    {"max_output_tokens", "null"},  {"max_tool_calls", "null"},
    {"tool_choice", "\"auto\""},    {"parallel_tool_calls", "true"},
    {"safety_identifier", "null"},  {"prompt_cache_key", "null"},
    {"background", "false"},        {"previous_response_id", "null"},
    {"truncation", "\"disabled\""}, {"presence_penalty", "0"},
    {"frequency_penalty", "0"},     {"top_logprobs", "0"},
};

/* Members that always have the same value. OpenAI's SDKs require both. */
static const char fixed[] = "\"service_tier\":\"default\",\"access_programs\":null";

static void write_value_or(struct json_object *value, const char *fallback, struct fm_json_writer *w) {
    if (value) {
        fm_json_value(w, value);
    } else {
        fm_json_raw(w, fallback, strlen(fallback));
    }
}

/* The form in which reasoning is shown; NULL: not given. */
static struct json_object *summary_of(struct json_object *reasoning) {
    struct json_object *summary = json_object_object_get(reasoning, "summary");
    return summary ? summary : json_object_object_get(reasoning, "generate_summary");
}

static void write_reasoning_echo(struct json_object *reasoning, struct fm_json_writer *w) {
    fm_json_key(w, "reasoning");
    fm_json_object_begin(w);
    fm_json_key(w, "effort");
    write_value_or(json_object_object_get(reasoning, "effort"), "null", w);
    fm_json_key(w, "summary");
    write_value_or(summary_of(reasoning), "null", w);
    fm_json_object_end(w);
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
    write_reasoning_echo(json_object_object_get(body, "reasoning"), w);
    fm_json_raw(w, fixed, sizeof fixed - 1);
}

/*
 * Refuses a request whose response would be too large. The error names the largest of the members that the response
 * repeats.
 */
static enum fm_code reject_large_echo(struct json_object *body, struct fm_error *error) {
    static const char *const large[] = {"instructions", "tools", "text", "response_format"};
    struct fm_path at = {.key = NULL};
    size_t most = 0;
    for (size_t i = 0; i < sizeof large / sizeof large[0]; i++) {
        size_t len = 0;
        json_object_to_json_string_length(json_object_object_get(body, large[i]), JSON_C_TO_STRING_PLAIN, &len);
        at.key = len > most ? large[i] : at.key;
        most = len > most ? len : most;
    }
    return fm_reject_value(&at, "The response repeats it, and must fit a frame with its output: shorten it.", error);
}

/* ---- the conversation ---- */

static enum fm_code reject_lost_background(struct fm_error *error) {
    static const struct fm_path at = {.key = "background"};
    return fm_reject_unsupported_value(
        &at, "A response in the background must be stored: leave 'store' out, or set it to true.", error);
}

/* Checks as much of the conversation as is possible without the store. */
static enum fm_code check_conversation(struct json_object *body, struct fm_error *error) {
    static const struct fm_path input_at = {.key = "input"};
    struct json_object *input = json_object_object_get(body, "input");
    struct json_object *store = json_object_object_get(body, "store");
    bool chained = json_object_object_get(body, "previous_response_id");
    if (!input && !chained) {
        return fm_reject_missing(&input_at, error);
    }
    if (store && !json_object_get_boolean(store) &&
        json_object_get_boolean(json_object_object_get(body, "background"))) {
        return reject_lost_background(error);
    }
    bool here = json_object_is_type(input, json_type_array) && !chained && !fm_items_refer(input);
    return here ? fm_items_check_whole(input, error) : FM_OK;
}

static void write_instructions(struct json_object *body, struct fm_json_writer *w) {
    struct json_object *instructions = json_object_object_get(body, "instructions");
    if (instructions) {
        size_t len = (size_t)json_object_get_string_len(instructions);
        fm_turn_write("system", json_object_get_string(instructions), len, w);
    }
}

static void write_last(enum fm_purpose purpose, struct fm_json_writer *w) {
    static const char ask[] =
        "Summarize the conversation so far for somebody who has to go on with it and has not read it. "
        "Keep names, numbers, decisions, open questions and what was asked for. Write the summary alone.";
    if (purpose == FM_PURPOSE_SUMMARY) {
        fm_turn_write("user", ask, sizeof ask - 1, w);
    }
}

static void write_messages(struct json_object *body, enum fm_purpose purpose, struct fm_json_writer *w) {
    struct json_object *input = json_object_object_get(body, "input");
    fm_json_key(w, "messages");
    fm_json_array_begin(w);
    write_instructions(body, w);
    if (json_object_is_type(input, json_type_string)) {
        fm_turn_write("user", json_object_get_string(input), (size_t)json_object_get_string_len(input), w);
    } else {
        fm_items_write_messages(input, w);
    }
    write_last(purpose, w);
    fm_json_array_end(w);
}

/*
 * Writes the messages. If the store must answer first, notes the parts from which they are made later. Also notes what
 * to store.
 */
static void note_conversation(struct json_object *body, enum fm_purpose purpose, struct fm_request *request,
                              struct fm_json_writer *job) {
    struct json_object *previous = json_object_object_get(body, "previous_response_id");
    struct json_object *input = json_object_object_get(body, "input");
    struct json_object *store = json_object_object_get(body, "store");
    struct fm_conversation *conversation = &request->conversation;
    request->store = purpose == FM_PURPOSE_ANSWER && (!store || json_object_get_boolean(store));
    request->background = json_object_get_boolean(json_object_object_get(body, "background"));
    conversation->refers = fm_items_refer(input);
    request->unresolved = previous || conversation->refers;
    if (previous) {
        conversation->previous_id = strdup(json_object_get_string(previous));
        request->job_members.failed |= !conversation->previous_id;
    }
    if (request->unresolved) {
        struct fm_json_writer first = fm_json_writer_on(&conversation->first);
        write_instructions(body, &first);
        struct fm_json_writer last = fm_json_writer_on(&conversation->last);
        write_last(purpose, &last);
    } else {
        write_messages(body, purpose, job);
    }
    if (request->unresolved || request->store) {
        struct fm_json_writer kept = fm_json_writer_on(&conversation->input);
        fm_items_write_kept(input, &kept);
    }
}

static void write_purpose(enum fm_purpose purpose, struct fm_request *request, struct fm_json_writer *job) {
    if (purpose == FM_PURPOSE_COUNT) {
        fm_json_key_int(job, "max_tokens", 0);
        request->repeatable = false; /* a token count does not depend on other jobs */
    } else if (purpose == FM_PURPOSE_SUMMARY) {
        fm_json_key_int(job, "temperature", 0);
        fm_request_write_no_effort(job);
        fm_json_key_int(job, "max_tokens", FM_SUMMARY_TOKENS);
        request->choices = 2;
    }
}

enum fm_code fm_responses_read(struct json_object *body, enum fm_purpose purpose, const struct fm_ignored *ignored,
                               struct fm_request *request, struct fm_error *error) {
    struct fm_format_place place;
    struct fm_asked_format format;
    struct fm_asked_tools tools;
    enum fm_code code = check_conversation(body, error);
    code = code ? code : fm_format_of_responses(body, &place, error);
    code = code ? code : fm_format_find(body, &place, &format, error);
    code = code ? code : fm_tools_find(body, false, &format, &tools, error);
    if (code != FM_OK) {
        return code;
    }
    fm_request_begin(request, body, ignored);
    fm_format_note(&format, request);
    fm_tools_note(&tools, request);
    fm_items_note_images(json_object_object_get(body, "input"), &request->image_params);
    struct fm_json_writer job = fm_json_writer_on(&request->job_members);
    note_conversation(body, purpose, request, &job);
    write_purpose(purpose, request, &job);
    fm_request_write_sampling(body, json_object_object_get(body, "max_output_tokens"), &job);
    fm_request_note_extras(request, body);
    fm_request_note_passed(request, body, json_object_object_get(json_object_object_get(body, "text"), "verbosity"),
                           summary_of(json_object_object_get(body, "reasoning")));
    if (fm_string_is(json_object_object_get(body, "truncation"), "auto")) {
        fm_json_key_str(&job, "truncation", "auto");
    }
    struct json_object *top = json_object_object_get(body, "top_logprobs");
    fm_request_write_logprobs(request, includes(body, INCLUDE_LOGPROBS), top, &job);
    fm_request_write_effort(json_object_object_get(json_object_object_get(body, "reasoning"), "effort"), &job);
    fm_format_write_job(&format, &job);
    fm_tools_write_job(&tools, &job);
    struct fm_json_writer echo = fm_json_writer_on(&request->echo);
    write_echo(body, &format, &tools, &echo);
    if (request->echo.len > ECHO_MAX) {
        fm_request_free(request);
        return reject_large_echo(body, error);
    }
    return fm_request_end(request, error);
}
