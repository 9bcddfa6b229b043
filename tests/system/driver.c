/*
 * Runs requests on a fake desktop. One JSON object on stdin: {"desktop": {as fake.h has it}, "requests": [...]}, where
 * a request is an envelope, or {"type": a command's, "args": {...}}; both may have "dry_run" and "cancel_at" (ms of the
 * fake's clock). One JSON object on stdout: {"answers": [{as fm-system answers}], "log": [the deeds]}.
 */
#include "answer.h"
#include "backends/fake.h"
#include "commands/plan.h"
#include "protocol/json_writer.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OUT_MAX (64u << 20)

static struct json_object *read_all(FILE *file) {
    struct fm_buf text;
    char piece[65536];
    size_t len;
    fm_buf_init(&text, OUT_MAX);
    while ((len = fread(piece, 1, sizeof piece, file)) > 0) {
        fm_buf_append(&text, piece, len);
    }
    fm_buf_append_char(&text, '\0');
    struct json_object *root = text.failed ? NULL : json_tokener_parse(text.data);
    fm_buf_free(&text);
    return root;
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

int main(void) {
    struct json_object *root = read_all(stdin);
    struct json_object *requests = json_object_object_get(root, "requests");
    struct sy_world world = {.presets = NULL};
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
    for (size_t i = 0; i < json_object_array_length(requests); i++) {
        answer(&world, json_object_array_get_idx(requests, i), &w);
    }
    fm_json_array_end(&w);
    fm_json_key(&w, "log");
    write_log(&world.desktop, &w);
    fm_json_object_end(&w);
    fwrite(out.data, 1, out.len, stdout);
    fm_buf_free(&out);
    sy_told_free(&world.told);
    world.desktop.backend->free(world.desktop.self);
    json_object_put(root);
    return 0;
}
