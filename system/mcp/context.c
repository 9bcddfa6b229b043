/* Writes the contract's context. Lists have the same form as in the results of commands. */
#include "mcp/context.h"
#include "commands/listing.h"
#include "desktop/presets.h"

#include <string.h>

static enum fm_code lacking(const struct fm_error *reason, struct fm_error *error) {
    *error = *reason;
    return error->code;
}

enum fm_code sy_context_running(struct sy_world *world, const struct sy_snapshot *snapshot, struct fm_json_writer *w,
                                struct fm_error *error) {
    (void)world;
    if (snapshot->no_windows.code != FM_OK) {
        return lacking(&snapshot->no_windows, error);
    }
    sy_write_running(snapshot, w);
    return FM_OK;
}

enum fm_code sy_context_installed(struct sy_world *world, const struct sy_snapshot *snapshot, struct fm_json_writer *w,
                                  struct fm_error *error) {
    (void)world;
    if (snapshot->no_apps.code != FM_OK) {
        return lacking(&snapshot->no_apps, error);
    }
    fm_json_key(w, "apps");
    fm_json_array_begin(w);
    for (size_t i = 0; i < snapshot->installed_count; i++) {
        fm_json_object_begin(w);
        fm_json_key_str(w, "name", snapshot->installed[i].name);
        fm_json_key_str(w, "id", snapshot->installed[i].app->id);
        fm_json_object_end(w);
    }
    fm_json_array_end(w);
    return FM_OK;
}

/* Writes the tabs, and notes that the client sees these numbers, so that the numbers keep their meaning. */
enum fm_code sy_context_tabs(struct sy_world *world, const struct sy_snapshot *snapshot, struct fm_json_writer *w,
                             struct fm_error *error) {
    if (snapshot->no_tabs.code != FM_OK) {
        return lacking(&snapshot->no_tabs, error);
    }
    if (!sy_told_add(&world->told, snapshot, SY_SEEN_PAGES)) {
        return fm_fail_no_memory(error);
    }
    sy_write_tabs(snapshot, NULL, w);
    return FM_OK;
}

enum fm_code sy_context_raw_tabs(struct sy_world *world, const struct sy_snapshot *snapshot, struct fm_json_writer *w,
                                 struct fm_error *error) {
    (void)world;
    if (snapshot->no_tabs.code != FM_OK) {
        return lacking(&snapshot->no_tabs, error);
    }
    sy_write_raw_tabs("tabs", &snapshot->raw_tabs, w);
    return FM_OK;
}

enum fm_code sy_context_presets(struct sy_world *world, const struct sy_snapshot *snapshot, struct fm_json_writer *w,
                                struct fm_error *error) {
    struct sy_presets presets = {.root = NULL};
    (void)snapshot;
    enum fm_code code = world->presets ? sy_presets_read(world->presets, &presets, error) : FM_OK;
    if (code != FM_OK) {
        return code;
    }
    fm_json_key(w, "presets");
    fm_json_array_begin(w);
    for (size_t i = 0; i < sy_presets_count(&presets); i++) {
        fm_json_str(w, sy_presets_name(&presets, i));
    }
    fm_json_array_end(w);
    sy_presets_free(&presets);
    return FM_OK;
}

enum fm_code sy_context_monitors(struct sy_world *world, const struct sy_snapshot *snapshot, struct fm_json_writer *w,
                                 struct fm_error *error) {
    static const char *const names[] = {"main", "left", "right"};
    if (!world->desktop.backend->monitors) {
        return fm_fail(error, FM_UNAVAILABLE, "this desktop (%s) does not tell its monitors",
                       world->desktop.backend->name);
    }
    fm_json_key(w, "monitors");
    fm_json_array_begin(w);
    for (size_t i = 0; i < snapshot->monitors.count; i++) {
        const struct sy_monitor *at = &snapshot->monitors.at[i];
        const int edges[] = {at->area.left, at->area.top, at->area.right, at->area.bottom};
        fm_json_object_begin(w);
        fm_json_key(w, "names");
        fm_json_array_begin(w);
        for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
            if (sy_find_monitor(snapshot, names[n]) == at) {
                fm_json_str(w, names[n]);
            }
        }
        fm_json_array_end(w);
        fm_json_key(w, "bounds");
        fm_json_array_begin(w);
        for (size_t n = 0; n < 4; n++) {
            fm_json_int(w, edges[n]);
        }
        fm_json_array_end(w);
        fm_json_object_end(w);
    }
    fm_json_array_end(w);
    return FM_OK;
}
