/* The command line and the environment: one table row for each option (options.c). docs/options.md explains them. */
#ifndef FM_FRONT_OPTIONS_H
#define FM_FRONT_OPTIONS_H

#include "base/log.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>

/* A conversation is sent in one frame of at most FM_JSON_VALUES_MAX values, and each turn has six of them. */
#define FM_SESSION_TURNS_MAX 10000

#define FM_GPU_LAYERS_MAX 100000

enum fm_run_mode {
    FM_RUN_SERVE,    /* JSON-RPC on stdio */
    FM_RUN_SESSIONS, /* session mode: lines of JSON on stdio (protocol/SESSIONS.md) */
    FM_RUN_BENCH,    /* measures the model, and prints the figures */
    FM_RUN_EXPLAIN,  /* started by hand on a terminal: prints what this program is */
    FM_RUN_HELP,
    FM_RUN_VERSION,
    FM_RUN_LIST, /* the options as JSON, for programs that start fm-proxy */
};

/* Only for session mode. */
struct fm_session_options {
    int64_t idle_ms;           /* a session without activity for this long is closed */
    int64_t check_ms;          /* how often that is checked */
    int64_t eof_wait_ms;       /* how long messages are still generated after the end of the input */
    int64_t max_sessions;      /* open at once */
    int64_t max_turns;         /* most turns of a session */
    int64_t max_bytes;         /* bytes of a session's instructions and turns as JSON */
    int64_t max_output_tokens; /* of an answer */
    int64_t timeout_ms;        /* time limit of a message, including everything */
    double temperature;
    const char *truncation; /* "auto" or "disabled", as responses.create has it */
    const char *log_prefix;
    bool log_user_text;
};

#define FM_OPTIONS_ENGINES_MAX 8
#define FM_OPTIONS_ORDER_MAX   8  /* engines of --engine */
#define FM_ENGINE_NAME_MAX     32 /* bytes */

struct fm_options {
    enum fm_run_mode mode;
    bool stdio;                /* serve, also when stdin is a terminal */
    const char *engine;        /* NAME,... for fm-engine-NAME, or "auto"; see fm_options_engine */
    const char *remote;        /* the configuration of an engine that takes one: a file, or env:NAME; NULL: none */
    const char *model;         /* path or id of the default model; NULL: the first in models_dir */
    const char *aliases;       /* other names of models (front/engines/aliases.h); NULL: none */
    const char *mmproj;        /* the projector of the default model; NULL: one that is found, if any */
    const char *draft_model;   /* the model that guesses the default model's tokens; NULL: none */
    const char *chat_template; /* the file of a chat template for every model; NULL: the model's own */
    char engine_dir[PATH_MAX]; /* the folder of the programs fm-engine-NAME */
    char models_dir[PATH_MAX]; /* the folder of the models */
    const char *gpu;           /* "auto", "off", or a number of layers */
    const char *gpu_dir;       /* the folder of the GPU's library; NULL or "": none */
    const char *store_file;    /* where responses are stored; NULL: in memory */
    int64_t idle_unload_ms;    /* an engine without a job for this long is ended; 0: never */
    int64_t max_engines;       /* at once */
    int64_t memory_budget;     /* bytes that their models may take together; 0: half of the machine's memory */
    const char *kv_cache_dir;  /* where engines' saved states are; NULL: the user's folder for caches */
    int64_t kv_cache_bytes;    /* bytes of saved states that are kept; 0: none */
    bool no_kv_cache_files;    /* no saved states are kept */
    int64_t store_bytes;       /* bytes of responses that are stored; 0: nothing is stored */
    bool strict_parameters;    /* a request's unknown parameters are refused; else they are ignored and reported */
    enum fm_log_level log_level;
    bool json;                          /* FM_RUN_BENCH: the figures as JSON */
    struct fm_session_options sessions; /* FM_RUN_SESSIONS */
};

/*
 * Reads the arguments, then FM_PROXY_... variables for options that are not given, then the defaults. False when
 * something is wrong, with one line about the problem on stderr. Strings point into argv, the environment and static
 * memory. Paths are absolute, except `model`, which may be an id.
 */
FM_MUST_USE bool fm_options_read(struct fm_options *options, int argc, char *argv[]);

/* An engine that requests may go to. */
struct fm_engine_choice {
    char name[FM_ENGINE_NAME_MAX + 1];
    const char *config; /* where the engine's configuration is; NULL: none */
    bool elsewhere;     /* it is known that the engine does not run on this system */
};

/* Writes the engine at `index`, in the order in which engines are tried. False: there are no more. Pure. */
bool fm_options_engine(const struct fm_options *options, size_t index, struct fm_engine_choice *choice);

/* Prints the text of --help. */
void fm_options_write_help(FILE *file);

/* Prints the JSON of --list-options: for each option with a variable, its name, its value's name and its variable. */
void fm_options_write_list(FILE *file);

#endif
