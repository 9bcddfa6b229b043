/* A stream of OpenAI's Responses. Its end mark is `response.completed` or `response.incomplete`. */
#include "engine/remote/reader.h"

#include <json-c/json.h>
#include <string.h>

static void read_text(struct fm_remote_reader *reader, struct json_object *data) {
    fm_reader_emit_logprobs(reader, fm_reader_object(data, "logprobs"));
    fm_reader_emit_member(reader, FM_PART_TEXT, data, "delta");
}

static void read_refusal(struct fm_remote_reader *reader, struct json_object *data) {
    fm_reader_emit_member(reader, FM_PART_REFUSAL, data, "delta");
}

static void read_reasoning(struct fm_remote_reader *reader, struct json_object *data) {
    fm_reader_emit_member(reader, FM_PART_REASONING, data, "delta");
}

/* The parts of a summary are paragraphs. */
static void read_summary_part(struct fm_remote_reader *reader, struct json_object *data) {
    int64_t index = 0;
    fm_reader_count(data, "summary_index", &index);
    if (index > 0) {
        fm_reader_emit(reader, FM_PART_REASONING, "\n\n", 2);
    }
}

/* The id of an item, or the id of its call where it has none. */
static const char *item_id(struct json_object *item) {
    const char *id = fm_reader_string(item, "id");
    return *id ? id : fm_reader_string(item, "call_id");
}

static bool is_type(struct json_object *item, const char *type) {
    return strcmp(fm_reader_string(item, "type"), type) == 0;
}

static void read_added(struct fm_remote_reader *reader, struct json_object *data) {
    struct json_object *item = fm_reader_object(data, "item");
    if (is_type(item, "function_call")) {
        fm_reader_begin_call(reader, item_id(item), fm_reader_string(item, "name"));
    }
}

static void read_arguments(struct fm_remote_reader *reader, struct json_object *data) {
    const char *id = fm_reader_string(data, "item_id");
    if (*id && !fm_reader_is_last_call(reader, id)) {
        fm_reader_fail(reader, "pieces of several calls are mixed");
    }
    fm_reader_emit_member(reader, FM_PART_ARGUMENTS, data, "delta");
}

/* What is needed to go on with this thought. `status` is told in answers, and refused in requests. */
static void tell_state(struct fm_remote_reader *reader, struct json_object *item) {
    struct json_object *content = fm_reader_object(item, "content");
    bool sealed = *fm_reader_string(item, "encrypted_content") != '\0';
    bool open = json_object_is_type(content, json_type_array) && json_object_array_length(content) > 0;
    if (sealed || open) {
        json_object_object_del(item, "status");
        fm_reader_emit_state(reader, item);
    }
}

/* A call may come as a whole, without pieces. */
static void read_done(struct fm_remote_reader *reader, struct json_object *data) {
    struct json_object *item = fm_reader_object(data, "item");
    if (is_type(item, "reasoning")) {
        tell_state(reader, item);
    } else if (is_type(item, "function_call")) {
        if (!fm_reader_knows_call(reader, item_id(item))) {
            read_added(reader, data);
        }
        if (fm_reader_is_last_call(reader, item_id(item)) && !reader->call_arguments) {
            fm_reader_emit_member(reader, FM_PART_ARGUMENTS, item, "arguments");
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
    read_usage(reader, fm_reader_object(data, "response"));
    reader->reason = FM_REASON_STOP;
    reader->complete = true;
}

static void read_incomplete(struct fm_remote_reader *reader, struct json_object *data) {
    struct json_object *response = fm_reader_object(data, "response");
    const char *why = fm_reader_string(fm_reader_object(response, "incomplete_details"), "reason");
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
