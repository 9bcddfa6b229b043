/* Each call of a tool goes in with its result, in the order in which the results came: without one it is left out. */
#include "providers/input.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

static void write_message(const char *role, const char *text, size_t len, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_json_key_str(w, "role", role);
    fm_json_key(w, "content");
    fm_json_string(w, text, len);
    fm_json_object_end(w);
}

static void write_text(const char *role, struct json_object *text, struct fm_json_writer *w) {
    if (json_object_is_type(text, json_type_string) && json_object_get_string_len(text) > 0) {
        write_message(role, json_object_get_string(text), (size_t)json_object_get_string_len(text), w);
    }
}

/* The result of the call that the item is; NULL: there is none. */
static struct json_object *result_of(const struct gw_story_run *run, struct json_object *item) {
    const char *id = gw_text_of(item, "call_id");
    const char *call = NULL;
    for (size_t i = 0; i < run->part_count; i++) {
        if (gw_is_record(run->parts[i], "tool_call") && strcmp(gw_text_of(run->parts[i], "providerCallId"), id) == 0) {
            call = gw_text_of(run->parts[i], "callId");
        }
    }
    for (size_t i = 0; call && i < run->part_count; i++) {
        if (gw_is_record(run->parts[i], "tool_result") && strcmp(gw_text_of(run->parts[i], "callId"), call) == 0) {
            return run->parts[i];
        }
    }
    return NULL;
}

static void write_result(struct json_object *item, struct json_object *result, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_json_key_str(w, "type", "function_call_output");
    fm_json_key_str(w, "call_id", gw_text_of(item, "call_id"));
    fm_json_key_value(w, "output", json_object_object_get(result, "output"));
    fm_json_object_end(w);
}

/* Of an item of another model: a call, or the texts of a message. */
static void write_foreign(struct json_object *item, struct fm_json_writer *w) {
    const char *type = gw_text_of(item, "type");
    if (strcmp(type, "function_call") == 0) {
        fm_json_object_begin(w);
        fm_json_key_str(w, "type", type);
        fm_json_key_str(w, "call_id", gw_text_of(item, "call_id"));
        fm_json_key_str(w, "name", gw_text_of(item, "name"));
        fm_json_key_str(w, "arguments", gw_text_of(item, "arguments"));
        fm_json_object_end(w);
        return;
    }
    struct json_object *content = json_object_object_get(item, "content");
    bool message = strcmp(type, "message") == 0 && json_object_is_type(content, json_type_array);
    for (size_t i = 0; message && i < json_object_array_length(content); i++) {
        write_text("assistant", json_object_object_get(json_object_array_get_idx(content, i), "text"), w);
    }
}

static void write_step(const struct gw_story_run *run, struct json_object *step, bool same, struct fm_json_writer *w) {
    struct json_object *items = json_object_object_get(step, "items");
    size_t count = json_object_array_length(items);
    for (size_t i = 0; i < count; i++) {
        struct json_object *item = json_object_array_get_idx(items, i);
        bool call = strcmp(gw_text_of(item, "type"), "function_call") == 0;
        if (call && !result_of(run, item)) {
            continue;
        }
        if (same) {
            fm_json_value(w, item);
        } else {
            write_foreign(item, w);
        }
    }
    for (size_t i = 0; i < count; i++) {
        struct json_object *item = json_object_array_get_idx(items, i);
        bool call = strcmp(gw_text_of(item, "type"), "function_call") == 0;
        struct json_object *result = call ? result_of(run, item) : NULL;
        if (result) {
            write_result(item, result, w);
        }
    }
}

static bool is_of(struct json_object *step, const struct gw_model_ref *model) {
    return strcmp(gw_text_of(step, "provider"), gw_provider_name(model->provider)) == 0 &&
           strcmp(gw_text_of(step, "model"), model->name) == 0;
}

static bool has_step(const struct gw_story_run *run) {
    size_t i = 0;
    while (i < run->part_count && !gw_is_record(run->parts[i], "step")) {
        i++;
    }
    return i < run->part_count;
}

static bool has_answer(const struct gw_story_run *run) {
    struct json_object *content = run->answer ? json_object_object_get(run->answer, "content") : NULL;
    return has_step(run) || (content && json_object_get_string_len(content) > 0);
}

void gw_input_write(const struct gw_story *story, const char *run_id, const struct gw_model_ref *model,
                    struct fm_json_writer *w) {
    fm_json_array_begin(w);
    for (size_t i = 0; i < story->count; i++) {
        const struct gw_story_run *run = &story->runs[i];
        bool present = strcmp(run->id, run_id) == 0;
        if (!run->user || (!present && (!run->ended || !has_answer(run)))) {
            continue;
        }
        write_text("user", json_object_object_get(run->user, "content"), w);
        for (size_t at = 0; at < run->part_count; at++) {
            if (gw_is_record(run->parts[at], "step")) {
                write_step(run, run->parts[at], is_of(run->parts[at], model), w);
            }
        }
        const char *rest = has_step(run) ? "partial" : "content"; /* what is in no step */
        write_text("assistant", run->answer ? json_object_object_get(run->answer, rest) : NULL, w);
        if (present) {
            break;
        }
    }
    fm_json_array_end(w);
}
