/*
 * Keys: text that must only appear in the header that carries it. The owner of a key wipes it. Pure, except the
 * functions that read files and the environment, which are called before the first thread.
 */
#ifndef FM_ENGINE_REMOTE_KEY_H
#define FM_ENGINE_REMOTE_KEY_H

#include "base/buf.h"
#include "base/error.h"

#define FM_KEY_MAX     8192u /* bytes of a key, as of the file that holds it */
#define FM_KEY_PART    8u    /* if a text has this many bytes of a secret in a row, they are masked */
#define FM_SECRET_MIN  4u    /* bytes of a secret; a shorter one would be masked everywhere */
#define FM_SECRETS_MAX 256u

/* Overwrites memory; the compiler does not remove the call, even before a free. Never blocks. */
void fm_wipe(void *memory, size_t len);

/*
 * The key in the file `path`, without white space around it; the caller frees `*key` by fm_secret_free; it is
 * NULL on failure. FM_UNAVAILABLE, with `error->reason` "NOT_CONFIGURED": it can't be read, is empty, too long or no
 * key. May block on the disk.
 */
FM_MUST_USE enum fm_code fm_key_read_file(const char *path, char **key, struct fm_error *error);

/*
 * Reads the key from the environment variable `name`, which is overwritten and removed. Result and failures: as
 * fm_key_read_file.
 */
FM_MUST_USE enum fm_code fm_key_read_environment(const char *name, char **key, struct fm_error *error);

/* Texts that must be masked, borrowed. A text that is too short, or one too many, is left out. */
struct fm_secrets {
    const char *texts[FM_SECRETS_MAX];
    size_t count;
};

/* Never blocks. */
void fm_secrets_add(struct fm_secrets *secrets, const char *text);

/*
 * Overwrites with asterisks everything in `text` that could be part of a secret: FM_KEY_PART or more consecutive bytes
 * of a secret, or all of a shorter one; percent-encoded or not, in both. Pure.
 */
void fm_secrets_mask(const struct fm_secrets *secrets, char *text, size_t len);

#endif
