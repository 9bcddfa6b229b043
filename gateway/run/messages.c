/* Turns a story into messages: for each run that has ended, the user's message, and the answer with its parts. */
#include "run/internal.h"

#include <json-c/json.h>
#include <string.h>

static void write_text(struct json_object *text, struct fm_json_writer *w) {
    fm_json_string(w, json_object_get_string(text), (size_t)json_object_get_string_len(text));
}

static bool has_text(struct json_object *text) {
    return json_object_is_type(text, json_type_string) && json_object_get_string_len(text) > 0;
}

static void begin_message(const char *role, const struct gw_story_run *run, int64_t seq, struct json_object *record,
                          struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_json_key_str(w, "role", role);
    fm_json_key_str(w, "runId", run->id);
    fm_json_key_int(w, "seq", seq);
    fm_json_key_int(w, "time", json_object_get_int64(json_object_object_get(record, "time")));
    fm_json_key(w, "content");
}

/* ---- parts ---- */

static bool has_call(const struct gw_story_run *run) {
    size_t i = 0;
    while (i < run->part_count && !gw_is_record(run->parts[i], "tool_call")) {
        i++;
    }
    return i < run->part_count;
}

static struct json_object *result_of(const struct gw_story_run *run, struct json_object *call) {
    for (size_t i = 0; i < run->part_count; i++) {
        struct json_object *at = run->parts[i];
        if (gw_is_record(at, "tool_result") && strcmp(gw_text_of(at, "callId"), gw_text_of(call, "callId")) == 0) {
            return at;
        }
    }
    return NULL;
}

/*
 * A result that a run wrote has a state. If the result was missing at a start, the start wrote one, which has an
 * outcome.
 */
static const char *state_of(struct json_object *result) {
    const char *state = gw_text_of(result, "state");
    const char *outcome = gw_text_of(result, "outcome");
    return *state                                       ? state
           : strcmp(outcome, "not_run") == 0            ? "aborted"
           : !result || strcmp(outcome, "unknown") == 0 ? "unknown"
                                                        : "done";
}

static void write_result(struct json_object *result, struct fm_json_writer *w) {
    static const char *const members[] = {"output", "exitCode", "truncated", "durationMs", "attachments"};
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        if (json_object_object_get(result, members[i])) {
            fm_json_key_value(w, members[i], json_object_object_get(result, members[i]));
        }
    }
}

static void write_call(const struct gw_story_run *run, struct json_object *call, struct fm_json_writer *w) {
    struct json_object *details = json_object_object_get(call, "details");
    struct json_object *result = result_of(run, call);
    const char *summary = gw_text_of(call, "summary");
    fm_json_object_begin(w);
    fm_json_key_str(w, "type", "tool");
    fm_json_key_str(w, "callId", gw_text_of(call, "callId"));
    fm_json_key_str(w, "toolName", gw_text_of(call, "name"));
    fm_json_key_str(w, "summary", *summary ? summary : gw_text_of(call, "name"));
    fm_json_key_value(w, "details", details ? details : json_object_object_get(call, "input"));
    fm_json_key_str(w, "state", state_of(result));
    write_result(result, w);
    fm_json_object_end(w);
}

static void write_text_part(struct json_object *text, struct fm_json_writer *w) {
    if (has_text(text)) {
        fm_json_object_begin(w);
        fm_json_key_str(w, "type", "text");
        fm_json_key(w, "text");
        write_text(text, w);
        fm_json_object_end(w);
    }
}

static void write_parts(const struct gw_story_run *run, struct fm_json_writer *w) {
    fm_json_array_begin(w);
    for (size_t i = 0; i < run->part_count; i++) {
        if (gw_is_record(run->parts[i], "step")) {
            write_text_part(json_object_object_get(run->parts[i], "text"), w);
        } else if (gw_is_record(run->parts[i], "tool_call")) {
            write_call(run, run->parts[i], w);
        }
    }
    write_text_part(run->answer ? json_object_object_get(run->answer, "partial") : NULL, w);
    fm_json_array_end(w);
}

/* ---- messages ---- */

/* Writes the answer's text: that of its message, or, if the gateway ended before it, what the steps said. */
static void write_content(const struct gw_story_run *run, struct fm_json_writer *w) {
    struct fm_buf text;
    if (run->answer) {
        write_text(json_object_object_get(run->answer, "content"), w);
        return;
    }
    fm_buf_init(&text, GW_RECORD_MAX);
    for (size_t i = 0; i < run->part_count; i++) {
        struct json_object *said =
            gw_is_record(run->parts[i], "step") ? json_object_object_get(run->parts[i], "text") : NULL;
        if (has_text(said)) {
            fm_buf_append(&text, json_object_get_string(said), (size_t)json_object_get_string_len(said));
        }
    }
    fm_json_string(w, text.data ? text.data : "", text.len);
    fm_buf_free(&text);
}

static void write_answer(const struct gw_story_run *run, int64_t seq, struct fm_json_writer *w) {
    const char *outcome = gw_text_of(run->ended, "outcome");
    const char *fault = gw_text_of(run->ended, "message");
    begin_message("assistant", run, seq, run->answer ? run->answer : run->ended, w);
    write_content(run, w);
    if (has_call(run)) {
        fm_json_key(w, "parts");
        write_parts(run, w);
    }
    if (json_object_object_get(run->ended, "usage")) {
        fm_json_key_value(w, "usage", json_object_object_get(run->ended, "usage"));
    }
    if (json_object_object_get(run->ended, "model")) {
        fm_json_key_value(w, "model", json_object_object_get(run->ended, "model"));
    }
    if (strcmp(outcome, "final") != 0) {
        fm_json_key_str(w, "error", *fault ? fault : "the run ended without an answer");
    }
    if (strcmp(outcome, "aborted") == 0) {
        fm_json_key_bool(w, "aborted", true);
    }
    fm_json_object_end(w);
}

static bool is_written(const struct gw_messages *messages, const struct gw_story_run *run, int64_t *seq) {
    *seq = run->event;
    return run->ended && !run->taken_back && *seq > messages->after_seq &&
           !(messages->open && messages->open(messages->context, run->id));
}

void gw_messages_write(const struct gw_messages *messages, struct fm_json_writer *w, bool *more) {
    const struct gw_story *story = messages->story;
    size_t count = 0;
    int64_t seq;
    for (size_t i = 0; i < story->count; i++) {
        count += is_written(messages, &story->runs[i], &seq) ? 1u + (story->runs[i].user != NULL) : 0;
    }
    size_t skip = messages->limit && count > messages->limit ? count - messages->limit : 0;
    *more = skip > 0;
    fm_json_array_begin(w);
    for (size_t i = 0; i < story->count; i++) {
        const struct gw_story_run *run = &story->runs[i];
        if (!is_written(messages, run, &seq)) {
            continue;
        }
        if (run->user && skip > 0) {
            skip--;
        } else if (run->user) {
            begin_message("user", run, seq, run->user, w);
            write_text(json_object_object_get(run->user, "content"), w);
            fm_json_object_end(w);
        }
        if (skip > 0) {
            skip--;
        } else {
            write_answer(run, seq, w);
        }
    }
    fm_json_array_end(w);
}
