/* What the files of commands/ share. */
#ifndef SY_COMMANDS_INTERNAL_H
#define SY_COMMANDS_INTERNAL_H

#include "commands/table.h"
#include "protocol/json_writer.h"

#define SY_LAUNCH_MS 15000 /* until an application that was started has a window */

/* The parameter of the step; NULL: it has none of this name. */
struct json_object *sy_arg(const struct sy_step *step, const char *name);

/* A refusal that names the step's parameter. */
enum fm_code sy_refuse_step(const struct sy_step *step, struct fm_error *error, const char *reason, const char *param,
                            const char *fmt, ...) FM_PRINTF(5, 6);

/* Room for `count` ids in the step; NULL when out of memory. */
char (*sy_step_ids(struct sy_step *step, size_t count))[SY_ID_MAX];

/* Finds the application that the step names; with `runs` one that has windows. Fills name, app and ids (of its windows,
 * the topmost first). unknown_app or not_running, with candidates. */
enum fm_code sy_find_app(struct sy_plan *plan, struct sy_step *step, bool runs, struct fm_error *error);

/*
 * The topmost window of the step's application now; "" in `window`: it has none. The window that the step found is
 * preferred, if it is still there.
 */
enum fm_code sy_window_now(const struct sy_world *world, const struct sy_plan *plan, const struct sy_step *step,
                           char window[SY_ID_MAX], struct fm_error *error);

/* Whether a window of now is one of the step's application. */
bool sy_is_of_step(const struct sy_plan *plan, const struct sy_step *step, const struct sy_window *window);

/* The window with the id in a list of now; false in `*found`: there is none. */
enum fm_code sy_look_at_window(const struct sy_world *world, const char *id, bool *found, struct sy_window *window,
                               struct fm_error *error);

/* The key "bounds" with its value. */
void sy_write_bounds(const struct sy_rect *bounds, struct fm_json_writer *w);

/*
 * Sends the window to `wanted`, and waits until it is there, or has moved and stays where it is, or its time is up:
 * `reached` is where it is then; before the call it has the bounds of now. False in `*found`: there is no such window
 * any more.
 */
enum fm_code sy_move_window(const struct sy_world *world, const char *id, const struct sy_rect *wanted, bool *found,
                            struct sy_rect *reached, struct fm_error *error);

/* Places one window as the step says, notes in `undo` where it was, and writes app_name, bounds and exact. */
enum fm_code sy_place_window(const struct sy_world *world, const struct sy_plan *plan, const struct sy_step *step,
                             const char *id, struct sy_undo *undo, struct fm_json_writer *w, struct fm_error *error);

/*
 * What there is as the step begins: the plan's snapshot for the first step, a `fresh` one later, which the caller frees
 * (it is zeroed).
 */
enum fm_code sy_snapshot_now(const struct sy_world *world, const struct sy_plan *plan, const struct sy_step *step,
                             struct sy_snapshot *fresh, const struct sy_snapshot **snapshot, struct fm_error *error);

/* What the pages of the snapshot's tabs are about, in `summaries` (zeroed, one a tab, the caller's to free): NULL where
 * a page tells nothing in time. */
enum fm_code sy_take_summaries(const struct sy_world *world, const struct sy_snapshot *snapshot, char **summaries,
                               struct fm_error *error);

/* Keeps what was noted, and writes its handle as "undo"; nothing if nothing was moved. */
void sy_write_undo(struct sy_world *world, struct sy_undo *undo, struct fm_json_writer *w);

/* `code` FM_OK, or what a backend that lacks something says: the action can't be done here. */
enum fm_code sy_lacks(const struct sy_world *world, const char *what, struct fm_error *error);

#endif
