/*
 * Runs requests on the real desktop, with windows by X11 and applications by GIO. Each line of stdin is a request as in
 * answer.h, or {"dump": true} for the lists of the backends. Each line gets a line on stdout; "ms" is its time. While
 * the descriptor of --cancel-fd is readable, a command that waits is cancelled.
 *
 * usage: system_desktop_driver [--cancel-fd N]
 */
#include "answer.h"
#include "backends/apps_gio.h"
#include "backends/joined.h"
#include "backends/x11.h"
#include "base/clock.h"
#include "commands/plan.h"
#include "desktop/refuse.h"
#include "protocol/json_writer.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_rect(const struct sy_rect *rect, struct fm_json_writer *w) {
    const int edges[] = {rect->left, rect->top, rect->right, rect->bottom};
    fm_json_array_begin(w);
    for (size_t i = 0; i < 4; i++) {
        fm_json_int(w, edges[i]);
    }
    fm_json_array_end(w);
}

static void dump_windows(const struct sy_windows *windows, struct fm_json_writer *w) {
    fm_json_key(w, "windows");
    fm_json_array_begin(w);
    for (size_t i = 0; i < windows->count; i++) {
        const struct sy_window *at = &windows->at[i];
        fm_json_object_begin(w);
        fm_json_key_str(w, "id", at->id);
        fm_json_key_str(w, "class", at->class_name);
        fm_json_key_str(w, "title", at->title);
        fm_json_key_int(w, "pid", at->pid);
        fm_json_key_bool(w, "active", at->active);
        fm_json_key(w, "bounds");
        write_rect(&at->bounds, w);
        fm_json_object_end(w);
    }
    fm_json_array_end(w);
}

static void dump_monitors(const struct sy_monitors *monitors, struct fm_json_writer *w) {
    fm_json_key(w, "monitors");
    fm_json_array_begin(w);
    for (size_t i = 0; i < monitors->count; i++) {
        fm_json_object_begin(w);
        fm_json_key_bool(w, "primary", monitors->at[i].primary);
        fm_json_key(w, "area");
        write_rect(&monitors->at[i].area, w);
        fm_json_object_end(w);
    }
    fm_json_array_end(w);
}

static void dump_apps(const struct sy_apps *apps, struct fm_json_writer *w) {
    fm_json_key(w, "apps");
    fm_json_array_begin(w);
    for (size_t i = 0; i < apps->count; i++) {
        const struct sy_app *at = &apps->at[i];
        fm_json_object_begin(w);
        fm_json_key_str(w, "id", at->id);
        fm_json_key_str(w, "name", at->name);
        fm_json_key_str(w, "class", at->window_class);
        fm_json_key_str(w, "program", at->program);
        fm_json_object_end(w);
    }
    fm_json_array_end(w);
}

static void dump(const struct sy_world *world, struct fm_json_writer *w) {
    struct sy_snapshot snapshot;
    struct fm_error error;
    if (sy_snapshot_take(&world->desktop, &snapshot, &error) != FM_OK) {
        fm_json_key_str(w, "failed", error.detail);
        return;
    }
    dump_windows(&snapshot.windows, w);
    dump_monitors(&snapshot.monitors, w);
    dump_apps(&snapshot.apps, w);
    fm_json_key_str(w, "no_windows", snapshot.no_windows.code ? snapshot.no_windows.detail : "");
    sy_snapshot_free(&snapshot);
}

static bool answer_other(struct sy_world *world, struct json_object *request, struct fm_json_writer *w) {
    bool dumps = json_object_object_get(request, "dump");
    if (dumps) {
        dump(world, w);
    }
    return dumps;
}

static bool make_desktop(int cancel_fd, struct sy_desktop *desktop, struct fm_error *error) {
    struct sy_joined_parts parts = {.tabs = {.backend = NULL}};
    return sy_x11_new(&parts.windows, error) == FM_OK && sy_apps_gio_new(&parts.apps, error) == FM_OK &&
           sy_joined_new(&parts, cancel_fd, desktop, error) == FM_OK;
}

int main(int argc, char **argv) {
    bool cancels = argc == 3 && strcmp(argv[1], "--cancel-fd") == 0;
    struct sy_world world = {.presets = NULL};
    struct fm_error error;
    if (!make_desktop(cancels ? (int)strtol(argv[2], NULL, 10) : -1, &world.desktop, &error)) {
        fprintf(stderr, "driver: %s\n", error.detail);
        return 1;
    }
    answer_lines(&world, answer_other);
    return 0;
}
