/*
 * The configuration of an engine (ENGINE.md, Configuration): its text, and the keys that it names. It is read once,
 * into memory that is left out of core dumps. The variables that the text or the keys came from are removed from our
 * environment.
 */
#ifndef FM_FRONT_ENGINES_CONFIG_H
#define FM_FRONT_ENGINES_CONFIG_H

#include "base/error.h"

#include <limits.h>
#include <stddef.h>

#define FM_CONFIG_MAX      32000u /* bytes: a variable on Windows has 32,767 characters at most */
#define FM_CONFIG_KEYS_MAX 16u    /* most variables that the configuration may name */

struct fm_config_key {
    char *name;  /* the variable's name; owned */
    char *value; /* the key, a secret (base/secret.h); owned */
};

struct fm_config {
    char *text;         /* the text, a secret; NULL: there is none, or it can't be used */
    char dir[PATH_MAX]; /* the folder in which its relative paths begin */
    struct fm_config_key keys[FM_CONFIG_KEYS_MAX];
    size_t key_count;
    struct fm_error fault; /* why it can't be used: FM_UNAVAILABLE, NOT_CONFIGURED; FM_OK: it can, or there is none */
};

/*
 * Reads the configuration that `source` names: the path of a file, or "env:NAME" for the variable NAME. NULL: there is
 * no configuration. Call it before the first thread, because it removes the variables that the configuration names from
 * the environment. False when out of memory.
 */
FM_MUST_USE bool fm_config_read(struct fm_config *config, const char *source);

/* Overwrites and frees the configuration. */
void fm_config_free(struct fm_config *config);

#endif
