/*
 * The environment of an engine's process: a few variables of ours, where its GPU's library is, and its configuration
 * (ENGINE.md, Life, GPU and Configuration).
 */
#ifndef FM_FRONT_ENGINES_ENVIRONMENT_H
#define FM_FRONT_ENGINES_ENVIRONMENT_H

#include "base/compiler.h"
#include "front/engines/config.h"

#include <stdbool.h>

struct fm_environment {
    char **entries;                    /* NULL at its end */
    char *own[4 + FM_CONFIG_KEYS_MAX]; /* the entries that are made here: secrets */
    size_t own_count;
};

/*
 * `gpu` and `gpu_dir` are those of struct fm_options; `gpu_dir` NULL: the engine gets no GPU. `config` is that of the
 * engine; without a text it has none. False when out of memory; free `env` then too. Entries of our environment are
 * borrowed: they must not change meanwhile. May look at files.
 */
FM_MUST_USE bool fm_environment_make(struct fm_environment *env, const char *gpu, const char *gpu_dir,
                                     const struct fm_config *config);
void fm_environment_free(struct fm_environment *env);

#endif
