/* list_apps, focus_app, close_app. An action ends when its effect is seen, or its time limit is over. */
#include "commands/internal.h"
#include "commands/listing.h"
#include "desktop/refuse.h"

#include <json-c/json.h>
#include <string.h>

#define FOCUS_MS 2000 /* until the wanted window is the active one */
#define CLOSE_MS 5000 /* until the windows that were asked to close are gone */

static int64_t desktop_now(const struct sy_world *world) {
    return world->desktop.backend->now(world->desktop.self);
}

static enum fm_code wait_until(const struct sy_world *world, int64_t until_ms, struct fm_error *error) {
    return world->desktop.backend->wait(world->desktop.self, until_ms, error);
}

/* ---- list_apps ---- */

enum fm_code sy_run_list_apps(struct sy_world *world, const struct sy_plan *plan, const struct sy_step *step,
                              struct fm_json_writer *w, struct fm_error *error) {
    struct sy_snapshot fresh = {.running_count = 0};
    const struct sy_snapshot *snapshot;
    enum fm_code code = sy_snapshot_now(world, plan, step, &fresh, &snapshot, error);
    if (code == FM_OK && snapshot->no_windows.code != FM_OK) {
        *error = snapshot->no_windows;
        code = error->code;
    }
    if (code != FM_OK) {
        sy_snapshot_free(&fresh);
        return code;
    }
    sy_write_running(snapshot, w);
    sy_snapshot_free(&fresh);
    return FM_OK;
}

/* ---- focus_app ---- */

/* True if windows can't be listed, as on Wayland, but applications can be started. */
static bool only_starts(const struct sy_world *world, const struct sy_plan *plan) {
    return plan->snapshot.no_windows.code == FM_UNAVAILABLE && world->desktop.backend->launch;
}

enum fm_code sy_check_focus_app(struct sy_world *world, struct sy_plan *plan, struct sy_step *step,
                                struct fm_error *error) {
    const char *name = json_object_get_string(sy_arg(step, "app_name"));
    const struct sy_installed *installed = sy_find_installed(&plan->snapshot, name);
    if (!installed || !only_starts(world, plan)) {
        return sy_find_app(plan, step, false, error);
    }
    step->app = installed->app;
    step->name = strdup(name);
    return step->name ? FM_OK : fm_fail_no_memory(error);
}

static void write_focused(const struct sy_step *step, bool launched, struct fm_json_writer *w) {
    fm_json_key_str(w, "app_name", step->name);
    fm_json_key_bool(w, "launched", launched);
}

static enum fm_code launch_app(const struct sy_world *world, const struct sy_plan *plan, const struct sy_step *step,
                               char window[SY_ID_MAX], struct fm_error *error) {
    const struct sy_backend *backend = world->desktop.backend;
    int64_t until_ms = desktop_now(world) + SY_LAUNCH_MS;
    if (!backend->launch) {
        return sy_lacks(world, "starting an application", error);
    }
    enum fm_code code = backend->launch(world->desktop.self, step->app->id, error);
    while (code == FM_OK && !window[0]) {
        if (desktop_now(world) >= until_ms) {
            return sy_refuse_step(step, error, "no_window", "app_name",
                                  "the application was started, but has no window after %d s", SY_LAUNCH_MS / 1000);
        }
        code = wait_until(world, until_ms, error);
        code = code ? code : sy_window_now(world, plan, step, window, error);
    }
    return code;
}

static enum fm_code until_active(const struct sy_world *world, const struct sy_step *step, const char *id,
                                 struct fm_error *error) {
    int64_t until_ms = desktop_now(world) + FOCUS_MS;
    for (;;) {
        struct sy_window window;
        bool found;
        enum fm_code code = sy_look_at_window(world, id, &found, &window, error);
        if (code != FM_OK) {
            return code;
        }
        if (!found) {
            return sy_refuse_step(step, error, "no_window", "app_name", "the window was closed meanwhile");
        }
        if (window.active) {
            return FM_OK;
        }
        if (desktop_now(world) >= until_ms) {
            return sy_refuse_step(step, error, "focus_refused", "app_name",
                                  "the window manager did not bring the window to the front");
        }
        code = wait_until(world, until_ms, error);
        if (code != FM_OK) {
            return code;
        }
    }
}

enum fm_code sy_run_focus_app(struct sy_world *world, const struct sy_plan *plan, const struct sy_step *step,
                              struct fm_json_writer *w, struct fm_error *error) {
    char window[SY_ID_MAX];
    if (only_starts(world, plan)) {
        enum fm_code started = world->desktop.backend->launch(world->desktop.self, step->app->id, error);
        if (started == FM_OK) {
            write_focused(step, true, w);
        }
        return started;
    }
    enum fm_code code = sy_window_now(world, plan, step, window, error);
    bool runs = window[0];
    if (code == FM_OK && !runs && !step->app) {
        return sy_refuse_step(step, error, "no_window", "app_name", "the application's windows were closed meanwhile");
    }
    if (code == FM_OK && !runs) {
        code = launch_app(world, plan, step, window, error);
    }
    code = code ? code : world->desktop.backend->focus(world->desktop.self, window, error);
    if (code == FM_NOT_FOUND) {
        return sy_refuse_step(step, error, "no_window", "app_name", "the window was closed meanwhile");
    }
    code = code ? code : until_active(world, step, window, error);
    if (code == FM_OK) {
        write_focused(step, !runs, w);
    }
    return code;
}

/* ---- close_app ---- */

enum fm_code sy_check_close_app(struct sy_world *world, struct sy_plan *plan, struct sy_step *step,
                                struct fm_error *error) {
    (void)world;
    return sy_find_app(plan, step, true, error);
}

/* Counts the step's windows that still exist. */
static enum fm_code count_open(const struct sy_world *world, const struct sy_step *step, size_t *open,
                               struct fm_error *error) {
    struct sy_windows windows = {.count = 0};
    enum fm_code code = world->desktop.backend->windows(world->desktop.self, &windows, error);
    *open = 0;
    for (size_t i = 0; i < step->id_count; i++) {
        for (size_t at = 0; at < windows.count; at++) {
            *open += strcmp(step->ids[i], windows.at[at].id) == 0;
        }
    }
    sy_windows_free(&windows);
    return code;
}

enum fm_code sy_run_close_app(struct sy_world *world, const struct sy_plan *plan, const struct sy_step *step,
                              struct fm_json_writer *w, struct fm_error *error) {
    int64_t until_ms = desktop_now(world) + CLOSE_MS;
    size_t open = step->id_count;
    enum fm_code code = FM_OK;
    (void)plan;
    for (size_t i = 0; i < step->id_count && code == FM_OK; i++) {
        code = world->desktop.backend->close(world->desktop.self, step->ids[i], error);
        code = code == FM_NOT_FOUND ? FM_OK : code; /* the window was closed meanwhile */
    }
    code = code ? code : count_open(world, step, &open, error);
    while (code == FM_OK && open > 0) {
        if (desktop_now(world) >= until_ms) {
            return sy_refuse_step(step, error, "still_open", "app_name",
                                  "%zu of %zu windows are still open after %d s: they may ask the user something", open,
                                  step->id_count, CLOSE_MS / 1000);
        }
        code = wait_until(world, until_ms, error);
        code = code ? code : count_open(world, step, &open, error);
    }
    if (code == FM_OK) {
        fm_json_key_str(w, "app_name", step->name);
        fm_json_key_int(w, "closed_windows", (int64_t)step->id_count);
    }
    return code;
}
