/*
 * From a request to actions: commands are checked on one snapshot, all before the first one runs, and then run in order
 * up to the first failure. What a step works on was found while it was checked: ids, never names or indices.
 */
#ifndef SY_PLAN_H
#define SY_PLAN_H

#include "base/buf.h"
#include "commands/query.h"
#include "commands/undo.h"
#include "desktop/snapshot.h"
#include "desktop/told.h"

#define SY_STEPS_MAX 20 /* commands of a request */

struct json_object;
struct fm_json_writer;

/*
 * What lasts from one request to the next, of one desktop and one client. Zeroed but for `desktop`, it is ready; free
 * it by sy_world_free. Paths and functions are borrowed.
 */
struct sy_world {
    struct sy_desktop desktop;
    struct sy_told told;
    const char *presets; /* path of presets.json; NULL: there are none */
    struct sy_undos undos;
    struct sy_talks talks;
    const struct sy_model *model;                     /* answers what code can't; NULL: there is none */
    size_t (*recent_files)(char **paths, size_t max); /* sy_recent_files, for prompts; NULL: they are not told */
    const char *home; /* where git folders are looked for, for prompts; NULL: they are not told */
};

struct sy_step {
    const struct sy_command *command;
    struct json_object *args; /* borrowed of the request */
    char param[72];           /* where it stands in the request: "commands[2]."; "" if it is alone */
    const struct sy_app *app; /* of the snapshot; NULL: no entry of the application is known */
    char *name;               /* of the application */
    char (*ids)[SY_ID_MAX];   /* the windows or tabs that it is about; owned */
    size_t id_count;
    const struct sy_monitor *monitor; /* of the snapshot */
    struct sy_rect bounds;
    bool has_bounds;
    char *url;
    struct sy_step *parts; /* of a preset: windows, then URLs; owned */
    size_t part_count;
    struct json_object *owned; /* what `args` of the parts are borrowed of */
};

struct sy_plan {
    struct sy_snapshot snapshot;
    struct sy_step steps[SY_STEPS_MAX];
    size_t count;
    char *question;           /* the request is one: nothing is to run; owned */
    struct fm_buf candidates; /* of a refusal: a JSON array of what may have been meant; empty: none */
};

/*
 * Checks a whole request, {commands, needs_clarification, clarification_reason?} (borrowed as long as the plan lives),
 * or one command with its parameters (`args` NULL: none). On failure the error names the parameter, and
 * `plan->candidates` may tell more. Free the plan by sy_plan_free in any case.
 */
FM_MUST_USE enum fm_code sy_plan_envelope(struct sy_world *world, struct json_object *envelope, struct sy_plan *plan,
                                          struct fm_error *error);
FM_MUST_USE enum fm_code sy_plan_command(struct sy_world *world, const char *type, struct json_object *args,
                                         struct sy_plan *plan, struct fm_error *error);

/* Frees what was kept; the desktop stays the caller's. */
void sy_world_free(struct sy_world *world);

/* Told of each step as it begins. NULL: nobody asks. */
typedef void sy_progress(void *context, const struct sy_plan *plan, size_t step);

/*
 * Runs the plan and writes what became of it: {"ok": true, "results": [one a command]}; of a single command its result
 * alone, as results of one are. On failure the results of the steps before it are there, and the error is that of the
 * step. Waits as long as the actions take, in `wait` of the backend.
 */
FM_MUST_USE enum fm_code sy_plan_run(struct sy_world *world, struct sy_plan *plan, sy_progress *progress, void *context,
                                     struct fm_json_writer *w, struct fm_error *error);

/* What the plan would do, in the same form, without doing it. */
FM_MUST_USE enum fm_code sy_plan_tell(const struct sy_plan *plan, struct fm_json_writer *w, struct fm_error *error);

/* Frees what the plan owns, also that of one which was refused. */
void sy_plan_free(struct sy_plan *plan);

#endif
