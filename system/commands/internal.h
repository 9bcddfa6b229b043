/* What the files of commands/ share. */
#ifndef SY_COMMANDS_INTERNAL_H
#define SY_COMMANDS_INTERNAL_H

#include "commands/table.h"
#include "protocol/json_writer.h"

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

/* The window with the id in a list of now; false in `*found`: there is none. */
enum fm_code sy_look_at_window(const struct sy_world *world, const char *id, bool *found, struct sy_window *window,
                               struct fm_error *error);

/* The key "bounds" with its value. */
void sy_write_bounds(const struct sy_rect *bounds, struct fm_json_writer *w);

/* `code` FM_OK, or what a backend that lacks something says: the deed can't be done here. */
enum fm_code sy_lacks(const struct sy_world *world, const char *what, struct fm_error *error);

#endif
