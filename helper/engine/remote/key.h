/*
 * Keys: text that must only appear in the header that carries it. The owner of a key wipes it. The functions are pure,
 * except those that read files and the environment. Call those before the first thread.
 */
#ifndef FM_ENGINE_REMOTE_KEY_H
#define FM_ENGINE_REMOTE_KEY_H

#include "base/buf.h"
#include "base/error.h"

#define FM_KEY_MAX     8192u /* bytes of a key, and of the file that holds it */
#define FM_KEY_PART    8u    /* at least this many consecutive bytes of a secret are masked */
#define FM_SECRET_MIN  4u    /* least bytes of a secret; a shorter one would be masked everywhere */
#define FM_SECRETS_MAX 256u

/* Overwrites memory; the compiler does not remove the call, even before a free. Never blocks. */
void fm_wipe(void *memory, size_t len);

/*
 * Reads the key in the file `path`, without the white space around it. The caller frees `*key` by fm_secret_free; it is
 * NULL on failure. FM_UNAVAILABLE, with `error->reason` "NOT_CONFIGURED": the file can't be read, is empty or too long,
 * or holds no key. May block on the disk.
 */
FM_MUST_USE enum fm_code fm_key_read_file(const char *path, char **key, struct fm_error *error);

/*
 * Reads the key from the environment variable `name`, then overwrites and removes the variable. Result and failures:
 * see fm_key_read_file.
 */
FM_MUST_USE enum fm_code fm_key_read_environment(const char *name, char **key, struct fm_error *error);

/* Texts that must be masked, borrowed. A text that is too short, or that finds no room, is left out. */
struct fm_secrets {
    const char *texts[FM_SECRETS_MAX];
    size_t count;
};

/* Never blocks. */
void fm_secrets_add(struct fm_secrets *secrets, const char *text);

/*
 * Overwrites with asterisks everything in `text` that could be part of a secret: FM_KEY_PART or more consecutive bytes
 * of a secret, or all of a shorter secret. The text and the secret may both be percent-encoded. Pure.
 */
void fm_secrets_mask(const struct fm_secrets *secrets, char *text, size_t len);

#endif
