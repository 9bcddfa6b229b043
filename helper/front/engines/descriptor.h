/*
 * What an engine reports of itself: which models it has, and what it can do. The front knows this of no engine by
 * itself. The report is in the file beside the engine's program, and again in the reply of the running engine
 * (protocol/ENGINE.md, Description).
 */
#ifndef FM_FRONT_ENGINES_DESCRIPTOR_H
#define FM_FRONT_ENGINES_DESCRIPTOR_H

#include "base/error.h"
#include "protocol/engine.h"

#include <stdbool.h>

struct json_object;

struct fm_descriptor {
    bool has_features; /* the engine has reported its features */
    bool reads_files;  /* the engine's models are GGUF files; otherwise it has one model, with the engine's name */
    bool lists_models; /* the engine has several models, which it lists (availability.h) */
    bool remote;       /* the engine sends its jobs to another machine */
    bool any_order;    /* the parts of its answers come in any order */
    bool needs_config; /* the engine can't do without a configuration (config.h) */
    unsigned features; /* enum fm_feature */
    bool elsewhere;    /* the engine can't run on this system */
};

/* Fills `descriptor` from the members of an object (borrowed). Unknown members are skipped. */
void fm_descriptor_take(struct fm_descriptor *descriptor, struct json_object *object);

/* An installed engine: its program fm-engine-NAME, and the content of its description file. */
struct fm_engine_files {
    const char *name;                /* the NAME */
    const char *dir;                 /* the folder of the program */
    bool beside;                     /* other engines are configured too: --model is for it if it reads files */
    struct fm_descriptor descriptor; /* content of the file */
    struct fm_error fault;           /* FM_UNAVAILABLE: why the file can't be used; FM_OK: it can, or there is none */
};

/*
 * Fills `files` for the engine `name` (kept, as is `dir`) from the file fm-engine-NAME.json. Without a usable file, the
 * descriptor stays empty. The file is in `dir`; in an app of macOS, whose programs are in Contents/MacOS, it is in
 * Contents/Resources. False when out of memory. Reads a small file, and never waits; any thread.
 */
FM_MUST_USE bool fm_engine_files_read(struct fm_engine_files *files, const char *dir, const char *name);

#endif
