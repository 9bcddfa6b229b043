/*
 * The beginning of an output is in a buffer, its end in a ring. Bytes become UTF-8 only when the text is written,
 * because the ring may begin in the middle of a character. So `total` counts the bytes that the command printed, and
 * the missing bytes are counted exactly.
 */
#include "tools/output.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LEAST    1000u
#define LINE_MAX 80u /* bytes of the line about what is missing */

static const char replacement[] = "\xEF\xBF\xBD";

void gw_output_init(struct gw_output *output, size_t max) {
    *output = (struct gw_output){.max = max < LEAST ? LEAST : max};
    fm_buf_init(&output->head, output->max / 2);
    fm_buf_init(&output->tail, output->max - output->max / 2);
}

void gw_output_free(struct gw_output *output) {
    fm_buf_free(&output->head);
    fm_buf_free(&output->tail);
}

/* Appends as many bytes as there is room for. Returns how many. */
static size_t fill_buffer(struct gw_output *output, struct fm_buf *buf, const char *data, size_t len) {
    size_t room = buf->max - buf->len;
    size_t taken = len < room ? len : room;
    if (buf->failed) {
        return 0;
    }
    fm_buf_append(buf, data, taken);
    output->failed |= buf->failed;
    return buf->failed ? 0 : taken;
}

void gw_output_add(struct gw_output *output, const char *data, size_t len) {
    struct fm_buf *tail = &output->tail;
    output->total += len;
    size_t taken = fill_buffer(output, &output->head, data, len);
    data += taken;
    len -= taken;
    taken = fill_buffer(output, tail, data, len);
    data += taken;
    len -= taken;
    if (output->failed || len == 0) {
        return;
    }
    if (len > tail->len) { /* if a piece is longer than the ring, only its end is kept */
        data += len - tail->len;
        len = tail->len;
    }
    size_t first = tail->len - output->at < len ? tail->len - output->at : len;
    memcpy(tail->data + output->at, data, first);
    memcpy(tail->data, data + first, len - first);
    output->at = (output->at + len) % tail->len;
}

/* Returns the length of the UTF-8 sequence at `text`; `*becomes` is its length in the result. */
static size_t step_at(const char *text, size_t len, size_t *becomes) {
    int step = fm_utf8_sequence(text, len);
    *becomes = step > 0 ? (size_t)step : sizeof replacement - 1;
    return step > 0 ? (size_t)step : 1;
}

static size_t size_of(const char *text, size_t len) {
    size_t size = 0;
    for (size_t at = 0, becomes; at < len;) {
        at += step_at(text + at, len - at, &becomes);
        size += becomes;
    }
    return size;
}

/* Appends at most `budget` bytes. Returns how many bytes of `text` they stand for. */
static size_t append_front(struct fm_buf *buf, const char *text, size_t len, size_t budget) {
    size_t at = 0;
    while (at < len) {
        size_t becomes;
        size_t step = step_at(text + at, len - at, &becomes);
        if (becomes > budget) {
            break;
        }
        budget -= becomes;
        fm_buf_append(buf, fm_utf8_sequence(text + at, len - at) > 0 ? text + at : replacement, becomes);
        at += step;
    }
    return at;
}

/* Returns where the longest end of the text begins that fits in `budget`. */
static size_t back_from(const char *text, size_t len, size_t budget) {
    size_t size = size_of(text, len);
    size_t at = 0;
    while (size > budget) {
        size_t becomes;
        at += step_at(text + at, len - at, &becomes);
        size -= becomes;
    }
    return at;
}

bool gw_output_text(const struct gw_output *output, struct fm_buf *text, bool *truncated) {
    const struct fm_buf *tail = &output->tail;
    struct fm_buf raw; /* beginning and end, in order */
    fm_buf_init(&raw, output->max);
    fm_buf_append(&raw, output->head.data, output->head.len);
    if (tail->len) {
        fm_buf_append(&raw, tail->data + output->at, tail->len - output->at);
        fm_buf_append(&raw, tail->data, output->at);
    }
    bool gap = output->total > raw.len;
    size_t budget = (output->max - LINE_MAX) / 2;
    *truncated = gap || size_of(raw.data, raw.len) > output->max;
    if (!*truncated) {
        append_front(text, raw.data, raw.len, output->max);
    } else {
        size_t first = gap ? fm_utf8_whole_prefix(raw.data, output->head.len) : raw.len;
        size_t front = append_front(text, raw.data, first, budget);
        size_t begin = gap ? output->head.len : front;
        for (int i = 0; gap && i < 3 && begin < raw.len && (raw.data[begin] & 0xC0) == 0x80; i++) {
            begin++; /* the rest of a character whose beginning is missing */
        }
        size_t back = begin + back_from(raw.data + begin, raw.len - begin, budget);
        char line[LINE_MAX];
        snprintf(line, sizeof line, "\n[... %" PRIu64 " bytes are left out here ...]\n",
                 output->total - front - (raw.len - back));
        fm_buf_append_str(text, line);
        append_front(text, raw.data + back, raw.len - back, budget);
    }
    bool whole = !raw.failed && !text->failed;
    fm_buf_free(&raw);
    return whole;
}
