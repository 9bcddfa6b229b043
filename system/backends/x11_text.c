/* Text of X properties. The result is always valid UTF-8 without control characters, whatever the input is. */
#include "backends/x11_text.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */
#define LONGEST     3              /* most bytes that one byte of the text becomes */

/* C0, DEL and C1. */
static bool is_control(unsigned code) {
    return code < 0x20 || (code >= 0x7f && code < 0xa0);
}

static char *put_latin1(char *to, unsigned char c) {
    if (is_control(c)) {
        *to++ = ' ';
    } else if (c < 0x80) {
        *to++ = (char)c;
    } else {
        *to++ = (char)(0xc0 | c >> 6);
        *to++ = (char)(0x80 | (c & 0x3f));
    }
    return to;
}

/* Writes one sequence of valid UTF-8; a control character becomes a space. */
static char *put_sequence(char *to, const char *from, size_t len) {
    unsigned char second = len == 2 ? (unsigned char)from[1] : 0;
    bool control = len == 1 ? is_control((unsigned char)from[0]) : (unsigned char)from[0] == 0xc2 && is_control(second);
    if (control) {
        *to++ = ' ';
        return to;
    }
    memcpy(to, from, len);
    return to + len;
}

static char *put_utf8(char *to, const char *from, size_t len) {
    for (size_t i = 0; i < len;) {
        int sequence = fm_utf8_sequence(from + i, len - i);
        if (sequence > 0) {
            to = put_sequence(to, from + i, (size_t)sequence);
            i += (size_t)sequence;
        } else {
            memcpy(to, REPLACEMENT, sizeof REPLACEMENT - 1);
            to += sizeof REPLACEMENT - 1;
            i++;
        }
    }
    return to;
}

char *sy_x11_text(const char *bytes, size_t len, bool utf8) {
    len = strnlen(bytes, len);
    char *text = malloc(len * LONGEST + 1);
    char *end = text;
    if (!text) {
        return NULL;
    }
    if (utf8 || fm_utf8_valid(bytes, len)) {
        end = put_utf8(end, bytes, fm_utf8_whole_prefix(bytes, len));
    } else {
        for (size_t i = 0; i < len; i++) {
            end = put_latin1(end, (unsigned char)bytes[i]);
        }
    }
    *end = '\0';
    return text;
}
