/* FNV-1a with 64 bits: different data get different hashes, unless somebody made them collide on purpose. Pure. */
#ifndef FM_BASE_HASH_H
#define FM_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define FM_HASH_START UINT64_C(14695981039346656037) /* the hash of no bytes: FNV's offset basis */

/*
 * The hash of all bytes so far and of `data`; `hash` is the result of the call before, FM_HASH_START in the first call.
 */
uint64_t fm_hash(uint64_t hash, const void *data, size_t len);

#endif
