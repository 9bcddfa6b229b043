/* Bytes as hexadecimal digits. */
#ifndef FM_BASE_HEX_H
#define FM_BASE_HEX_H

#include <stddef.h>

/* Writes `len` bytes as 2 * `len` digits in lower case, and a NUL after them. Pure. */
void fm_hex(char *text, const unsigned char *bytes, size_t len);

#endif
