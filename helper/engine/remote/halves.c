/* Converts halves of characters: from escapes to bytes, and from bytes to characters. The result is UTF-8. */
#include "engine/remote/halves.h"

#include <stdlib.h>
#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

static bool is_first(unsigned unit) {
    return unit >= 0xd800 && unit < 0xdc00;
}

static bool is_second(unsigned unit) {
    return unit >= 0xdc00 && unit < 0xe000;
}

/* Returns the UTF-16 unit of the escape \uXXXX at `text`; 0: there is no such escape. */
static unsigned unit_at(const char *text, size_t len) {
    char digits[5] = "";
    if (len < 6 || text[0] != '\\' || text[1] != 'u') {
        return 0;
    }
    memcpy(digits, text + 2, 4);
    return strspn(digits, "0123456789abcdefABCDEF") == 4 ? (unsigned)strtoul(digits, NULL, 16) : 0;
}

static void append_unit(struct fm_buf *out, unsigned unit) {
    const char bytes[] = {(char)0xed, (char)(0x80 | (unit >> 6 & 0x3f)), (char)(0x80 | (unit & 0x3f))};
    fm_buf_append(out, bytes, sizeof bytes);
}

bool fm_halves_find(const char *text, size_t len, struct fm_buf *checked, struct fm_buf *raw) {
    size_t done = 0;
    for (size_t at = 0; at < len;) {
        unsigned unit = unit_at(text + at, len - at);
        if (text[at] != '\\') {
            at++;
        } else if (is_first(unit) && is_second(unit_at(text + at + 6, len - at - 6))) {
            at += 12;
        } else if (is_first(unit) || is_second(unit)) {
            fm_buf_append(checked, text + done, at - done);
            fm_buf_append(raw, text + done, at - done);
            fm_buf_append(checked, REPLACEMENT, 3);
            append_unit(raw, unit);
            done = at += 6;
        } else {
            at += 2;
        }
    }
    if (done > 0) {
        fm_buf_append(checked, text + done, len - done);
        fm_buf_append(raw, text + done, len - done);
    }
    return done > 0 && !checked->failed && !raw->failed;
}

/* Returns the half whose three bytes begin `text`; 0: there is none. */
static unsigned half_at(const char *text, size_t len) {
    const unsigned char *bytes = (const unsigned char *)text;
    if (len < 3 || bytes[0] != 0xed || bytes[1] < 0xa0) {
        return 0;
    }
    return 0xd000u | (bytes[1] & 0x3fu) << 6 | (bytes[2] & 0x3fu);
}

static void append_character(struct fm_buf *out, unsigned first, unsigned second) {
    unsigned code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
    const char bytes[] = {(char)(0xf0 | code >> 18), (char)(0x80 | (code >> 12 & 0x3f)),
                          (char)(0x80 | (code >> 6 & 0x3f)), (char)(0x80 | (code & 0x3f))};
    fm_buf_append(out, bytes, sizeof bytes);
}

void fm_halves_end(struct fm_halves *halves, struct fm_buf *out) {
    if (halves->first) {
        fm_buf_append(out, REPLACEMENT, 3);
    }
    halves->first = 0;
}

void fm_halves_join(struct fm_halves *halves, const char *text, size_t len, struct fm_buf *out) {
    for (size_t at = 0; at < len;) {
        unsigned half = half_at(text + at, len - at);
        if (halves->first && is_second(half)) {
            append_character(out, halves->first, half);
            halves->first = 0;
        } else {
            fm_halves_end(halves, out);
            if (is_first(half)) {
                halves->first = half;
            } else {
                fm_buf_append(out, half ? REPLACEMENT : text + at, half ? 3 : 1);
            }
        }
        at += half ? 3 : 1;
    }
}

void fm_halves_replace(char *text, size_t len) {
    for (size_t at = 0; at + 3 <= len; at++) {
        if (half_at(text + at, len - at)) {
            memcpy(text + at, REPLACEMENT, 3);
        }
    }
}
