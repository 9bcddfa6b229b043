/* For the commands on applications: finds an application by its name, and its present windows. */
#include "commands/internal.h"
#include "desktop/refuse.h"

#include <json-c/json.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CANDIDATES_MAX 8 /* names in a refusal */

struct json_object *sy_arg(const struct sy_step *step, const char *name) {
    return json_object_object_get(step->args, name);
}

enum fm_code sy_refuse_step(const struct sy_step *step, struct fm_error *error, const char *reason, const char *param,
                            const char *fmt, ...) {
    char detail[sizeof error->detail];
    char path[sizeof error->param];
    va_list args;
    va_start(args, fmt);
    vsnprintf(detail, sizeof detail, fmt, args);
    va_end(args);
    snprintf(path, sizeof path, "%.*s%s", (int)(strlen(step->param) - (step->param[0] && !param[0])), step->param,
             param); /* without the point after the command's place, if the error is about the whole command */
    return sy_refuse(error, reason, path, "%s", detail);
}

char (*sy_step_ids(struct sy_step *step, size_t count))[SY_ID_MAX] {
    step->ids = calloc(count + 1, sizeof *step->ids);
    step->id_count = step->ids ? count : 0;
    return step->ids;
}

enum fm_code sy_lacks(const struct sy_world *world, const char *what, struct fm_error *error) {
    return fm_fail(error, FM_UNAVAILABLE, "%s can't be done on this desktop (%s): `fm-system doctor` tells why", what,
                   world->desktop.backend->name);
}

void sy_write_bounds(const struct sy_rect *bounds, struct fm_json_writer *w) {
    fm_json_key(w, "bounds");
    fm_json_array_begin(w);
    fm_json_int(w, bounds->left);
    fm_json_int(w, bounds->top);
    fm_json_int(w, bounds->right);
    fm_json_int(w, bounds->bottom);
    fm_json_array_end(w);
}

/* ---- by name ---- */

static bool alike(const char *name, const char *asked) {
    return strcasestr(name, asked) || strcasestr(asked, name);
}

/*
 * Writes names that contain the wanted name, or are contained in it. If there are none, writes the names of all
 * applications that run.
 */
static void tell_candidates(struct sy_plan *plan, const char *asked, bool runs) {
    const struct sy_snapshot *snapshot = &plan->snapshot;
    struct fm_json_writer w = fm_json_writer_on(&plan->candidates);
    size_t told = 0;
    fm_json_array_begin(&w);
    for (size_t i = 0; i < snapshot->running_count && told < CANDIDATES_MAX; i++) {
        if (alike(snapshot->running[i].name, asked)) {
            fm_json_str(&w, snapshot->running[i].name);
            told++;
        }
    }
    for (size_t i = 0; !runs && i < snapshot->installed_count && told < CANDIDATES_MAX; i++) {
        const char *name = snapshot->installed[i].name;
        if (alike(name, asked) && !sy_find_running(snapshot, name)) {
            fm_json_str(&w, name);
            told++;
        }
    }
    for (size_t i = 0; told == 0 && i < snapshot->running_count && i < CANDIDATES_MAX; i++) {
        fm_json_str(&w, snapshot->running[i].name);
    }
    fm_json_array_end(&w);
}

static enum fm_code take_windows(const struct sy_plan *plan, const struct sy_running *running, struct sy_step *step,
                                 struct fm_error *error) {
    char(*ids)[SY_ID_MAX] = sy_step_ids(step, running->window_count);
    if (!ids) {
        return fm_fail_no_memory(error);
    }
    for (size_t i = 0; i < running->window_count; i++) {
        memcpy(ids[i], plan->snapshot.windows.at[running->windows[i]].id, SY_ID_MAX);
    }
    step->app = running->app;
    return FM_OK;
}

enum fm_code sy_find_app(struct sy_plan *plan, struct sy_step *step, bool runs, struct fm_error *error) {
    const struct sy_snapshot *snapshot = &plan->snapshot;
    const char *name = json_object_get_string(sy_arg(step, "app_name"));
    const struct sy_running *running = sy_find_running(snapshot, name);
    const struct sy_installed *installed = sy_find_installed(snapshot, name);
    if (snapshot->no_windows.code != FM_OK) {
        *error = snapshot->no_windows;
        return error->code;
    }
    if (!running && !installed) {
        tell_candidates(plan, name, runs);
        return sy_refuse_step(step, error, "unknown_app", "app_name",
                              "no application has exactly this name; list_apps has those that run");
    }
    if (!running && runs) {
        tell_candidates(plan, name, true);
        return sy_refuse_step(step, error, "not_running", "app_name", "the application does not run");
    }
    step->name = strdup(name);
    if (!step->name) {
        return fm_fail_no_memory(error);
    }
    step->app = installed ? installed->app : NULL;
    return running ? take_windows(plan, running, step, error) : FM_OK;
}

/* ---- now ---- */

bool sy_is_of_step(const struct sy_plan *plan, const struct sy_step *step, const struct sy_window *window) {
    if (step->app) {
        return sy_app_of_window(&plan->snapshot.apps, window) == step->app;
    }
    for (size_t i = 0; i < step->id_count; i++) {
        if (strcmp(step->ids[i], window->id) == 0) {
            return true;
        }
    }
    return false;
}

enum fm_code sy_window_now(const struct sy_world *world, const struct sy_plan *plan, const struct sy_step *step,
                           char window[SY_ID_MAX], struct fm_error *error) {
    struct sy_windows windows = {.count = 0};
    const struct sy_backend *backend = world->desktop.backend;
    window[0] = '\0';
    enum fm_code code = backend->windows(world->desktop.self, &windows, error);
    for (size_t i = windows.count; i > 0; i--) { /* the topmost one comes last, and is kept */
        if (sy_is_of_step(plan, step, &windows.at[i - 1])) {
            memcpy(window, windows.at[i - 1].id, SY_ID_MAX);
        }
    }
    for (size_t i = 0; i < windows.count && step->id_count > 0; i++) {
        if (strcmp(windows.at[i].id, step->ids[0]) == 0) {
            memcpy(window, windows.at[i].id, SY_ID_MAX);
        }
    }
    sy_windows_free(&windows);
    return code;
}

enum fm_code sy_look_at_window(const struct sy_world *world, const char *id, bool *found, struct sy_window *window,
                               struct fm_error *error) {
    struct sy_windows windows = {.count = 0};
    *found = false;
    enum fm_code code = world->desktop.backend->windows(world->desktop.self, &windows, error);
    for (size_t i = 0; i < windows.count; i++) {
        if (strcmp(windows.at[i].id, id) == 0) {
            *found = true;
            *window = windows.at[i];
            window->class_name = window->title = window->runs.items = NULL; /* the list owns these texts */
        }
    }
    sy_windows_free(&windows);
    return code;
}
