/* The options that sub-commands share, and the sub-commands. */
#ifndef SY_CLI_OPTIONS_H
#define SY_CLI_OPTIONS_H

#include "commands/plan.h"

struct json_object;

/* Zeroed, they are the defaults. */
struct sy_options {
    bool read_only;
    const char *allow;        /* names with commas between them; NULL: all */
    char presets[4096];       /* path, once a desktop was opened; "": not known */
    struct json_object *fake; /* --desktop: a fake one, owned; NULL: the real one */
};

/*
 * Reads the option at argv[*at], and moves `*at` behind it. False: it is none of these, or it is wrong, which was told
 * on stderr then (`*told`).
 */
FM_MUST_USE bool sy_option_read(struct sy_options *options, int argc, char **argv, int *at, bool *told);

/* Reads all of argv from argv[1] on; false: that is wrong, and was told on stderr. */
FM_MUST_USE bool sy_options_read(struct sy_options *options, int argc, char **argv);
void sy_options_free(struct sy_options *options);

/*
 * Opens the desktop that the options name; it is the caller's. Its `wait` fails with FM_CANCELLED while `cancel_fd` is
 * readable (-1: none). `context` is the struct sy_options.
 */
FM_MUST_USE enum fm_code sy_desktop_open(void *context, int cancel_fd, struct sy_desktop *desktop,
                                         struct fm_error *error);

/* Gives the world the user's presets, recent files and folders. `context` is the struct sy_options. */
void sy_world_furnish(void *context, struct sy_world *world);

/* Sub-commands: argv[0] is their name. They return an exit status. */
int sy_main_mcp(int argc, char **argv);
int sy_main_doctor(int argc, char **argv);
int sy_main_preset(int argc, char **argv);
int sy_main_do(int argc, char **argv);
int sy_main_chrome(int argc, char **argv);

#endif
