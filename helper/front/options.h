/* The command line and the environment; README.md, "Options". */
#ifndef FM_FRONT_OPTIONS_H
#define FM_FRONT_OPTIONS_H

#include "base/log.h"

#include <limits.h>
#include <stdint.h>

enum fm_run_mode {
    FM_RUN_SERVE,    /* JSON-RPC on stdio */
    FM_RUN_SESSIONS, /* session mode: lines of JSON on stdio (protocol/SESSIONS.md) */
    FM_RUN_EXPLAIN,  /* started by hand on a terminal: tell what this is */
    FM_RUN_HELP,
    FM_RUN_VERSION,
};

/* Of session mode alone. */
struct fm_session_options {
    int64_t idle_ms;           /* a session without activity for so long is closed */
    int64_t check_ms;          /* how often that is looked at */
    int64_t eof_wait_ms;       /* how long messages go on behind the end of the input */
    int64_t max_sessions;      /* open at once */
    int64_t max_turns;         /* of a session */
    int64_t max_bytes;         /* of a session: instructions and turns, as JSON */
    int64_t max_output_tokens; /* of an answer */
    int64_t timeout_ms;        /* of a message, all included */
    double temperature;
    const char *truncation; /* "auto" or "disabled", as responses.create has it */
    const char *log_prefix;
    bool log_user_text;
};

struct fm_options {
    enum fm_run_mode mode;
    const char *engine;        /* "llama" */
    const char *model;         /* path or id of the default model; NULL: the first in models_dir */
    const char *mmproj;        /* the file with which the default model sees images; NULL: it does not */
    char engine_dir[PATH_MAX]; /* where fm-engine-NAME lies */
    char models_dir[PATH_MAX]; /* where models are looked for */
    const char *store_file;    /* where responses are stored; NULL: in memory */
    int64_t store_bytes;       /* how much of them; 0: nothing is stored */
    bool strict_parameters;    /* a request's unknown parameters are refused; else they are ignored and reported */
    enum fm_log_level log_level;
    struct fm_session_options sessions; /* FM_RUN_SESSIONS */
};

/*
 * Reads the arguments, then FM_PROXY_... for what they leave out, then the defaults. False with one line about the
 * problem on stderr when the command line is wrong. Strings point into argv and the environment. Sets the environment
 * that engines get, so call it before the first thread.
 */
FM_MUST_USE bool fm_options_read(struct fm_options *options, int argc, char *argv[]);

/* The usage text. */
extern const char fm_options_usage[];

#endif
