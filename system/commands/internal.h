/* Functions that the files of commands/ share. */
#ifndef SY_COMMANDS_INTERNAL_H
#define SY_COMMANDS_INTERNAL_H

#include "commands/table.h"
#include "protocol/json_writer.h"

#define SY_LAUNCH_MS 15000 /* until an application that was started has a window */

/* The step's parameter with this name; NULL: the step lacks it. */
struct json_object *sy_arg(const struct sy_step *step, const char *name);

/* Refuses the request with an error that names the step's parameter. */
enum fm_code sy_refuse_step(const struct sy_step *step, struct fm_error *error, const char *reason, const char *param,
                            const char *fmt, ...) FM_PRINTF(5, 6);

/* Makes room for `count` ids in the step, and returns it; NULL when out of memory. */
char (*sy_step_ids(struct sy_step *step, size_t count))[SY_ID_MAX];

/* Finds the application that the step names; with `runs` it must have windows. Fills name, app and ids (of its windows,
 * the topmost first). Refuses with unknown_app or not_running, and candidates. */
enum fm_code sy_find_app(struct sy_plan *plan, struct sy_step *step, bool runs, struct fm_error *error);

/*
 * Finds the window of the step's application to work on now: the one that the check found, if it still exists, or else
 * the topmost one. "" in `window`: the application has none.
 */
enum fm_code sy_window_now(const struct sy_world *world, const struct sy_plan *plan, const struct sy_step *step,
                           char window[SY_ID_MAX], struct fm_error *error);

/* Whether a window that exists now belongs to the step's application. */
bool sy_is_of_step(const struct sy_plan *plan, const struct sy_step *step, const struct sy_window *window);

/*
 * Lists the windows now, and copies the window with this id, without its texts. False in `*found`: there is no such
 * window.
 */
enum fm_code sy_look_at_window(const struct sy_world *world, const char *id, bool *found, struct sy_window *window,
                               struct fm_error *error);

/* Writes the key "bounds" with its value. */
void sy_write_bounds(const struct sy_rect *bounds, struct fm_json_writer *w);

/*
 * Sends the window to `wanted`. Waits until the window has these bounds, or has moved and stopped, or the time is up.
 * `reached` has the window's bounds: the caller sets those before the move, and the function sets the final ones. False
 * in `*found`: the window does not exist any more.
 */
enum fm_code sy_move_window(const struct sy_world *world, const char *id, const struct sy_rect *wanted, bool *found,
                            struct sy_rect *reached, struct fm_error *error);

/*
 * Places one window as the step says, notes the window's former place in `undo`, and writes app_name, bounds and exact.
 */
enum fm_code sy_place_window(const struct sy_world *world, const struct sy_plan *plan, const struct sy_step *step,
                             const char *id, struct sy_undo *undo, struct fm_json_writer *w, struct fm_error *error);

/*
 * The snapshot at the beginning of the step. For the plan's first step it is the plan's snapshot; for later steps a new
 * snapshot is made in `fresh`. `fresh` is zeroed by the caller, who frees it in both cases.
 */
enum fm_code sy_snapshot_now(const struct sy_world *world, const struct sy_plan *plan, const struct sy_step *step,
                             struct sy_snapshot *fresh, const struct sy_snapshot **snapshot, struct fm_error *error);

/* Asks the pages of the snapshot's tabs what they are about. `summaries` (zeroed, one for each tab) gets texts that the
 * caller frees; NULL if a page gives no text in time. */
enum fm_code sy_take_summaries(const struct sy_world *world, const struct sy_snapshot *snapshot, char **summaries,
                               struct fm_error *error);

/* Keeps the record, and writes its handle as "undo". Does nothing if no window was moved. */
void sy_write_undo(struct sy_world *world, struct sy_undo *undo, struct fm_json_writer *w);

/* Returns FM_UNAVAILABLE, with an error that says that this desktop can't do `what`. */
enum fm_code sy_lacks(const struct sy_world *world, const char *what, struct fm_error *error);

#endif
