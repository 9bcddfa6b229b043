/*
 * activate_preset, and presets made from the present layout. A preset is a list of steps. Each step is checked like
 * place_app or open_url, and all steps are checked before the first one runs. The nth window of an application in the
 * preset means its nth window on the screen, counted from the topmost. For a missing window the application is started.
 */
#include "commands/preset.h"
#include "base/utf8.h"
#include "commands/internal.h"
#include "desktop/clean.h"
#include "desktop/presets.h"
#include "desktop/refuse.h"
#include "desktop/url.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CANDIDATES_MAX 8   /* names in a refusal */
#define SHOWN_MAX      100 /* characters of a name or title */

/* ---- checking ---- */

/* Turns the refusal of a part into one of the preset. Its text has the place in presets.json, what is wrong, and the
 * part's code. Other errors stay as they are. */
static enum fm_code of_file(const struct sy_step *step, const char *reason, struct fm_error *error) {
    const struct fm_error fault = *error;
    bool named = strncmp(fault.detail, fault.param, strlen(fault.param)) == 0;
    if (fault.code != FM_INVALID_REQUEST) {
        return fault.code;
    }
    return sy_refuse_step(step, error, reason, "preset_name", "presets.json: %s%s%s (%s)", named ? "" : fault.param,
                          named ? "" : ": ", fault.detail, fault.reason);
}

static enum fm_code invalid(const char *path, const char *what, struct fm_error *error) {
    return sy_refuse(error, "invalid_type", path, "%s %s", path, what);
}

static struct sy_step *add_part(struct sy_step *step, const char *type) {
    struct sy_step *part = &step->parts[step->part_count++];
    part->command = sy_find_command(type);
    return part;
}

static enum fm_code add_app(struct sy_world *world, struct sy_plan *plan, struct sy_step *step, struct json_object *app,
                            const char *path, struct fm_error *error) {
    const struct sy_backend *backend = world->desktop.backend;
    struct sy_step *part = add_part(step, "place_app");
    snprintf(part->param, sizeof part->param, "%s.", path);
    if (!json_object_is_type(app, json_type_object)) {
        return invalid(path, "must be an object with app_name, and monitor or bounds", error);
    }
    if (json_object_object_get_ex(app, "type", NULL)) {
        return sy_refuse(error, "unknown_param", path, "%s has a \"type\": it is always an application's window", path);
    }
    part->args = app;
    enum fm_code code = sy_check_params(part->command, app, part->param, error);
    code = code ? code : sy_check_place_app(world, plan, part, error);
    if (code == FM_OK && part->id_count == 0 && !backend->launch) {
        code = sy_lacks(world, "starting an application", error);
    }
    return code;
}

static enum fm_code add_url(const struct sy_plan *plan, struct sy_step *step, struct json_object *text,
                            const char *path, struct fm_error *error) {
    char url[SY_URL_MAX + 1];
    struct sy_step *part = add_part(step, "open_url");
    snprintf(part->param, sizeof part->param, "%s.", path);
    if (plan->snapshot.no_tabs.code != FM_OK) {
        *error = plan->snapshot.no_tabs;
        return error->code;
    }
    if (!json_object_is_type(text, json_type_string) ||
        strlen(json_object_get_string(text)) != (size_t)json_object_get_string_len(text)) {
        return invalid(path, "must be a string, a URL", error);
    }
    if (sy_url_normalize(json_object_get_string(text), url, error) != FM_OK) {
        snprintf(error->param, sizeof error->param, "%s", path);
        return error->code;
    }
    part->url = strdup(url);
    return part->url ? FM_OK : fm_fail_no_memory(error);
}

static enum fm_code check_members(struct json_object *preset, const char *path, struct fm_error *error) {
    static const char *const lists[] = {"apps", "urls"};
    size_t parts = 0;
    struct json_object_iter each;
    json_object_object_foreachC(preset, each) {
        const char *member = each.key;
        if (strcmp(member, "name") != 0 && strcmp(member, "apps") != 0 && strcmp(member, "urls") != 0) {
            char at[160];
            snprintf(at, sizeof at, "%s.%.*s", path, fm_utf8_shown(member, 64), member);
            return sy_refuse(error, "unknown_param", at, "%s is no member of a preset: name, apps and urls are", at);
        }
    }
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        struct json_object *list = json_object_object_get(preset, lists[i]);
        char at[96];
        snprintf(at, sizeof at, "%s.%s", path, lists[i]);
        if (list &&
            (!json_object_is_type(list, json_type_array) || json_object_array_length(list) > SY_PRESET_PARTS_MAX)) {
            return invalid(at, "must be an array of at most 20", error);
        }
        parts += list ? json_object_array_length(list) : 0;
    }
    return parts > 0 ? FM_OK : sy_refuse(error, "missing_param", path, "%s has neither apps nor urls", path);
}

static enum fm_code check_parts(struct sy_world *world, struct sy_plan *plan, struct sy_step *step,
                                struct json_object *preset, size_t index, struct fm_error *error) {
    char path[64];
    snprintf(path, sizeof path, "presets[%zu]", index);
    enum fm_code code = check_members(preset, path, error);
    if (code != FM_OK) {
        return code;
    }
    struct json_object *apps = json_object_object_get(preset, "apps");
    struct json_object *urls = json_object_object_get(preset, "urls");
    size_t app_count = apps ? json_object_array_length(apps) : 0;
    size_t url_count = urls ? json_object_array_length(urls) : 0;
    step->parts = calloc(app_count + url_count, sizeof *step->parts);
    if (!step->parts) {
        return fm_fail_no_memory(error);
    }
    for (size_t i = 0; i < app_count && code == FM_OK; i++) {
        snprintf(path, sizeof path, "presets[%zu].apps[%zu]", index, i);
        code = add_app(world, plan, step, json_object_array_get_idx(apps, i), path, error);
    }
    for (size_t i = 0; i < url_count && code == FM_OK; i++) {
        snprintf(path, sizeof path, "presets[%zu].urls[%zu]", index, i);
        code = add_url(plan, step, json_object_array_get_idx(urls, i), path, error);
    }
    return code;
}

static enum fm_code unknown_preset(const struct sy_presets *presets, struct sy_plan *plan, const struct sy_step *step,
                                   struct fm_error *error) {
    struct fm_json_writer w = fm_json_writer_on(&plan->candidates);
    fm_json_array_begin(&w);
    for (size_t i = 0; i < sy_presets_count(presets) && i < CANDIDATES_MAX; i++) {
        fm_json_str(&w, sy_presets_name(presets, i));
    }
    fm_json_array_end(&w);
    return sy_refuse_step(step, error, "unknown_preset", "preset_name",
                          "there is no preset of exactly this name: %zu are", sy_presets_count(presets));
}

enum fm_code sy_check_activate_preset(struct sy_world *world, struct sy_plan *plan, struct sy_step *step,
                                      struct fm_error *error) {
    const char *name = json_object_get_string(sy_arg(step, "preset_name"));
    struct sy_presets presets = {.list = NULL};
    if (world->presets && sy_presets_read(world->presets, &presets, error) != FM_OK) {
        const struct fm_error fault = *error;
        return fault.code == FM_INVALID_REQUEST
                   ? sy_refuse_step(step, error, "invalid_preset", "preset_name", "%s", fault.detail)
                   : fault.code;
    }
    step->owned = presets.root; /* the parts borrow from it */
    size_t index = sy_presets_find(&presets, name);
    if (index == sy_presets_count(&presets)) {
        return unknown_preset(&presets, plan, step, error);
    }
    step->name = strdup(name);
    if (!step->name) {
        return fm_fail_no_memory(error);
    }
    enum fm_code code = check_parts(world, plan, step, json_object_array_get_idx(presets.list, index), index, error);
    return code == FM_OK ? FM_OK : of_file(step, "invalid_preset", error);
}

/* ---- running ---- */

typedef char sy_id[SY_ID_MAX];

static bool is_taken(sy_id *taken, size_t count, const char *id) {
    size_t i = 0;
    while (i < count && strcmp(taken[i], id) != 0) {
        i++;
    }
    return i < count;
}

/* Gives each part without a window ("" in `taken`) the topmost window of its application that is not taken yet. */
static enum fm_code take_windows(const struct sy_world *world, const struct sy_plan *plan, const struct sy_step *step,
                                 sy_id *taken, struct fm_error *error) {
    struct sy_windows windows = {.count = 0};
    enum fm_code code = world->desktop.backend->windows(world->desktop.self, &windows, error);
    for (size_t i = 0; i < step->part_count && code == FM_OK; i++) {
        for (size_t at = 0; step->parts[i].name && !taken[i][0] && at < windows.count; at++) {
            const struct sy_window *window = &windows.at[at];
            if (sy_is_of_step(plan, &step->parts[i], window) && !is_taken(taken, step->part_count, window->id)) {
                memcpy(taken[i], window->id, sizeof taken[i]);
            }
        }
    }
    sy_windows_free(&windows);
    return code;
}

static enum fm_code start_missing(const struct sy_world *world, const struct sy_step *step, sy_id *taken,
                                  struct fm_error *error) {
    enum fm_code code = FM_OK;
    for (size_t i = 0; i < step->part_count && code == FM_OK; i++) {
        const struct sy_step *part = &step->parts[i];
        if (part->name && !taken[i][0] && !part->app) {
            code =
                sy_refuse_step(part, error, "no_window", "app_name", "the application's windows were closed meanwhile");
        } else if (part->name && !taken[i][0]) {
            code = world->desktop.backend->launch
                       ? world->desktop.backend->launch(world->desktop.self, part->app->id, error)
                       : sy_lacks(world, "starting an application", error);
        }
    }
    return code;
}

static enum fm_code place_part(struct sy_world *world, const struct sy_plan *plan, const struct sy_step *step, size_t i,
                               sy_id *taken, int64_t until_ms, struct sy_undo *undo, struct fm_json_writer *w,
                               struct fm_error *error) {
    const struct sy_backend *backend = world->desktop.backend;
    enum fm_code code = FM_OK;
    while (code == FM_OK && !taken[i][0]) {
        if (backend->now(world->desktop.self) >= until_ms) {
            return sy_refuse_step(&step->parts[i], error, "no_window", "app_name",
                                  "the application was started, but has no window of its own after %d s",
                                  SY_LAUNCH_MS / 1000);
        }
        code = backend->wait(world->desktop.self, until_ms, error);
        code = code ? code : take_windows(world, plan, step, taken, error);
    }
    return code ? code : sy_place_window(world, plan, &step->parts[i], taken[i], undo, w, error);
}

static enum fm_code place_all(struct sy_world *world, const struct sy_plan *plan, const struct sy_step *step,
                              struct fm_json_writer *w, struct fm_error *error) {
    struct sy_undo undo = {.count = 0};
    int64_t until_ms = world->desktop.backend->now(world->desktop.self) + SY_LAUNCH_MS;
    sy_id *taken = calloc(step->part_count, sizeof *taken);
    bool *launched = calloc(step->part_count, sizeof *launched);
    enum fm_code code = taken && launched ? FM_OK : fm_fail_no_memory(error);
    code = code ? code : take_windows(world, plan, step, taken, error);
    for (size_t i = 0; i < step->part_count && code == FM_OK; i++) {
        launched[i] = !taken[i][0];
    }
    code = code ? code : start_missing(world, step, taken, error);
    fm_json_key(w, "apps");
    fm_json_array_begin(w);
    for (size_t i = 0; i < step->part_count && code == FM_OK; i++) {
        if (step->parts[i].name) {
            fm_json_object_begin(w);
            code = place_part(world, plan, step, i, taken, until_ms, &undo, w, error);
            fm_json_key_bool(w, "launched", launched[i]);
            fm_json_object_end(w);
        }
    }
    fm_json_array_end(w);
    sy_write_undo(world, &undo, w);
    free(launched);
    free(taken);
    return code;
}

/* Whether a tab shows this URL already. Chrome writes an empty path as a slash. */
static bool is_open(const struct sy_tabs *tabs, const char *url) {
    size_t len = strlen(url);
    for (size_t i = 0; i < tabs->count; i++) {
        const char *rest = strncmp(tabs->at[i].url, url, len) == 0 ? tabs->at[i].url + len : NULL;
        if (rest && (!rest[0] || (strcmp(rest, "/") == 0 && !strchr(strstr(url, "//") + 2, '/')))) {
            return true;
        }
    }
    return false;
}

static enum fm_code open_all(const struct sy_world *world, const struct sy_step *step, struct fm_json_writer *w,
                             struct fm_error *error) {
    const struct sy_backend *backend = world->desktop.backend;
    struct sy_tabs tabs = {.count = 0};
    enum fm_code code = FM_OK;
    bool listed = false;
    fm_json_key(w, "urls");
    fm_json_array_begin(w);
    for (size_t i = 0; i < step->part_count && code == FM_OK; i++) {
        const char *url = step->parts[i].url;
        sy_id tab;
        if (!url) {
            continue;
        }
        code = listed ? FM_OK : backend->tabs(world->desktop.self, &tabs, error);
        listed = true;
        bool open = code == FM_OK && is_open(&tabs, url);
        code = code || open ? code : backend->open(world->desktop.self, url, tab, error);
        if (code == FM_OK) {
            fm_json_object_begin(w);
            fm_json_key_str(w, "url", url);
            fm_json_key_bool(w, "opened", !open);
            fm_json_object_end(w);
        }
    }
    fm_json_array_end(w);
    sy_tabs_free(&tabs);
    return code;
}

enum fm_code sy_run_activate_preset(struct sy_world *world, const struct sy_plan *plan, const struct sy_step *step,
                                    struct fm_json_writer *w, struct fm_error *error) {
    bool places = step->parts[0].name != NULL; /* windows come before URLs */
    fm_json_key_str(w, "preset_name", step->name);
    enum fm_code code = places ? place_all(world, plan, step, w, error) : FM_OK;
    code = code ? code : open_all(world, step, w, error);
    return code && error->reason ? of_file(step, error->reason, error) : code;
}

/* ---- presets from the layout ---- */

static void leave_out(struct fm_buf *left_out, const char *what, const char *why) {
    sy_clean(left_out, what, SHOWN_MAX, false);
    fm_buf_append_str(left_out, ": ");
    fm_buf_append_str(left_out, why);
    fm_buf_append_char(left_out, '\n');
}

/* Adds `value`, which is owned, to the list. */
static bool add_value(struct json_object *list, struct json_object *value) {
    if (value && json_object_array_add(list, value) == 0) {
        return true;
    }
    json_object_put(value);
    return false;
}

static bool add_member(struct json_object *object, const char *name, struct json_object *value) {
    if (value && json_object_object_add(object, name, value) == 0) {
        return true;
    }
    json_object_put(value);
    return false;
}

static struct json_object *window_entry(const char *app_name, const struct sy_rect *bounds) {
    const int edges[] = {bounds->left, bounds->top, bounds->right, bounds->bottom};
    struct json_object *entry = json_object_new_object();
    struct json_object *list = json_object_new_array();
    bool ok = entry && list && add_member(entry, "app_name", json_object_new_string(app_name));
    for (size_t i = 0; i < 4 && ok; i++) {
        ok = add_value(list, json_object_new_int(edges[i]));
    }
    if (ok && json_object_object_add(entry, "bounds", list) == 0) {
        return entry;
    }
    json_object_put(list);
    json_object_put(entry);
    return NULL;
}

static enum fm_code add_window(struct sy_world *world, struct sy_plan *plan, const struct sy_running *running,
                               const struct sy_window *window, struct json_object *apps, struct fm_buf *left_out,
                               struct fm_error *error) {
    if (!running->app) {
        leave_out(left_out, running->name, "it is not an installed application, so it could not be started");
        return FM_OK;
    }
    if (json_object_array_length(apps) == SY_PRESET_PARTS_MAX) {
        leave_out(left_out, running->name, "a preset has at most 20 windows");
        return FM_OK;
    }
    struct json_object *entry = window_entry(running->name, &window->bounds);
    if (!entry) {
        return fm_fail_no_memory(error);
    }
    struct sy_step step = {.command = sy_find_command("place_app"), .args = entry};
    enum fm_code code = sy_check_params(step.command, entry, "", error);
    code = code ? code : sy_check_place_app(world, plan, &step, error);
    free(step.name);
    free(step.ids);
    if (code == FM_INVALID_REQUEST) { /* the window is minimised, or on a monitor that does not exist any more */
        leave_out(left_out, running->name, error->detail);
        json_object_put(entry);
        return FM_OK;
    }
    if (code != FM_OK) {
        json_object_put(entry);
        return code;
    }
    return add_value(apps, entry) ? FM_OK : fm_fail_no_memory(error);
}

static enum fm_code add_windows(struct sy_world *world, struct sy_plan *plan, struct json_object *apps,
                                struct fm_buf *left_out, struct fm_error *error) {
    const struct sy_snapshot *snapshot = &plan->snapshot;
    enum fm_code code = FM_OK;
    for (size_t i = 0; i < snapshot->running_count && code == FM_OK; i++) {
        const struct sy_running *running = &snapshot->running[i];
        for (size_t at = 0; at < running->window_count && code == FM_OK; at++) {
            code = add_window(world, plan, running, &snapshot->windows.at[running->windows[at]], apps, left_out, error);
        }
    }
    return code;
}

static enum fm_code add_tabs(const struct sy_plan *plan, struct json_object *urls, struct fm_buf *left_out,
                             struct fm_error *error) {
    if (plan->snapshot.no_tabs.code != FM_OK) {
        *error = plan->snapshot.no_tabs;
        return error->code;
    }
    for (size_t i = 0; i < plan->snapshot.tab_count; i++) {
        const struct sy_tab *tab = plan->snapshot.tabs[i].tab;
        char url[SY_URL_MAX + 1];
        bool full = json_object_array_length(urls) == SY_PRESET_PARTS_MAX;
        if (full || sy_url_normalize(tab->url, url, error) != FM_OK) {
            leave_out(left_out, tab->title, full ? "a preset has at most 20 URLs" : error->detail);
        } else if (!add_value(urls, json_object_new_string(url))) {
            return fm_fail_no_memory(error);
        }
    }
    return FM_OK;
}

enum fm_code sy_preset_of_layout(struct sy_world *world, const char *name, bool tabs, struct json_object **preset,
                                 struct fm_buf *left_out, struct fm_error *error) {
    struct sy_plan plan;
    *preset = NULL;
    enum fm_code code = sy_plan_command(world, "list_apps", NULL, &plan, error);
    struct json_object *made = json_object_new_object();
    struct json_object *apps = json_object_new_array();
    struct json_object *urls = json_object_new_array();
    if (code == FM_OK && !(made && apps && urls && add_member(made, "name", json_object_new_string(name)))) {
        code = fm_fail_no_memory(error);
    }
    if (code == FM_OK && plan.snapshot.no_windows.code != FM_OK) {
        *error = plan.snapshot.no_windows;
        code = error->code;
    }
    code = code ? code : add_windows(world, &plan, apps, left_out, error);
    code = code || !tabs ? code : add_tabs(&plan, urls, left_out, error);
    if (code == FM_OK && json_object_array_length(apps) + json_object_array_length(urls) == 0) {
        code = sy_refuse(error, "nothing_to_save", "", "there is nothing on the screen that a preset could bring back");
    }
    if (code == FM_OK && !(add_member(made, "apps", json_object_get(apps)) &&
                           (!tabs || add_member(made, "urls", json_object_get(urls))))) {
        code = fm_fail_no_memory(error);
    }
    json_object_put(apps);
    json_object_put(urls);
    if (code == FM_OK) {
        *preset = made;
    } else {
        json_object_put(made);
    }
    sy_plan_free(&plan);
    return code;
}
