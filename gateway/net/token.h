/* The file of the token. May block on the disk; main thread. */
#ifndef GW_NET_TOKEN_H
#define GW_NET_TOKEN_H

#include "base/error.h"

#define GW_TOKEN_DIGITS 64 /* digits of a token that is made here: 256 random bits */

/*
 * Reads the token from the file `path`; `*token` is memory of base/secret.h, which the caller frees. With `make`, a
 * missing file is created with a new token. FM_UNAVAILABLE and FM_INVALID_REQUEST name the file.
 */
FM_MUST_USE enum fm_code gw_token_read(const char *path, bool make, char **token, struct fm_error *error);

/* Replaces the file by one with a new token. */
FM_MUST_USE enum fm_code gw_token_renew(const char *path, struct fm_error *error);

#endif
