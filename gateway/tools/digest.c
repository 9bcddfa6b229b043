/* SHA-256 by libcrypto. */
#include "tools/digest.h"

#include <openssl/sha.h>

void gw_digest(const void *data, size_t len, char digits[GW_DIGEST_SIZE]) {
    static const char hex[] = "0123456789abcdef";
    unsigned char bytes[SHA256_DIGEST_LENGTH];
    SHA256(data, len, bytes);
    for (size_t i = 0; i < sizeof bytes; i++) {
        digits[2 * i] = hex[bytes[i] >> 4];
        digits[2 * i + 1] = hex[bytes[i] & 15];
    }
    digits[2 * sizeof bytes] = '\0';
}
