/* A stream of chat completions. Its end mark is `finish_reason`; the usage follows in a chunk of its own. */
#include "engine/remote/reader.h"

#include <json-c/json.h>
#include <string.h>

static void read_usage(struct fm_remote_reader *reader, struct json_object *usage) {
    fm_reader_count(usage, "prompt_tokens", &reader->usage.input);
    fm_reader_count(usage, "completion_tokens", &reader->usage.output);
    fm_reader_count(fm_reader_object(usage, "prompt_tokens_details"), "cached_tokens", &reader->usage.cached);
    fm_reader_count(fm_reader_object(usage, "completion_tokens_details"), "reasoning_tokens", &reader->usage.reasoning);
}

static void read_finish(struct fm_remote_reader *reader, const char *finish) {
    static const struct {
        const char *word;
        enum fm_reason reason;
    } words[] = {{"stop", FM_REASON_STOP},           {"tool_calls", FM_REASON_STOP},
                 {"function_call", FM_REASON_STOP},  {"length", FM_REASON_LENGTH},
                 {"model_length", FM_REASON_LENGTH}, {"content_filter", FM_REASON_CONTENT_FILTER}};
    for (size_t i = 0; i < sizeof words / sizeof words[0] && *finish; i++) {
        if (strcmp(words[i].word, finish) == 0) {
            reader->reason = words[i].reason;
            return;
        }
    }
    if (*finish) {
        fm_reader_fail(reader, "it ended for a reason that is not known");
    }
}

/*
 * A piece of a call. The first one has the name; servers differ in whether later ones repeat it, and in whether the
 * index or the id tells calls apart.
 */
static void read_call(struct fm_remote_reader *reader, struct json_object *call) {
    struct json_object *function = fm_reader_object(call, "function");
    const char *id = fm_reader_string(call, "id");
    int64_t index = reader->call_index;
    fm_reader_count(call, "index", &index);
    bool other_id = *id && !fm_reader_is_last_call(reader, id);
    if (index < reader->call_index || (other_id && fm_reader_knows_call(reader, id))) {
        fm_reader_fail(reader, "pieces of several calls are mixed");
    } else if (reader->call_count == 0 || index > reader->call_index || other_id) {
        fm_reader_begin_call(reader, id, fm_reader_string(function, "name"));
        reader->call_index = index;
    }
    fm_reader_emit_member(reader, FM_PART_ARGUMENTS, function, "arguments");
}

/* Servers that think differ in the name; which one this server has is told, for the next request. */
static void read_reasoning(struct fm_remote_reader *reader, struct json_object *delta) {
    bool common = fm_reader_emit_member(reader, FM_PART_REASONING, delta, "reasoning_content");
    if (!common && fm_reader_emit_member(reader, FM_PART_REASONING, delta, "reasoning") && !reader->told_field) {
        struct json_object *field = json_object_new_string("reasoning");
        reader->told_field = true;
        fm_reader_emit_state(reader, field);
        json_object_put(field);
    }
}

static void read_delta(struct fm_remote_reader *reader, struct json_object *delta) {
    struct json_object *calls = fm_reader_object(delta, "tool_calls");
    read_reasoning(reader, delta);
    fm_reader_emit_member(reader, FM_PART_TEXT, delta, "content");
    fm_reader_emit_member(reader, FM_PART_REFUSAL, delta, "refusal");
    size_t count = json_object_is_type(calls, json_type_array) ? json_object_array_length(calls) : 0;
    for (size_t i = 0; i < count && reader->code == FM_OK; i++) {
        read_call(reader, json_object_array_get_idx(calls, i));
    }
}

void fm_reader_chat(struct fm_remote_reader *reader, const char *name, struct json_object *data) {
    struct json_object *choices = fm_reader_object(data, "choices");
    struct json_object *error = json_object_object_get(data, "error");
    if (error || strcmp(name, "error") == 0) {
        fm_reader_report(reader, data);
        return;
    }
    size_t count = json_object_is_type(choices, json_type_array) ? json_object_array_length(choices) : 0;
    struct json_object *choice = count > 0 ? json_object_array_get_idx(choices, 0) : NULL;
    fm_reader_emit_logprobs(reader, fm_reader_object(fm_reader_object(choice, "logprobs"), "content"));
    read_delta(reader, fm_reader_object(choice, "delta"));
    read_finish(reader, fm_reader_string(choice, "finish_reason"));
    read_usage(reader, fm_reader_object(data, "usage"));
}
