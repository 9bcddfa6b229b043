/* Splits a byte stream into lines. A line that is too long is skipped, and costs no memory. */
#include "protocol/line.h"
#include "base/platform.h"

#include <stdint.h>
#include <string.h>

#define KEEP_BYTES (256u << 10) /* a larger buffer is freed when it is empty */

void fm_lines_init(struct fm_lines *lines) {
    *lines = (struct fm_lines){0};
    fm_buf_init(&lines->buf, FM_LINE_MAX + 2 * (size_t)FM_LINE_FEED);
}

void fm_lines_free(struct fm_lines *lines) {
    fm_buf_free(&lines->buf);
    lines->at = 0;
    lines->looked = 0;
}

bool fm_lines_has_room(const struct fm_lines *lines) {
    return lines->buf.len - lines->at <= FM_LINE_MAX;
}

bool fm_lines_feed(struct fm_lines *lines, const char *data, size_t len) {
    fm_buf_drop_front(&lines->buf, lines->at);
    lines->at = 0;
    fm_buf_append(&lines->buf, data, len);
    return !lines->buf.failed;
}

void fm_lines_end(struct fm_lines *lines) {
    lines->ended = true;
}

/* Moves on by `len` bytes. */
static void skip_bytes(struct fm_lines *lines, size_t len) {
    lines->at += len;
    lines->looked = 0;
}

static void tidy(struct fm_lines *lines) {
    if (lines->at == lines->buf.len && lines->buf.cap > KEEP_BYTES) {
        fm_lines_free(lines);
        fm_memory_trim();
    }
}

/* The length of the line; SIZE_MAX: its end has not come yet. */
static size_t find_end(struct fm_lines *lines) {
    size_t left = lines->buf.len - lines->at;
    const char *start = lines->buf.data ? lines->buf.data + lines->at : "";
    const char *end = left > lines->looked ? memchr(start + lines->looked, '\n', left - lines->looked) : NULL;
    lines->looked = left;
    if (end) {
        return (size_t)(end - start);
    }
    return lines->ended && left > 0 ? left : SIZE_MAX;
}

enum fm_line_event fm_lines_next(struct fm_lines *lines, const char **line, size_t *len) {
    tidy(lines);
    for (;;) {
        size_t left = lines->buf.len - lines->at;
        size_t end = find_end(lines);
        size_t whole = end < left ? end + 1 : left; /* with its newline */
        if (lines->skipping) {
            skip_bytes(lines, whole);
            lines->skipping = end == SIZE_MAX;
            if (lines->skipping) {
                tidy(lines);
                return FM_LINE_NONE;
            }
            continue;
        }
        if (end == SIZE_MAX && left <= FM_LINE_MAX) {
            return FM_LINE_NONE;
        }
        if (end > FM_LINE_MAX) {
            lines->skipping = end == SIZE_MAX;
            skip_bytes(lines, whole);
            return FM_LINE_TOO_LONG;
        }
        *line = lines->buf.data + lines->at;
        *len = end;
        skip_bytes(lines, whole);
        return FM_LINE_READY;
    }
}
