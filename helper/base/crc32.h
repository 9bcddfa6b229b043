/* CRC-32 as in IEEE 802.3, gzip and PNG (reflected, polynomial 0xEDB88320): it finds damage, not forgery. Pure. */
#ifndef FM_BASE_CRC32_H
#define FM_BASE_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* The CRC of all bytes so far and of `data`; `crc` is the result of the call before, 0 in the first call. */
uint32_t fm_crc32(uint32_t crc, const void *data, size_t len);

#endif
