/* CRC-32 by a table of 16 entries: half a byte at a time. */
#include "base/crc32.h"

uint32_t fm_crc32(uint32_t crc, const void *data, size_t len) {
    /* the effect of each half byte on the remainder: 16 entries, made by shifting the polynomial */
    static const uint32_t steps[16] = {
        0x00000000, 0x1DB71064, 0x3B6E20C8, 0x26D930AC, 0x76DC4190, 0x6B6B51F4, 0x4DB26158, 0x5005713C,
        0xEDB88320, 0xF00F9344, 0xD6D6A3E8, 0xCB61B38C, 0x9B64C2B0, 0x86D3D2D4, 0xA00AE278, 0xBDBDF21C,
    };
    const unsigned char *bytes = data;
    crc = ~crc;
    for (size_t i = 0; i < len; i++) {
        crc ^= bytes[i];
        crc = steps[crc & 15] ^ (crc >> 4);
        crc = steps[crc & 15] ^ (crc >> 4);
    }
    return ~crc;
}
