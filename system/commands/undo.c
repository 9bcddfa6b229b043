/* undo: moves windows back to where they were. A record is dropped once undo has handled all of its windows. */
#include "commands/undo.h"
#include "base/hex.h"
#include "base/platform.h"
#include "commands/internal.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

/* ---- records ---- */

static void free_record(struct sy_undo *record) {
    for (size_t i = 0; i < record->count; i++) {
        free(record->at[i].app_name);
    }
    free(record->at);
    *record = (struct sy_undo){.count = 0};
}

bool sy_undo_note(struct sy_undo *record, const struct sy_window *window, const char *app_name) {
    struct sy_moved *larger = realloc(record->at, (record->count + 1) * sizeof *larger);
    char *name = larger ? strdup(app_name) : NULL;
    record->at = larger ? larger : record->at;
    if (!name) {
        return false;
    }
    struct sy_moved *moved = &record->at[record->count++];
    *moved = (struct sy_moved){.pid = window->pid, .app_name = name, .before = window->bounds};
    memcpy(moved->window, window->id, sizeof moved->window);
    return true;
}

void sy_undos_drop(struct sy_undos *undos, const struct sy_undo *record) {
    size_t at = (size_t)(record - undos->records);
    free_record(&undos->records[at]);
    undos->count--;
    memmove(undos->records + at, undos->records + at + 1, (undos->count - at) * sizeof *undos->records);
    undos->records[undos->count] = (struct sy_undo){.count = 0};
}

const char *sy_undos_add(struct sy_undos *undos, struct sy_undo *record) {
    unsigned char bytes[(SY_HANDLE_SIZE - 1) / 2];
    if (record->count == 0) {
        free_record(record);
        return NULL;
    }
    if (undos->count == SY_UNDOS_MAX) {
        sy_undos_drop(undos, &undos->records[0]);
    }
    struct sy_undo *kept = &undos->records[undos->count++];
    *kept = *record;
    fm_random(bytes, sizeof bytes);
    fm_hex(kept->handle, bytes, sizeof bytes);
    *record = (struct sy_undo){.count = 0};
    return kept->handle;
}

const struct sy_undo *sy_undos_find(const struct sy_undos *undos, const char *handle) {
    for (size_t i = undos->count; i > 0; i--) {
        if (!handle || strcmp(undos->records[i - 1].handle, handle) == 0) {
            return &undos->records[i - 1];
        }
    }
    return NULL;
}

void sy_undos_free(struct sy_undos *undos) {
    while (undos->count > 0) {
        sy_undos_drop(undos, &undos->records[undos->count - 1]);
    }
}

/* ---- the command ---- */

static enum fm_code find_undo(const struct sy_world *world, const struct sy_step *step, const struct sy_undo **record,
                              struct fm_error *error) {
    const char *handle = json_object_get_string(sy_arg(step, "handle"));
    *record = sy_undos_find(&world->undos, handle);
    if (*record) {
        return FM_OK;
    }
    return handle ? sy_refuse_step(step, error, "unknown_undo", "handle",
                                   "no placement has this handle: it was taken back, or it is too long ago")
                  : sy_refuse_step(step, error, "nothing_to_undo", "", "no window was placed that could go back");
}

/* Without a handle, an earlier step of the plan may change which windows are moved back. */
enum fm_code sy_check_undo(struct sy_world *world, struct sy_plan *plan, struct sy_step *step, struct fm_error *error) {
    const struct sy_undo *record;
    bool moves = false;
    for (const struct sy_step *at = plan->steps; at < step; at++) {
        moves |= at->command->moves;
    }
    if (plan->snapshot.no_windows.code != FM_OK) {
        *error = plan->snapshot.no_windows;
        return error->code;
    }
    return moves && !sy_arg(step, "handle") ? FM_OK : find_undo(world, step, &record, error);
}

/* False in `*back`: the window does not exist any more. */
static enum fm_code put_back(const struct sy_world *world, const struct sy_moved *moved, bool *back,
                             struct fm_json_writer *w, struct fm_error *error) {
    struct sy_window window;
    struct sy_rect reached;
    enum fm_code code = sy_look_at_window(world, moved->window, back, &window, error);
    *back = *back && window.pid == moved->pid;
    if (code != FM_OK || !*back) {
        return code;
    }
    reached = window.bounds;
    code = sy_move_window(world, moved->window, &moved->before, back, &reached, error);
    if (code == FM_OK && *back) {
        fm_json_object_begin(w);
        fm_json_key_str(w, "app_name", moved->app_name);
        sy_write_bounds(&reached, w);
        fm_json_key_bool(w, "exact", memcmp(&reached, &moved->before, sizeof reached) == 0);
        fm_json_object_end(w);
    }
    return code;
}

enum fm_code sy_run_undo(struct sy_world *world, const struct sy_plan *plan, const struct sy_step *step,
                         struct fm_json_writer *w, struct fm_error *error) {
    const struct sy_undo *record;
    size_t restored = 0;
    (void)plan;
    enum fm_code code = find_undo(world, step, &record, error);
    if (code != FM_OK) {
        return code;
    }
    size_t count = record->count;
    fm_json_key(w, "restored");
    fm_json_array_begin(w);
    /* in reverse order, so that a window that was moved twice gets its first place */
    for (size_t i = count; i > 0 && code == FM_OK; i--) {
        bool back = false;
        code = put_back(world, &record->at[i - 1], &back, w, error);
        restored += back;
    }
    fm_json_array_end(w);
    if (code != FM_OK) {
        return code;
    }
    fm_json_key_int(w, "closed_meanwhile", (int64_t)(count - restored));
    sy_undos_drop(&world->undos, record);
    return restored > 0 ? FM_OK : sy_refuse_step(step, error, "no_window", "", "what was placed has been closed since");
}
