/* place_app: computes where a window goes, and reports where it arrived. */
#include "commands/internal.h"

#include <json-c/json.h>
#include <string.h>

#define SEEN_WIDTH  100 /* pixels of a window that must be on a monitor, so that the user can grab it */
#define SEEN_HEIGHT 50
#define PLACE_MS    1000 /* until the window is where it was sent */
#define SETTLED_MS  150  /* a window that has not moved for this long has its final place */

/* ---- checking ---- */

static int larger(int a, int b) {
    return a > b ? a : b;
}

static int smaller(int a, int b) {
    return a < b ? a : b;
}

static bool is_seen(const struct sy_rect *bounds, const struct sy_rect *area) {
    int width = smaller(bounds->right, area->right) - larger(bounds->left, area->left);
    int height = smaller(bounds->bottom, area->bottom) - larger(bounds->top, area->top);
    return width >= smaller(SEEN_WIDTH, bounds->right - bounds->left) &&
           height >= smaller(SEEN_HEIGHT, bounds->bottom - bounds->top);
}

static bool has_centre(const struct sy_rect *area, const struct sy_rect *bounds) {
    int x = bounds->left + (bounds->right - bounds->left) / 2;
    int y = bounds->top + (bounds->bottom - bounds->top) / 2;
    return x >= area->left && x < area->right && y >= area->top && y < area->bottom;
}

static enum fm_code check_bounds(const struct sy_plan *plan, const struct sy_step *step, struct fm_error *error) {
    const struct sy_monitors *monitors = &plan->snapshot.monitors;
    bool seen = false;
    for (size_t i = 0; i < monitors->count; i++) {
        seen |= is_seen(&step->bounds, &monitors->at[i].area);
    }
    if (!seen) {
        return sy_refuse_step(step, error, "bounds_off_screen", "bounds",
                              "less than %dx%d pixels of the window would be on a monitor", SEEN_WIDTH, SEEN_HEIGHT);
    }
    if (step->monitor && !has_centre(&step->monitor->area, &step->bounds)) {
        return sy_refuse_step(step, error, "bounds_off_monitor", "bounds",
                              "the middle of these bounds is not on the monitor that is named");
    }
    return FM_OK;
}

static void read_bounds(struct json_object *list, struct sy_step *step) {
    int edges[4];
    for (size_t i = 0; i < 4; i++) {
        edges[i] = json_object_get_int(json_object_array_get_idx(list, i));
    }
    step->bounds = (struct sy_rect){edges[0], edges[1], edges[2], edges[3]};
    step->has_bounds = true;
}

enum fm_code sy_check_place_app(struct sy_world *world, struct sy_plan *plan, struct sy_step *step,
                                struct fm_error *error) {
    struct json_object *bounds = sy_arg(step, "bounds");
    struct json_object *monitor = sy_arg(step, "monitor");
    (void)world;
    if (!bounds && !monitor) {
        return sy_refuse_step(step, error, "no_target", "monitor", "place_app needs a monitor, or bounds, or both");
    }
    enum fm_code code = sy_find_app(plan, step, false, error);
    if (code == FM_OK && monitor) {
        step->monitor = sy_find_monitor(&plan->snapshot, json_object_get_string(monitor));
        if (!step->monitor) {
            return sy_refuse_step(step, error, "unknown_monitor", "monitor",
                                  "there is no monitor \"%s\" here: one is main", json_object_get_string(monitor));
        }
    }
    if (code == FM_OK && bounds) {
        read_bounds(bounds, step);
        code = check_bounds(plan, step, error);
    }
    return code;
}

/* ---- running ---- */

/* The monitor that contains the window's middle, or else the first monitor. */
static const struct sy_rect *area_of(const struct sy_plan *plan, const struct sy_rect *bounds) {
    const struct sy_monitors *monitors = &plan->snapshot.monitors;
    for (size_t i = 0; i < monitors->count; i++) {
        if (has_centre(&monitors->at[i].area, bounds)) {
            return &monitors->at[i].area;
        }
    }
    return &monitors->at[0].area;
}

/*
 * Moves an edge to another monitor. The distance to the monitor's edge stays the same, unless `length` would not fit.
 */
static int moved(int edge, int from, int to, int to_end, int length) {
    return larger(to, smaller(to + (edge - from), to_end - length));
}

/* The bounds with the same size at the same place of another monitor. */
static struct sy_rect on_monitor(const struct sy_plan *plan, const struct sy_rect *bounds, const struct sy_rect *area) {
    const struct sy_rect *from = area_of(plan, bounds);
    int width = bounds->right - bounds->left;
    int height = bounds->bottom - bounds->top;
    int left = moved(bounds->left, from->left, area->left, area->right, width);
    int top = moved(bounds->top, from->top, area->top, area->bottom, height);
    return (struct sy_rect){left, top, left + width, top + height};
}

enum fm_code sy_move_window(const struct sy_world *world, const char *id, const struct sy_rect *wanted, bool *found,
                            struct sy_rect *reached, struct fm_error *error) {
    const struct sy_backend *backend = world->desktop.backend;
    const int64_t limit_ms = backend->now(world->desktop.self) + PLACE_MS;
    int64_t until_ms = limit_ms;
    enum fm_code code = backend->place ? backend->place(world->desktop.self, id, wanted, error)
                                       : sy_lacks(world, "placing a window", error);
    *found = code != FM_NOT_FOUND;
    code = code == FM_NOT_FOUND ? FM_OK : code;
    while (code == FM_OK && *found) {
        struct sy_window window;
        code = sy_look_at_window(world, id, found, &window, error);
        if (code != FM_OK || !*found) {
            break;
        }
        if (memcmp(reached, &window.bounds, sizeof *reached) != 0) {
            int64_t settled_ms = backend->now(world->desktop.self) + SETTLED_MS;
            *reached = window.bounds;
            until_ms = settled_ms < limit_ms ? settled_ms : limit_ms;
        }
        if (memcmp(reached, wanted, sizeof *reached) == 0 || backend->now(world->desktop.self) >= until_ms) {
            break;
        }
        code = backend->wait(world->desktop.self, until_ms, error);
    }
    return code;
}

enum fm_code sy_place_window(const struct sy_world *world, const struct sy_plan *plan, const struct sy_step *step,
                             const char *id, struct sy_undo *undo, struct fm_json_writer *w, struct fm_error *error) {
    struct sy_window window;
    struct sy_rect reached;
    bool found = false;
    enum fm_code code = id[0] ? sy_look_at_window(world, id, &found, &window, error) : FM_OK;
    if (code == FM_OK && !found) {
        return sy_refuse_step(step, error, "no_window", "app_name",
                              "the application has no window: focus_app starts it");
    }
    if (code != FM_OK) {
        return code;
    }
    struct sy_rect wanted = step->has_bounds ? step->bounds : on_monitor(plan, &window.bounds, &step->monitor->area);
    if (!sy_undo_note(undo, &window, step->name)) {
        return fm_fail_no_memory(error);
    }
    reached = window.bounds;
    code = sy_move_window(world, id, &wanted, &found, &reached, error);
    if (code == FM_OK && !found) {
        return sy_refuse_step(step, error, "no_window", "app_name", "the window was closed meanwhile");
    }
    if (code == FM_OK) {
        fm_json_key_str(w, "app_name", step->name);
        sy_write_bounds(&reached, w);
        fm_json_key_bool(w, "exact", memcmp(&reached, &wanted, sizeof reached) == 0);
    }
    return code;
}

void sy_write_undo(struct sy_world *world, struct sy_undo *undo, struct fm_json_writer *w) {
    const char *handle = sy_undos_add(&world->undos, undo);
    if (handle) {
        fm_json_key_str(w, "undo", handle);
    }
}

enum fm_code sy_run_place_app(struct sy_world *world, const struct sy_plan *plan, const struct sy_step *step,
                              struct fm_json_writer *w, struct fm_error *error) {
    char id[SY_ID_MAX];
    struct sy_undo undo = {.count = 0};
    enum fm_code code = sy_window_now(world, plan, step, id, error);
    code = code ? code : sy_place_window(world, plan, step, id, &undo, w, error);
    sy_write_undo(world, &undo, w); /* also if the window moved before the command failed */
    return code;
}
