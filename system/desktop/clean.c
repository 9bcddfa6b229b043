/* Cleans text that pages and windows made. Every byte of the output comes from a character that was checked. */
#include "desktop/clean.h"
#include "base/utf8.h"
#include "protocol/json_writer.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

enum meaning { SHOWN, SPACE, NEWLINE, HIDDEN };

static uint32_t decode_point(const char *text, int len) {
    static const unsigned char first_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t point = (unsigned char)text[0] & first_bits[len];
    for (int i = 1; i < len; i++) {
        point = point << 6 | ((unsigned char)text[i] & 0x3f);
    }
    return point;
}

/* Unicode 15: controls, marks and overrides of direction (UAX #9), characters without a width, tags, separators. */
static enum meaning meaning_of(uint32_t point) {
    if (point == '\n') {
        return NEWLINE;
    }
    if (point == ' ' || (point >= '\t' && point <= '\r') || point == 0x2028 || point == 0x2029) {
        return SPACE;
    }
    bool hidden = point < 0x20 || (point >= 0x7f && point <= 0x9f) || point == 0xad || point == 0x61c ||
                  (point >= 0x200b && point <= 0x200f && point != 0x200d) || (point >= 0x202a && point <= 0x202e) ||
                  (point >= 0x2060 && point <= 0x206f) || point == 0xfeff || (point >= 0xe0000 && point <= 0xe007f);
    return hidden ? HIDDEN : SHOWN;
}

/* Writes the white space between two characters, if the space and a character still fit. Returns its length. */
static size_t write_space(struct fm_buf *out, size_t newlines, bool space, size_t room) {
    size_t len = newlines ? newlines : space;
    if (len >= room) {
        return 0;
    }
    for (size_t i = 0; i < len; i++) {
        fm_buf_append_char(out, newlines ? '\n' : ' ');
    }
    return len;
}

static void clean_bytes(struct fm_buf *out, const char *text, size_t len, size_t max, bool lines) {
    size_t written = 0;
    size_t newlines = 0; /* since the last character that was shown */
    bool space = false;
    for (size_t at = 0; at < len && written < max;) {
        int step = fm_utf8_sequence(text + at, len - at);
        enum meaning meaning = step > 0 ? meaning_of(decode_point(text + at, step)) : SHOWN;
        newlines += meaning == NEWLINE && lines && newlines < 2;
        space |= meaning == SPACE || meaning == NEWLINE;
        if (meaning == SHOWN) {
            written += written ? write_space(out, newlines, space, max - written) : 0;
            fm_buf_append(out, step > 0 ? text + at : "\xef\xbf\xbd", step > 0 ? (size_t)step : 3);
            written++;
            newlines = 0;
            space = false;
        }
        at += step > 0 ? (size_t)step : 1;
    }
}

void sy_clean(struct fm_buf *out, const char *text, size_t max, bool lines) {
    clean_bytes(out, text, strlen(text), max, lines);
}

void sy_clean_url(struct fm_buf *out, const char *url, size_t max) {
    size_t scheme = 0;
    while (isalnum((unsigned char)url[scheme]) || (url[scheme] && strchr("+-.", url[scheme]))) {
        scheme++;
    }
    if (url[scheme] != ':') { /* the address has no scheme: any part of it may be secret */
        return;
    }
    size_t before = strncmp(url + scheme, "://", 3) == 0 ? scheme + 3 : scheme + 1;
    const char *rest = url + before;
    size_t len = before > scheme + 1 ? strcspn(rest, "?#") : 0;
    size_t authority = strcspn(rest, "/?#\\");
    for (size_t i = authority < len ? authority : len; i > 0; i--) {
        if (rest[i - 1] == '@') {
            rest += i;
            len -= i;
            break;
        }
    }
    size_t room = before < max ? max - before : 0; /* a scheme is ASCII */
    clean_bytes(out, url, before, max, false);
    clean_bytes(out, rest, len, room, false);
}

static void write_string(struct fm_json_writer *w, struct fm_buf *clean) {
    fm_json_string(w, clean->data ? clean->data : "", clean->len);
    w->buf->failed |= clean->failed;
    fm_buf_free(clean);
}

void sy_write_clean(struct fm_json_writer *w, const char *text, size_t max) {
    struct fm_buf clean;
    fm_buf_init(&clean, w->buf->max);
    sy_clean(&clean, text, max, false);
    write_string(w, &clean);
}

void sy_write_clean_url(struct fm_json_writer *w, const char *url, size_t max) {
    struct fm_buf clean;
    fm_buf_init(&clean, w->buf->max);
    sy_clean_url(&clean, url, max);
    write_string(w, &clean);
}
