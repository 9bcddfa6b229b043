/* FNV-1a, a byte at a time. */
#include "base/hash.h"

#define PRIME UINT64_C(1099511628211)

uint64_t fm_hash(uint64_t hash, const void *data, size_t len) {
    const unsigned char *bytes = data;
    for (size_t i = 0; i < len; i++) {
        hash = (hash ^ bytes[i]) * PRIME;
    }
    return hash;
}
