/*
 * From a request to actions. First all commands are checked on one snapshot; then they run in order, up to the first
 * failure. The check finds the ids of the things that a step works on: names and indices are not looked up again later.
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
 * The state of one desktop and one client that is kept from one request to the next. To make it, set `desktop` and zero
 * the rest; free it by sy_world_free. Paths and functions are borrowed.
 */
struct sy_world {
    struct sy_desktop desktop;
    struct sy_told told;
    const char *presets; /* path of presets.json; NULL: there are none */
    struct sy_undos undos;
    struct sy_talks talks;
    const struct sy_model *model;                     /* answers questions that code can't answer; NULL: no model */
    size_t (*recent_files)(char **paths, size_t max); /* sy_recent_files, for prompts; NULL: prompts have none */
    const char *home; /* where to look for git folders, for prompts; NULL: prompts have none */
};

struct sy_step {
    const struct sy_command *command;
    struct json_object *args; /* borrowed from the request */
    char param[72];           /* the step's place in the request: "commands[2]."; "" for a single command */
    const struct sy_app *app; /* of the snapshot; NULL: the application has no known .desktop entry */
    char *name;               /* of the application */
    char (*ids)[SY_ID_MAX];   /* the windows or tabs to work on; owned */
    size_t id_count;
    const struct sy_monitor *monitor; /* of the snapshot */
    struct sy_rect bounds;
    bool has_bounds;
    char *url;
    struct sy_step *parts; /* the parts of a preset: windows, then URLs; owned */
    size_t part_count;
    struct json_object *owned; /* JSON from which the `args` of `parts` are borrowed */
};

struct sy_plan {
    struct sy_snapshot snapshot;
    struct sy_step steps[SY_STEPS_MAX];
    size_t count;
    char *question;           /* set if the request is a question: then nothing runs; owned */
    struct fm_buf candidates; /* after a refusal: a JSON array of possible names; empty: none */
};

/*
 * Checks a whole request, {commands, needs_clarification, clarification_reason?} (borrowed as long as the plan lives),
 * or one command with its parameters (`args` NULL: none). On failure the error names the parameter, and
 * `plan->candidates` may have names to choose from. Free the plan by sy_plan_free, after a failure too.
 */
FM_MUST_USE enum fm_code sy_plan_envelope(struct sy_world *world, struct json_object *envelope, struct sy_plan *plan,
                                          struct fm_error *error);
FM_MUST_USE enum fm_code sy_plan_command(struct sy_world *world, const char *type, struct json_object *args,
                                         struct sy_plan *plan, struct fm_error *error);

/* Frees all members except the desktop, which the caller still owns. */
void sy_world_free(struct sy_world *world);

/* Called at the beginning of each step. */
typedef void sy_progress(void *context, const struct sy_plan *plan, size_t step);

/*
 * Runs the plan and writes {"ok": true, "results": [one for each command]}, also for a single command. On failure it
 * writes the results up to the failed step, and the error is the failed step's. Waits as long as the actions take, in
 * `wait` of the backend. `progress` may be NULL.
 */
FM_MUST_USE enum fm_code sy_plan_run(struct sy_world *world, struct sy_plan *plan, sy_progress *progress, void *context,
                                     struct fm_json_writer *w, struct fm_error *error);

/* Writes what the plan would do, without doing it: {"ok": true, "dry_run": true, "would": [one for each command]}. */
FM_MUST_USE enum fm_code sy_plan_tell(const struct sy_plan *plan, struct fm_json_writer *w, struct fm_error *error);

/* Frees what the plan owns, also if it was refused. */
void sy_plan_free(struct sy_plan *plan);

#endif
