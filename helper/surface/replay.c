/*
 * Stores an answer of the Responses API and restores it, so that its stream can be read again with the same events. The
 * Response object has nearly everything. What it lacks (where the deltas ended, the dialect of the reasoning) is stored
 * beside it.
 */
#include "protocol/json_writer.h"
#include "surface/answer.h"
#include "surface/conversation.h"
#include "surface/ignored.h"
#include "surface/timings.h"
#include "surface/usage.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ECHO_MAX (64u << 20) /* bytes; part of a stored text, whose size is limited */

/* ---- to the store ---- */

void fm_answer_write_stream(struct fm_answer *answer, struct fm_json_writer *w) {
    fm_answer_cut(answer);
    fm_json_object_begin(w);
    fm_json_key_int(w, "dialect", answer->request.reasoning_dialect);
    fm_json_key_bool(w, "opened", answer->opened);
    fm_json_key(w, "ends");
    fm_json_array_begin(w);
    for (size_t i = 0; i < fm_answer_piece_count(answer); i++) {
        fm_json_int(w, (int64_t)fm_answer_pieces(answer)[i]);
    }
    fm_json_array_end(w);
    if (answer->request.logprobs) {
        fm_json_key(w, "logprobs");
        fm_logprobs_write_counts(answer, w);
    }
    fm_json_object_end(w);
}

/* ---- from the store ---- */

static struct json_object *get(struct json_object *object, const char *name) {
    return json_object_is_type(object, json_type_object) ? json_object_object_get(object, name) : NULL;
}

/* Returns the text of a member; "" when it is not a string. */
static const char *get_text(struct json_object *object, const char *name) {
    struct json_object *value = get(object, name);
    return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "";
}

static bool equals_word(const char *text, const char *word) {
    return strcmp(text, word) == 0;
}

static void take_id(char id[FM_ID_SIZE], const char *text) {
    snprintf(id, FM_ID_SIZE, "%s", text);
}

/* Appends text to the last part. */
static bool take_text(struct fm_answer *answer, struct json_object *text) {
    return json_object_is_type(text, json_type_string) &&
           fm_answer_append_raw(answer, json_object_get_string(text), (size_t)json_object_get_string_len(text));
}

/* Returns the only part of an item. */
static struct json_object *part_of(struct json_object *item, const char *list) {
    struct json_object *parts = get(item, list);
    return json_object_is_type(parts, json_type_array) ? json_object_array_get_idx(parts, 0) : NULL;
}

/* Adds a part with the item's id; NULL when out of memory. */
static struct fm_output_part *take_part(struct fm_answer *answer, enum fm_output_kind kind, struct json_object *item) {
    struct fm_output_part *part = fm_answer_add_part(answer, kind);
    if (part) {
        take_id(part->item_id, get_text(item, "id"));
    }
    return part;
}

/* Restores reasoning. Reasoning that is only a state has no part. */
static bool take_reasoning(struct fm_answer *answer, struct json_object *item) {
    const char *list = answer->request.reasoning_dialect == FM_REASONING_SUMMARY ? "summary" : "content";
    struct json_object *state = get(item, "encrypted_content");
    struct json_object *content = part_of(item, list);
    struct fm_output_part *part = take_part(answer, FM_PART_REASONING, item);
    bool taken = part && (take_text(answer, get(content, "text")) || (state && !content));
    if (!taken || !json_object_is_type(state, json_type_string)) {
        return taken;
    }
    return fm_part_set_state(answer, &answer->parts[answer->part_count - 1], json_object_get_string(state),
                             (size_t)json_object_get_string_len(state));
}

static bool take_message(struct fm_answer *answer, struct json_object *item) {
    struct json_object *content = part_of(item, "content");
    struct json_object *refusal = get(content, "refusal");
    bool begun = take_part(answer, refusal ? FM_PART_REFUSAL : FM_PART_TEXT, item);
    return begun && take_text(answer, refusal ? refusal : get(content, "text"));
}

/* Restores a call; the member `text` has its arguments, or its text. */
static bool take_call(struct fm_answer *answer, struct json_object *item, const char *text) {
    struct fm_output_part *call = take_part(answer, FM_PART_CALL, item);
    if (!call) {
        return false;
    }
    snprintf(call->name, sizeof call->name, "%s", get_text(item, "name"));
    take_id(call->call_id, get_text(item, "call_id"));
    return take_text(answer, get(item, text));
}

static bool take_function_call(struct fm_answer *answer, struct json_object *item) {
    return take_call(answer, item, "arguments");
}

static bool take_custom_call(struct fm_answer *answer, struct json_object *item) {
    bool taken = take_call(answer, item, "input");
    if (taken) {
        answer->parts[answer->part_count - 1].custom = true;
    }
    return taken;
}

static const struct {
    const char *type;
    bool (*take)(struct fm_answer *answer, struct json_object *item);
} item_types[] = {{"reasoning", take_reasoning},
                  {"message", take_message},
                  {"function_call", take_function_call},
                  {"custom_tool_call", take_custom_call}};

static bool take_item(struct fm_answer *answer, struct json_object *item) {
    for (size_t i = 0; i < sizeof item_types / sizeof item_types[0]; i++) {
        if (equals_word(get_text(item, "type"), item_types[i].type)) {
            return item_types[i].take(answer, item);
        }
    }
    return false;
}

static bool take_output(struct fm_answer *answer, struct json_object *output) {
    bool taken = json_object_is_type(output, json_type_array);
    for (size_t i = 0; taken && i < json_object_array_length(output); i++) {
        taken = take_item(answer, json_object_array_get_idx(output, i));
    }
    return taken;
}

static bool take_pieces(struct fm_answer *answer, struct json_object *ends) {
    size_t count = json_object_is_type(ends, json_type_array) ? json_object_array_length(ends) : 0;
    size_t last = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t end = json_object_get_int64(json_object_array_get_idx(ends, i));
        if (end < (int64_t)last || end > (int64_t)answer->output.len) {
            return false;
        }
        last = (size_t)end;
        fm_buf_append(&answer->pieces, &last, sizeof last);
    }
    return !answer->pieces.failed;
}

/* Restores the log probabilities, which are in the messages' parts. */
static bool take_logprobs(struct fm_answer *answer, struct json_object *output, struct json_object *counts) {
    struct json_object *all = json_object_new_array();
    bool found = false;
    bool ok = all != NULL;
    for (size_t i = 0; ok && i < json_object_array_length(output); i++) {
        struct json_object *list = get(part_of(json_object_array_get_idx(output, i), "content"), "logprobs");
        size_t count = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
        found |= list != NULL;
        for (size_t k = 0; ok && k < count; k++) {
            ok = json_object_array_add(all, json_object_get(json_object_array_get_idx(list, k))) == 0;
        }
    }
    ok = ok && (!counts || !found || fm_logprobs_restore(answer, all, counts));
    json_object_put(all);
    return ok;
}

static bool take_ignored(struct fm_answer *answer, struct json_object *paths) {
    struct fm_buf *ignored = &answer->request.ignored;
    size_t count = json_object_is_type(paths, json_type_array) ? json_object_array_length(paths) : 0;
    fm_buf_init(ignored, FM_IGNORED_BYTES);
    for (size_t i = 0; i < count; i++) {
        struct json_object *path = json_object_array_get_idx(paths, i);
        if (json_object_is_type(path, json_type_string)) {
            fm_ignored_append(ignored, json_object_get_string(path));
        }
    }
    return !ignored->failed;
}

static bool take_report(struct fm_answer *answer, struct json_object *fm) {
    struct json_object *schema = get(fm, "schema");
    struct fm_buf report;
    fm_buf_init(&report, FM_OUTPUT_MAX);
    fm_timings_restore(answer, get(fm, "timings"));
    snprintf(answer->engine, sizeof answer->engine, "%s", get_text(fm, "engine"));
    fm_answer_call_unknown(answer, get_text(fm, "unknown_tool"));
    answer->dropped = json_object_get_int64(get(fm, "dropped_messages"));
    answer->request.schema_report = fm && json_object_object_get_ex(fm, "schema", NULL);
    answer->request.has_schema = schema;
    if (schema) {
        struct fm_json_writer w = fm_json_writer_on(&report);
        fm_json_key_value(&w, "enforced", get(schema, "enforced"));
        fm_json_key_value(&w, "checked", get(schema, "checked"));
        answer->mismatch = get(schema, "error");
        snprintf(answer->schema_error, sizeof answer->schema_error, "%s", get_text(schema, "error"));
    }
    bool taken = !report.failed && take_ignored(answer, get(fm, "ignored"));
    fm_answer_report(answer, &report);
    return taken;
}

/* Restores the request. All members that do not belong to the answer repeat the request. */
static bool take_echo(struct fm_answer *answer, struct json_object *object) {
    static const char *const own[] = {
        "id",     "object", "created_at", "status", "completed_at", "error", "incomplete_details", "model",
        "output", "usage",  "store",      "fm"};
    struct fm_json_writer w = fm_json_writer_on(&answer->request.echo);
    for (struct lh_entry *entry = json_object_get_object(object)->head; entry; entry = lh_entry_next(entry)) {
        bool echoed = true;
        for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
            echoed = echoed && !equals_word(lh_entry_k(entry), own[i]);
        }
        if (echoed) {
            fm_json_key_value(&w, lh_entry_k(entry), lh_entry_v(entry));
        }
    }
    answer->request.background = json_object_get_boolean(get(object, "background"));
    return !answer->request.echo.failed;
}

static enum fm_finish finish_of(struct json_object *object) {
    const char *status = get_text(object, "status");
    if (equals_word(status, "incomplete")) {
        bool filter = equals_word(get_text(get(object, "incomplete_details"), "reason"), "content_filter");
        return filter ? FM_FINISH_CONTENT_FILTER : FM_FINISH_LENGTH;
    }
    return equals_word(status, "completed")   ? FM_FINISH_STOP
           : equals_word(status, "cancelled") ? FM_FINISH_CANCELLED
                                              : FM_FINISH_FAILED;
}

static bool take_end(struct fm_answer *answer, struct json_object *object) {
    struct json_object *error = get(object, "error");
    answer->finish = finish_of(object);
    answer->finished = true;
    answer->completed_at = json_object_get_int64(get(object, "completed_at"));
    if (!error) {
        return true;
    }
    answer->error_code = strdup(get_text(error, "code"));
    fm_fail(&answer->error, fm_openai_error_code(get_text(error, "type")), "%s", get_text(error, "message"));
    answer->error.reason = answer->error_code;
    snprintf(answer->error.param, sizeof answer->error.param, "%s", get_text(error, "param"));
    return answer->error_code;
}

static bool take_response(struct fm_answer *answer, struct json_object *object, struct json_object *stream) {
    struct json_object *output = get(object, "output");
    int64_t dialect = json_object_get_int64(get(stream, "dialect"));
    take_id(answer->id, get_text(object, "id"));
    answer->created_at = json_object_get_int64(get(object, "created_at"));
    answer->request.store = true;
    answer->request.reasoning_dialect = dialect == FM_REASONING_TEXT || dialect == FM_REASONING_OPEN
                                            ? (enum fm_reasoning_dialect)dialect
                                            : FM_REASONING_SUMMARY;
    answer->opened = json_object_get_boolean(get(stream, "opened"));
    answer->usage = fm_usage_restore(get(object, "usage"), get(get(object, "fm"), "uncounted"));
    return take_output(answer, output) && take_pieces(answer, get(stream, "ends")) &&
           take_logprobs(answer, output, get(stream, "logprobs")) && take_report(answer, get(object, "fm")) &&
           take_echo(answer, object) && take_end(answer, object);
}

static enum fm_code restore(struct fm_answer *answer, struct json_object *object, struct json_object *stream,
                            struct fm_error *error) {
    struct fm_request request = {.logprobs = get(stream, "logprobs")};
    fm_buf_init(&request.echo, ECHO_MAX);
    enum fm_code code = fm_answer_init(answer, &fm_surface_responses, &request, get_text(object, "model"), error);
    if (code == FM_OK && !take_response(answer, object, stream)) {
        fm_answer_free(answer);
        code = fm_fail(error, FM_INTERNAL, "a stored response is damaged, or too large for the memory");
    }
    return code;
}

enum fm_code fm_answer_restore(struct fm_answer *answer, const struct fm_stored_response *stored,
                               struct fm_error *error) {
    struct json_object *object = NULL;
    struct json_object *stream = NULL;
    enum fm_code code = fm_stored_json_read(&stored->object, &object, error);
    code = code ? code : fm_stored_json_read(&stored->stream, &stream, error);
    code = code ? code : restore(answer, object, stream, error);
    json_object_put(object);
    json_object_put(stream);
    return code;
}
