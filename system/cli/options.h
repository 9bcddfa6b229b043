/* The options that sub-commands share, and the sub-commands. */
#ifndef SY_CLI_OPTIONS_H
#define SY_CLI_OPTIONS_H

#include "commands/plan.h"
#include "match/model.h"

struct json_object;

/* Zeroed, they are the defaults. */
struct sy_options {
    bool read_only;
    const char *allow; /* names separated by commas; NULL: all */
    bool no_model;
    const char *proxy;            /* path of fm-proxy; NULL: the one beside this program, if there is one */
    const char *embedding_models; /* for `do`: the folder of a model that embeds; NULL: none */
    const char *chrome_socket;    /* as for `fm-system chrome --socket`; NULL: the default places of browsers */
    struct sy_proxy *helper;      /* the helper that sy_world_furnish made; NULL: none */
    struct sy_model model;        /* that helper as a model for query */
    char presets[4096];           /* path, set when the desktop is opened; "": not known */
    struct json_object *fake;     /* --desktop: a fake one, owned; NULL: the real one */
};

/*
 * Reads the option at argv[*at], and moves `*at` past it. False: the option is not one of these, or is wrong. `*told`
 * is true if it is wrong; stderr then says why.
 */
FM_MUST_USE bool sy_option_read(struct sy_options *options, int argc, char **argv, int *at, bool *told);

/* Reads all of argv from argv[1] on. False: an option is wrong, and stderr says why. */
FM_MUST_USE bool sy_options_read(struct sy_options *options, int argc, char **argv);
void sy_options_free(struct sy_options *options);

/*
 * Opens the desktop that the options name. The caller frees the desktop. Its `wait` fails with FM_CANCELLED while
 * `cancel_fd` is readable (-1: none). `context` is the struct sy_options.
 */
FM_MUST_USE enum fm_code sy_desktop_open(void *context, int cancel_fd, struct sy_desktop *desktop,
                                         struct fm_error *error);

/* Whether the file that --proxy names is a program. Call it only if the option was given. */
bool sy_proxy_can_start(const struct sy_options *options);

/* Makes the client of the fm-proxy to ask. The first question starts fm-proxy. NULL: there is no fm-proxy, which is
 * not an error. `cancel_fd` is as in sy_proxy_options. */
struct sy_proxy *sy_options_proxy(const struct sy_options *options, int cancel_fd);

/* Gives the world the user's presets, recent files, folders, and a model. `context` is the struct sy_options. */
void sy_world_furnish(void *context, int cancel_fd, struct sy_world *world);

/* Ends the model. Call it on the same thread as sy_world_furnish. */
void sy_world_dismiss(void *context);

/* Sub-commands: argv[0] is the sub-command's name. They return an exit status. */
int sy_main_mcp(int argc, char **argv);
int sy_main_doctor(int argc, char **argv);
int sy_main_preset(int argc, char **argv);
int sy_main_do(int argc, char **argv);
int sy_main_chrome(int argc, char **argv);

#endif
