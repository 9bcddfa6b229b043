/* The table of commands: a row each. docs/system.md has the contract. */
#ifndef SY_COMMANDS_H
#define SY_COMMANDS_H

#include "commands/plan.h"

enum sy_kind {
    SY_STRING,  /* not empty */
    SY_WORD,    /* one of `words` */
    SY_INDEX,   /* a positive integer */
    SY_INDICES, /* an array of positive integers, not empty, without duplicates */
    SY_BOOL,
    SY_BOUNDS, /* [left, top, right, bottom] */
};

struct sy_param {
    const char *name; /* NULL ends the list */
    enum sy_kind kind;
    bool required;
    const char *const *words; /* NULL-terminated */
    const char *about;        /* for models */
};

/* Finds the things that the step works on, in the plan's snapshot. The types of the parameters were checked before. */
typedef enum fm_code sy_check(struct sy_world *world, struct sy_plan *plan, struct sy_step *step,
                              struct fm_error *error);

/* Runs the step, and writes members of the result. */
typedef enum fm_code sy_run(struct sy_world *world, const struct sy_plan *plan, const struct sy_step *step,
                            struct fm_json_writer *w, struct fm_error *error);

struct sy_command {
    const char *type;
    const char *about; /* for models */
    const struct sy_param *params;
    bool reads;      /* the command changes nothing */
    bool destroys;   /* the command closes something */
    bool moves;      /* the command places windows, which `undo` can take back */
    sy_check *check; /* NULL: there is nothing to find */
    sy_run *run;
};

extern const struct sy_command sy_commands[];
extern const size_t sy_command_count;

/* The command's row; NULL: there is no such command. */
const struct sy_command *sy_find_command(const char *type);

/*
 * Checks the parameters of a command. Its errors have the reason unknown_param, missing_param, invalid_type,
 * empty_string, empty_list, duplicate_index, invalid_index, invalid_bounds or unknown_monitor. A parameter that is null
 * counts as absent. `prefix` stands before the parameter's name in the error. Pure.
 */
FM_MUST_USE enum fm_code sy_check_params(const struct sy_command *command, struct json_object *args, const char *prefix,
                                         struct fm_error *error);

/* ---- the rows' functions, in the other files of commands/ ---- */

sy_check sy_check_focus_app, sy_check_place_app, sy_check_close_app;
sy_run sy_run_list_apps, sy_run_focus_app, sy_run_place_app, sy_run_close_app;
sy_check sy_check_list_tabs, sy_check_switch_tab, sy_check_open_url, sy_check_close_tab;
sy_run sy_run_list_tabs, sy_run_switch_tab, sy_run_open_url, sy_run_close_tab;
sy_check sy_check_activate_preset, sy_check_query, sy_check_undo;
sy_run sy_run_activate_preset, sy_run_query, sy_run_undo;

#endif
