/* Base64: RFC 4648, the standard alphabet, with padding, without line breaks. Pure. */
#ifndef FM_PROTOCOL_BASE64_H
#define FM_PROTOCOL_BASE64_H

#include "base/buf.h"

/* Appends the bytes as digits. The buffer keeps a failure. */
void fm_base64_append(struct fm_buf *out, const void *bytes, size_t len);

/* Reads four digits into the `len` (1 to 3) bytes that they stand for. False when the digits are not valid. */
FM_MUST_USE bool fm_base64_read_group(const char group[4], size_t len, unsigned char *bytes);

/* How many bytes a text of `len` digits stands for; 0 when it is empty or can't be base64. */
size_t fm_base64_decoded_size(const char *text, size_t len);

/* Decodes `text`; `bytes` has room for fm_base64_decoded_size. False when it is empty or not base64. */
FM_MUST_USE bool fm_base64_read(const char *text, size_t len, unsigned char *bytes);

/* Checks the text like fm_base64_read, without writing the bytes. */
FM_MUST_USE bool fm_base64_valid(const char *text, size_t len);

#endif
