/* SHA-256, as hexadecimal digits. */
#ifndef GW_TOOLS_DIGEST_H
#define GW_TOOLS_DIGEST_H

#include <stddef.h>

#define GW_DIGEST_SIZE 65 /* 64 digits and a NUL */

/* Writes the digest of `len` bytes. Pure; any thread. */
void gw_digest(const void *data, size_t len, char digits[GW_DIGEST_SIZE]);

#endif
