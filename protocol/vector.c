#include "protocol/vector.h"

#include <math.h>
#include <string.h>

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "floats are copied as they lie in memory"
#endif

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t fm_vector_text_size(size_t count) {
    return (count * sizeof(float) + 2) / 3 * 4;
}

/* Three bytes, or at the end one or two, as four digits. */
static void write_group(const unsigned char *bytes, size_t len, char group[4]) {
    unsigned all = (unsigned)bytes[0] << 16 | (len > 1 ? (unsigned)bytes[1] << 8 : 0) | (len > 2 ? bytes[2] : 0);
    group[0] = digits[all >> 18];
    group[1] = digits[all >> 12 & 63];
    group[2] = len > 1 ? digits[all >> 6 & 63] : '=';
    group[3] = len > 2 ? digits[all & 63] : '=';
}

void fm_vector_write(const float *values, size_t count, struct fm_json_writer *w) {
    const unsigned char *bytes = (const unsigned char *)values;
    size_t left = count * sizeof *values;
    fm_json_raw(w, "\"", 1); /* a value begins, in pieces */
    if (!fm_buf_reserve(w->buf, fm_vector_text_size(count) + 1)) {
        return;
    }
    while (left > 0) {
        size_t len = left < 3 ? left : 3;
        char group[4];
        write_group(bytes, len, group);
        fm_buf_append(w->buf, group, sizeof group);
        bytes += len;
        left -= len;
    }
    fm_buf_append_char(w->buf, '"');
}

/* What a digit stands for; 64: it is none. */
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

/* The `len` bytes that four digits stand for. */
static bool read_group(const char *text, size_t len, unsigned char *bytes) {
    unsigned all = 0;
    for (size_t i = 0; i < 4; i++) {
        bool padding = i > len;
        unsigned value = padding ? 0 : digit_value(text[i]);
        if (value == 64 || (padding && text[i] != '=')) {
            return false;
        }
        all = all << 6 | value;
    }
    for (size_t i = 0; i < 3; i++) {
        unsigned char byte = (unsigned char)(all >> (16 - 8 * i));
        if (i < len) {
            bytes[i] = byte;
        } else if (byte != 0) {
            return false; /* bits behind the last byte */
        }
    }
    return true;
}

bool fm_vector_read(const char *text, size_t len, float *values, size_t count) {
    unsigned char *bytes = (unsigned char *)values;
    size_t left = count * sizeof *values;
    if (len != fm_vector_text_size(count)) {
        return false;
    }
    while (left > 0) {
        size_t group = left < 3 ? left : 3;
        if (!read_group(text, group, bytes)) {
            return false;
        }
        text += 4;
        bytes += group;
        left -= group;
    }
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(values[i])) {
            return false;
        }
    }
    return true;
}

bool fm_vector_normalise(float *values, size_t count) {
    double squares = 0;
    for (size_t i = 0; i < count; i++) {
        squares += (double)values[i] * values[i];
    }
    if (!isfinite(squares) || squares <= 0) {
        return false;
    }
    double length = sqrt(squares);
    for (size_t i = 0; i < count; i++) {
        values[i] = (float)(values[i] / length);
    }
    return true;
}
