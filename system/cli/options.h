/* The options that sub-commands share, and the sub-commands. */
#ifndef SY_CLI_OPTIONS_H
#define SY_CLI_OPTIONS_H

#include "commands/plan.h"
#include "match/model.h"

struct json_object;

/* Zeroed, they are the defaults. */
struct sy_options {
    bool read_only;
    const char *allow; /* names with commas between them; NULL: all */
    bool no_model;
    const char *proxy;            /* path of fm-proxy; NULL: the one beside this program, if there is one */
    const char *embedding_models; /* of `do`: folder of a model that embeds; NULL: there is none */
    const char *chrome_socket;    /* of `fm-system chrome --socket`; NULL: where it and other browsers are by default */
    struct sy_proxy *helper;      /* of the world that was furnished; NULL: it has no model */
    struct sy_model model;        /* the same as query has it */
    char presets[4096];           /* path, once a desktop was opened; "": not known */
    struct json_object *fake;     /* --desktop: a fake one, owned; NULL: the real one */
};

/*
 * Reads the option at argv[*at], and moves `*at` past it. False: it is not one of these, or it is wrong, which was told
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

/* Whether the file that --proxy names is a program. There must be that option. */
bool sy_proxy_can_start(const struct sy_options *options);

/* The fm-proxy to ask; NULL: there is none, which is no fault. It starts with the first question. `cancel_fd` as in
 * sy_proxy_options. */
struct sy_proxy *sy_options_proxy(const struct sy_options *options, int cancel_fd);

/* Gives the world the user's presets, recent files, folders, and a model. `context` is the struct sy_options. */
void sy_world_furnish(void *context, int cancel_fd, struct sy_world *world);

/* Ends the model. On the thread that furnished. */
void sy_world_dismiss(void *context);

/* Sub-commands: argv[0] is their name. They return an exit status. */
int sy_main_mcp(int argc, char **argv);
int sy_main_doctor(int argc, char **argv);
int sy_main_preset(int argc, char **argv);
int sy_main_do(int argc, char **argv);
int sy_main_chrome(int argc, char **argv);

#endif
