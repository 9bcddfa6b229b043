/*
 * Runs requests on a fake desktop. Reads one JSON object from stdin: {"desktop": {as in fake.h}, "requests": [...]}.
 * Here a request is an envelope, or {"type": a command's, "args": {...}}; both may have "dry_run" and "cancel_at" (ms
 * of the fake desktop's clock); or {"undo_of": N}, which undoes the placements of the Nth answer, and {"ask": {...},
 * "as": N}, a query in the conversation of the Nth answer. Further members: "presets" (the path of presets.json),
 * "home" (where to look for git folders), "model" (its answers, one after the other: a text, or {"fails": a code's
 * name}). One JSON object on stdout: {"answers": [{as fm-system answers}], "log": [the actions], "prompts": [[{role,
 * text}]], "left": [tabs and windows at the end]}.
 */
#include "answer.h"
#include "backends/fake.h"
#include "commands/plan.h"
#include "protocol/json_writer.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OUT_MAX (64u << 20)

/* ---- the model ---- */

struct script {
    struct json_object *answers;
    size_t next;
    struct fm_json_writer *prompts;
};

static enum fm_code answer_as_told(void *self, const struct sy_message *messages, size_t count, struct fm_buf *text,
                                   struct fm_error *error) {
    static const char *const roles[] = {"system", "user", "assistant"};
    struct script *script = self;
    struct json_object *next = json_object_array_get_idx(script->answers, script->next++);
    fm_json_array_begin(script->prompts);
    for (size_t i = 0; i < count; i++) {
        fm_json_object_begin(script->prompts);
        fm_json_key_str(script->prompts, "role", roles[messages[i].role]);
        fm_json_key_str(script->prompts, "text", messages[i].text);
        fm_json_object_end(script->prompts);
    }
    fm_json_array_end(script->prompts);
    if (json_object_is_type(next, json_type_object)) {
        const char *name = json_object_get_string(json_object_object_get(next, "fails"));
        return fm_fail(error, fm_code_parse(name), "the model fails as it was told");
    }
    fm_buf_append(text, json_object_get_string(next), (size_t)json_object_get_string_len(next));
    return FM_OK;
}

/* ---- answers ---- */

/* Adds an argument: the member `key` of the first result in an earlier answer. */
static void add_of_answer(struct json_object *args, const char *name, const struct fm_buf *out, size_t wanted,
                          const char *key) {
    /* `out` is an object that is still open: {"answers":[... */
    struct json_object *sofar;
    struct fm_buf copy;
    fm_buf_init(&copy, OUT_MAX);
    fm_buf_append(&copy, out->data + strlen("{\"answers\":"), out->len - strlen("{\"answers\":"));
    fm_buf_append_str(&copy, "]");
    fm_buf_append_char(&copy, '\0');
    sofar = json_tokener_parse(copy.data);
    struct json_object *done = json_object_object_get(json_object_array_get_idx(sofar, wanted), "done");
    struct json_object *first = json_object_array_get_idx(json_object_object_get(done, "results"), 0);
    json_object_object_add(args, name, json_object_get(json_object_object_get(first, key)));
    json_object_put(sofar);
    fm_buf_free(&copy);
}

static void refer(struct json_object *request, const struct fm_buf *out) {
    struct json_object *undo = json_object_object_get(request, "undo_of");
    struct json_object *ask = json_object_object_get(request, "ask");
    struct json_object *args = ask ? json_object_get(ask) : json_object_new_object();
    if (undo) {
        add_of_answer(args, "handle", out, (size_t)json_object_get_int(undo), "undo");
        json_object_object_add(request, "type", json_object_new_string("undo"));
        json_object_object_add(request, "args", args);
    } else if (ask) {
        size_t of = (size_t)json_object_get_int(json_object_object_get(request, "as"));
        add_of_answer(args, "conversation", out, of, "conversation");
        json_object_object_add(request, "type", json_object_new_string("query"));
        json_object_object_add(request, "args", args);
    } else {
        json_object_put(args);
    }
}

static void answer(struct sy_world *world, struct json_object *request, struct fm_json_writer *w) {
    struct json_object *cancel = json_object_object_get(request, "cancel_at");
    sy_fake_cancel_at(&world->desktop, cancel ? json_object_get_int64(cancel) : -1);
    json_object_object_del(request, "cancel_at");
    fm_json_object_begin(w);
    answer_members(world, request, w);
    fm_json_object_end(w);
}

static void write_log(const struct sy_desktop *desktop, struct fm_json_writer *w) {
    const struct fm_buf *log = sy_fake_log(desktop);
    const char *at = log->data;
    const char *end = at ? at + log->len : NULL;
    fm_json_array_begin(w);
    while (at && at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        fm_json_string(w, at, (size_t)(newline - at));
        at = newline + 1;
    }
    fm_json_array_end(w);
}

static void write_left(const struct sy_desktop *desktop, struct fm_json_writer *w) {
    struct sy_windows windows = {.count = 0};
    struct sy_tabs tabs = {.count = 0};
    struct fm_error error;
    if ((desktop->backend->windows && desktop->backend->windows(desktop->self, &windows, &error) != FM_OK) ||
        (desktop->backend->tabs && desktop->backend->tabs(desktop->self, &tabs, &error) != FM_OK)) {
        abort();
    }
    fm_json_object_begin(w);
    for (size_t i = 0; i < windows.count; i++) {
        const struct sy_rect *bounds = &windows.at[i].bounds;
        char text[64];
        snprintf(text, sizeof text, "%d %d %d %d", bounds->left, bounds->top, bounds->right, bounds->bottom);
        fm_json_key_str(w, windows.at[i].id, text);
    }
    for (size_t i = 0; i < tabs.count; i++) {
        fm_json_key_str(w, tabs.at[i].id, tabs.at[i].url);
    }
    fm_json_object_end(w);
    sy_windows_free(&windows);
    sy_tabs_free(&tabs);
}

int main(void) {
    struct json_object *root = json_object_from_fd(STDIN_FILENO);
    struct json_object *requests = json_object_object_get(root, "requests");
    struct json_object *answers = json_object_object_get(root, "model");
    struct fm_buf prompts;
    fm_buf_init(&prompts, OUT_MAX);
    struct fm_json_writer prompts_w = fm_json_writer_on(&prompts);
    struct script script = {.answers = answers, .prompts = &prompts_w};
    const struct sy_model model = {&script, answer_as_told};
    struct sy_world world = {.presets = json_object_get_string(json_object_object_get(root, "presets")),
                             .home = json_object_get_string(json_object_object_get(root, "home")),
                             .model = answers ? &model : NULL};
    struct fm_error error;
    struct fm_buf out;
    fm_buf_init(&out, OUT_MAX);
    struct fm_json_writer w = fm_json_writer_on(&out);
    if (!root || sy_fake_new(json_object_object_get(root, "desktop"), &world.desktop, &error) != FM_OK) {
        fprintf(stderr, "driver: no JSON, or no desktop in it\n");
        return 1;
    }
    fm_json_object_begin(&w);
    fm_json_key(&w, "answers");
    fm_json_array_begin(&w);
    fm_json_array_begin(&prompts_w);
    for (size_t i = 0; i < json_object_array_length(requests); i++) {
        refer(json_object_array_get_idx(requests, i), &out);
        answer(&world, json_object_array_get_idx(requests, i), &w);
    }
    fm_json_array_end(&w);
    fm_json_key(&w, "log");
    write_log(&world.desktop, &w);
    fm_json_array_end(&prompts_w);
    fm_json_key(&w, "prompts");
    fm_json_raw(&w, prompts.data, prompts.len);
    fm_json_key(&w, "left");
    write_left(&world.desktop, &w);
    fm_json_object_end(&w);
    fm_buf_free(&prompts);
    fwrite(out.data, 1, out.len, stdout);
    fm_buf_free(&out);
    sy_world_free(&world);
    world.desktop.backend->free(world.desktop.self);
    json_object_put(root);
    return 0;
}
