/*
 * Keys: text that must not be seen anywhere but in the header that carries it. Whoever holds one wipes it.
 * Pure but for the reading of files and of the environment, before the first thread.
 */
#ifndef FM_ENGINE_REMOTE_KEY_H
#define FM_ENGINE_REMOTE_KEY_H

#include "base/buf.h"
#include "base/error.h"

#define FM_KEY_MAX     8192u /* bytes of a key, as of the file that holds it */
#define FM_KEY_PART    8u    /* a text that has so many bytes of a secret in a row has them masked */
#define FM_SECRET_MIN  4u    /* bytes of a secret; what is shorter would be masked everywhere */
#define FM_SECRETS_MAX 256u

/* Overwrites memory, also where it is freed afterwards. Never blocks. */
void fm_wipe(void *memory, size_t len);

/*
 * The key in the file `path`, without white space around it; the caller frees `*key` by fm_secret_free; it is
 * NULL on failure. FM_UNAVAILABLE, with `error->reason` "NOT_CONFIGURED": it can't be read, is empty, too long or no
 * key. May block on the disk.
 */
FM_MUST_USE enum fm_code fm_key_read_file(const char *path, char **key, struct fm_error *error);

/* The same of the environment's variable `name`, which is overwritten and taken out. */
FM_MUST_USE enum fm_code fm_key_read_environment(const char *name, char **key, struct fm_error *error);

/* What has to be masked: borrowed texts. One that is too short, or one too many, is left out. */
struct fm_secrets {
    const char *texts[FM_SECRETS_MAX];
    size_t count;
};

/* Never blocks. */
void fm_secrets_add(struct fm_secrets *secrets, const char *text);

/*
 * Overwrites, in `text`, all that could be part of a secret by asterisks: FM_KEY_PART or more bytes in a row that a
 * secret has in a row too, or all of a shorter one; percent-encoded or not, in both. Pure.
 */
void fm_secrets_mask(const struct fm_secrets *secrets, char *text, size_t len);

#endif
