/* Reads a stream of OpenAI's Responses. Its end mark is `response.completed` or `response.incomplete`. */
#include "engine/remote/reader.h"

#include <json-c/json.h>
#include <string.h>

/* A part begins where the index changes, even if the server sends no event for its beginning. */
static void enter_part(struct fm_remote_reader *reader, struct json_object *data) {
    int64_t index = -1;
    fm_reader_count(data, "content_index", &index);
    fm_reader_count(data, "summary_index", &index);
    if (index != reader->part_index) {
        fm_reader_begin_part(reader);
    }
    reader->part_index = index;
}

static void read_text(struct fm_remote_reader *reader, struct json_object *data) {
    enter_part(reader, data);
    fm_reader_emit_logprobs(reader, fm_reader_object(data, "logprobs"));
    fm_reader_emit_member(reader, FM_REMOTE_TEXT, data, "delta");
}

static void read_refusal(struct fm_remote_reader *reader, struct json_object *data) {
    enter_part(reader, data);
    fm_reader_emit_member(reader, FM_REMOTE_REFUSAL, data, "delta");
}

static void read_reasoning(struct fm_remote_reader *reader, struct json_object *data) {
    enter_part(reader, data);
    fm_reader_emit_member(reader, FM_REMOTE_REASONING, data, "delta");
}

/* Hands out the part of a text that has not come in pieces. If the pieces do not match the text, the pieces count. */
static void tell_rest(struct fm_remote_reader *reader, const struct fm_said *said, enum fm_remote_part_kind kind,
                      enum fm_tally_level level) {
    const struct fm_buf *text = &said->texts[kind];
    bool begins = text->len == 0 || fm_reader_emit_rest(reader, kind, level, text->data, text->len);
    (void)begins;
}

/* Reads the whole text of a part. Its pieces may have come before. */
static void read_whole_text(struct fm_remote_reader *reader, struct json_object *data, enum fm_remote_part_kind kind,
                            const char *key) {
    struct fm_said said;
    fm_said_init(&said);
    enter_part(reader, data);
    if (reader->told[kind][FM_TALLY_PART].len == 0) {
        fm_reader_emit_logprobs(reader, fm_reader_object(data, "logprobs"));
    }
    fm_reader_say(reader, fm_reader_member(data, key), kind, &said);
    tell_rest(reader, &said, kind, FM_TALLY_PART);
    fm_said_free(&said);
}

static void read_text_done(struct fm_remote_reader *reader, struct json_object *data) {
    read_whole_text(reader, data, FM_REMOTE_TEXT, "text");
}

static void read_refusal_done(struct fm_remote_reader *reader, struct json_object *data) {
    read_whole_text(reader, data, FM_REMOTE_REFUSAL, "refusal");
}

static void read_reasoning_done(struct fm_remote_reader *reader, struct json_object *data) {
    read_whole_text(reader, data, FM_REMOTE_REASONING, "text");
}

/* The parts of a summary are paragraphs. */
static void read_summary_part(struct fm_remote_reader *reader, struct json_object *data) {
    int64_t index = 0;
    fm_reader_count(data, "summary_index", &index);
    if (index > 0) {
        fm_reader_emit(reader, FM_REMOTE_REASONING, "\n\n", 2);
    }
}

/* The id of an item, or the id of its call if the item has none. */
static const char *item_id(struct json_object *item) {
    const char *id = fm_reader_string(item, "id");
    return *id ? id : fm_reader_string(item, "call_id");
}

static bool is_type(struct json_object *item, const char *type) {
    return strcmp(fm_reader_string(item, "type"), type) == 0;
}

static void begin_call(struct fm_remote_reader *reader, struct json_object *item) {
    fm_reader_begin_call(reader, item_id(item), fm_reader_string(item, "name"));
    reader->call_open = true;
}

static void begin_item(struct fm_remote_reader *reader) {
    fm_reader_begin_item(reader);
    reader->part_index = -1;
}

static void read_added(struct fm_remote_reader *reader, struct json_object *data) {
    struct json_object *item = fm_reader_object(data, "item");
    begin_item(reader);
    if (is_type(item, "function_call")) {
        begin_call(reader, item);
    }
}

static void look_at_call(struct fm_remote_reader *reader, struct json_object *data) {
    const char *id = fm_reader_string(data, "item_id");
    if (*id && !fm_reader_is_last_call(reader, id)) {
        fm_reader_fail(reader, "pieces of several calls are mixed");
    }
}

static void read_arguments(struct fm_remote_reader *reader, struct json_object *data) {
    look_at_call(reader, data);
    fm_reader_emit_member(reader, FM_REMOTE_ARGUMENTS, data, "delta");
}

static void read_arguments_done(struct fm_remote_reader *reader, struct json_object *data) {
    if (!reader->call_arguments) {
        look_at_call(reader, data);
        fm_reader_emit_arguments(reader, data, "arguments");
    }
}

/* ---- whole items ---- */

/* Keeps what the server needs to go on with this reasoning. `status` comes in answers, but is refused in requests. */
static void tell_state(struct fm_remote_reader *reader, struct json_object *item) {
    struct json_object *content = fm_reader_object(item, "content");
    bool sealed = *fm_reader_string(item, "encrypted_content") != '\0';
    bool open = json_object_is_type(content, json_type_array) && json_object_array_length(content) > 0;
    if (sealed || open) {
        json_object_object_del(item, "status");
        fm_reader_emit_state(reader, item);
    }
}

/* Reads the reasoning, or its summary, whose parts are paragraphs. */
static void read_thought(struct fm_remote_reader *reader, struct json_object *item) {
    struct json_object *parts = fm_reader_object(item, "content");
    bool summary = !json_object_is_type(parts, json_type_array) || json_object_array_length(parts) == 0;
    parts = summary ? fm_reader_object(item, "summary") : parts;
    size_t count = json_object_is_type(parts, json_type_array) ? json_object_array_length(parts) : 0;
    for (size_t i = 0; i < count; i++) {
        fm_reader_emit(reader, FM_REMOTE_REASONING, "\n\n", summary && i > 0 ? 2 : 0);
        fm_reader_say(reader, json_object_array_get_idx(parts, i), FM_REMOTE_REASONING, NULL);
    }
}

/* Reads the log probabilities of a text that comes as a whole. */
static void read_logprobs(struct fm_remote_reader *reader, struct json_object *content) {
    size_t count = json_object_is_type(content, json_type_array) ? json_object_array_length(content) : 0;
    for (size_t i = 0; i < count; i++) {
        fm_reader_emit_logprobs(reader, fm_reader_object(json_object_array_get_idx(content, i), "logprobs"));
    }
}

static void read_message(struct fm_remote_reader *reader, struct json_object *item) {
    struct json_object *content = fm_reader_member(item, "content");
    struct fm_said said;
    fm_said_init(&said);
    if (reader->told[FM_REMOTE_TEXT][FM_TALLY_ITEM].len == 0) {
        read_logprobs(reader, content);
    }
    fm_reader_say(reader, content, FM_REMOTE_TEXT, &said);
    tell_rest(reader, &said, FM_REMOTE_TEXT, FM_TALLY_ITEM);
    tell_rest(reader, &said, FM_REMOTE_REFUSAL, FM_TALLY_ITEM);
    fm_said_free(&said);
}

static void read_call(struct fm_remote_reader *reader, struct json_object *item) {
    const char *id = item_id(item);
    bool known = *id ? fm_reader_knows_call(reader, id) : reader->call_open;
    if (!known) {
        begin_call(reader, item);
    }
    if (fm_reader_is_last_call(reader, id) && !reader->call_arguments) {
        fm_reader_emit_arguments(reader, item, "arguments");
    }
    reader->call_open = false;
}

static void read_item(struct fm_remote_reader *reader, struct json_object *item) {
    if (is_type(item, "reasoning")) {
        if (reader->told[FM_REMOTE_REASONING][FM_TALLY_ITEM].len == 0) {
            read_thought(reader, item);
        }
        tell_state(reader, item);
    } else if (is_type(item, "function_call")) {
        read_call(reader, item);
    } else if (is_type(item, "message")) {
        read_message(reader, item);
    }
    begin_item(reader);
    reader->items++;
}

static void read_done(struct fm_remote_reader *reader, struct json_object *data) {
    read_item(reader, fm_reader_object(data, "item"));
}

/* ---- the end ---- */

/*
 * Reads the items that the server repeats at the end. Hands out the text and the calls that have not been handed out
 * yet.
 */
static void read_output_again(struct fm_remote_reader *reader, struct json_object *list) {
    struct fm_said said;
    size_t calls = 0;
    size_t known = reader->call_count;
    fm_said_init(&said);
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        struct json_object *item = json_object_array_get_idx(list, i);
        if (is_type(item, "message")) {
            fm_reader_say(reader, fm_reader_member(item, "content"), FM_REMOTE_TEXT, &said);
        }
    }
    tell_rest(reader, &said, FM_REMOTE_TEXT, FM_TALLY_ANSWER);
    tell_rest(reader, &said, FM_REMOTE_REFUSAL, FM_TALLY_ANSWER);
    fm_said_free(&said);
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        struct json_object *item = json_object_array_get_idx(list, i);
        if (is_type(item, "function_call") && ++calls > known) {
            read_call(reader, item);
        } else if (is_type(item, "reasoning") && reader->items == 0) {
            tell_state(reader, item);
        }
    }
}

static void read_output(struct fm_remote_reader *reader, struct json_object *response) {
    struct json_object *list = fm_reader_member(response, "output");
    bool silent = reader->items == 0 && reader->call_count == 0;
    for (size_t i = 0; i < FM_READER_KINDS; i++) {
        silent = silent && reader->told[i][FM_TALLY_ANSWER].len == 0;
    }
    if (list && !json_object_is_type(list, json_type_array)) {
        fm_reader_fail(reader, "the output is no list");
    } else if (list && !silent) {
        read_output_again(reader, list);
    } else if (list) {
        for (size_t i = 0; i < json_object_array_length(list); i++) {
            read_item(reader, json_object_array_get_idx(list, i));
        }
    }
}

static void read_usage(struct fm_remote_reader *reader, struct json_object *response) {
    struct json_object *usage = fm_reader_object(response, "usage");
    fm_reader_count(usage, "input_tokens", &reader->usage.input);
    fm_reader_count(usage, "output_tokens", &reader->usage.output);
    fm_reader_count(fm_reader_object(usage, "input_tokens_details"), "cached_tokens", &reader->usage.cached);
    fm_reader_count(fm_reader_object(usage, "output_tokens_details"), "reasoning_tokens", &reader->usage.reasoning);
}

static void read_completed(struct fm_remote_reader *reader, struct json_object *data) {
    struct json_object *response = fm_reader_object(data, "response");
    read_output(reader, response);
    read_usage(reader, response);
    reader->reason = FM_REASON_STOP;
    reader->complete = true;
}

static void read_incomplete(struct fm_remote_reader *reader, struct json_object *data) {
    struct json_object *response = fm_reader_object(data, "response");
    const char *why = fm_reader_string(fm_reader_object(response, "incomplete_details"), "reason");
    read_output(reader, response);
    read_usage(reader, response);
    if (strcmp(why, "content_filter") == 0) {
        reader->reason = FM_REASON_CONTENT_FILTER;
    } else if (strcmp(why, "max_output_tokens") == 0 || strcmp(why, "max_tokens") == 0) {
        reader->reason = FM_REASON_LENGTH;
    } else {
        fm_reader_fail(reader, "it ended for a reason that is not known");
    }
    reader->complete = true;
}

static void read_failed(struct fm_remote_reader *reader, struct json_object *data) {
    fm_reader_report(reader, fm_reader_object(data, "response"));
}

static const struct fm_reader_row rows[] = {
    {"response.output_text.delta", read_text},
    {"response.output_text.done", read_text_done},
    {"response.refusal.done", read_refusal_done},
    {"response.reasoning_text.done", read_reasoning_done},
    {"response.reasoning_summary_text.done", read_reasoning_done},
    {"response.function_call_arguments.done", read_arguments_done},
    {"response.function_call_arguments.delta", read_arguments},
    {"response.reasoning_text.delta", read_reasoning},
    {"response.reasoning_summary_text.delta", read_reasoning},
    {"response.reasoning_summary_part.added", read_summary_part},
    {"response.refusal.delta", read_refusal},
    {"response.output_item.added", read_added},
    {"response.output_item.done", read_done},
    {"response.completed", read_completed},
    {"response.incomplete", read_incomplete},
    {"response.failed", read_failed},
    {"error", fm_reader_report},
};

void fm_reader_responses(struct fm_remote_reader *reader, const char *name, struct json_object *data) {
    fm_reader_dispatch(reader, rows, sizeof rows / sizeof rows[0], name, data);
}

/* Reads a response object that comes in place of a stream. */
void fm_reader_responses_whole(struct fm_remote_reader *reader, struct json_object *data) {
    const char *status = fm_reader_string(data, "status");
    struct json_object *event = json_object_new_object();
    if (!event || json_object_object_add(event, "response", json_object_get(data)) != 0) {
        fm_reader_fail(reader, "out of memory");
    } else if (strcmp(status, "completed") == 0) {
        read_completed(reader, event);
    } else if (strcmp(status, "incomplete") == 0) {
        read_incomplete(reader, event);
    } else {
        fm_reader_fail(reader, "it is no response that has ended");
    }
    json_object_put(event);
}
