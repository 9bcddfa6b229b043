/*
 * The environment of an engine's process: a few of our variables, the folder of its GPU's library, and its
 * configuration (ENGINE.md, Life, GPU and Configuration).
 */
#ifndef FM_FRONT_ENGINES_ENVIRONMENT_H
#define FM_FRONT_ENGINES_ENVIRONMENT_H

#include "base/compiler.h"
#include "front/engines/config.h"

#include <stdbool.h>

struct fm_environment {
    char **entries;                    /* ends with NULL */
    char *own[4 + FM_CONFIG_KEYS_MAX]; /* the entries that are made here; they are secrets */
    size_t own_count;
};

/*
 * Fills `env`. `gpu` and `gpu_dir` are those of struct fm_options; `gpu_dir` NULL: the engine gets no GPU. `config` is
 * the engine's; without a text it counts as none. False when out of memory; free `env` in that case too. Entries of our
 * environment are borrowed, so they must not change while `env` is used. May look at files.
 */
FM_MUST_USE bool fm_environment_make(struct fm_environment *env, const char *gpu, const char *gpu_dir,
                                     const struct fm_config *config);
void fm_environment_free(struct fm_environment *env);

#endif
