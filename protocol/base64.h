/* Base64 (RFC 4648, the standard alphabet, with padding, nothing else between). Pure. */
#ifndef FM_PROTOCOL_BASE64_H
#define FM_PROTOCOL_BASE64_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>

/* Three bytes, or at the end of a text one or two, as four digits. */
void fm_base64_write_group(const unsigned char *bytes, size_t len, char group[4]);

/* The `len` (1 to 3) bytes that four digits stand for. False when they are no such group. */
FM_MUST_USE bool fm_base64_read_group(const char group[4], size_t len, unsigned char *bytes);

/* Bytes that a text of `len` digits stands for; 0 where there can be no such text, or it is empty. */
size_t fm_base64_decoded_size(const char *text, size_t len);

/* Reads it; `bytes` has room for fm_base64_decoded_size. False when `text` is not base64, or stands for nothing. */
FM_MUST_USE bool fm_base64_read(const char *text, size_t len, unsigned char *bytes);

/* The same without a place for the bytes. */
FM_MUST_USE bool fm_base64_valid(const char *text, size_t len);

#endif
