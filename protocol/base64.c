/* Base64, strict: a text is read only if writing the bytes again would give the same text. */
#include "protocol/base64.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Writes three bytes (at the end of the data: one or two) as four digits. */
static void write_group(const unsigned char *bytes, size_t len, char group[4]) {
    unsigned all = (unsigned)bytes[0] << 16 | (len > 1 ? (unsigned)bytes[1] << 8 : 0) | (len > 2 ? bytes[2] : 0);
    group[0] = digits[all >> 18];
    group[1] = digits[all >> 12 & 63];
    group[2] = len > 1 ? digits[all >> 6 & 63] : '=';
    group[3] = len > 2 ? digits[all & 63] : '=';
}

void fm_base64_append(struct fm_buf *out, const void *bytes, size_t len) {
    const unsigned char *at = bytes;
    if (!fm_buf_reserve(out, (len + 2) / 3 * 4)) {
        return;
    }
    while (len > 0) {
        size_t taken = len < 3 ? len : 3;
        char group[4];
        write_group(at, taken, group);
        fm_buf_append(out, group, sizeof group);
        at += taken;
        len -= taken;
    }
}

/* The value of a digit; 64: not a digit. */
static unsigned digit_value(char c) {
    if (c >= 'A' && c <= 'Z') {
        return (unsigned)(c - 'A');
    }
    if (c >= 'a' && c <= 'z') {
        return (unsigned)(c - 'a') + 26;
    }
    if (c >= '0' && c <= '9') {
        return (unsigned)(c - '0') + 52;
    }
    return c == '+' ? 62 : c == '/' ? 63 : 64;
}

bool fm_base64_read_group(const char group[4], size_t len, unsigned char *bytes) {
    unsigned all = 0;
    for (size_t i = 0; i < 4; i++) {
        bool padding = i > len;
        unsigned value = padding ? 0 : digit_value(group[i]);
        if (value == 64 || (padding && group[i] != '=')) {
            return false;
        }
        all = all << 6 | value;
    }
    for (size_t i = 0; i < 3; i++) {
        unsigned char byte = (unsigned char)(all >> (16 - 8 * i));
        if (i < len) {
            bytes[i] = byte;
        } else if (byte != 0) {
            return false; /* unused bits after the last byte are not 0 */
        }
    }
    return true;
}

size_t fm_base64_decoded_size(const char *text, size_t len) {
    if (len == 0 || len % 4 != 0) {
        return 0;
    }
    size_t padding = text[len - 1] != '=' ? 0 : text[len - 2] != '=' ? 1 : 2;
    return len / 4 * 3 - padding;
}

/* `bytes` NULL: check only. */
static bool read(const char *text, size_t len, unsigned char *bytes) {
    size_t left = fm_base64_decoded_size(text, len);
    bool valid = left > 0;
    for (; valid && left > 0; text += 4) {
        unsigned char group[3];
        size_t size = left < 3 ? left : 3;
        valid = fm_base64_read_group(text, size, bytes ? bytes : group);
        bytes = bytes ? bytes + size : NULL;
        left -= size;
    }
    return valid;
}

bool fm_base64_read(const char *text, size_t len, unsigned char *bytes) {
    return read(text, len, bytes);
}

bool fm_base64_valid(const char *text, size_t len) {
    return read(text, len, NULL);
}
