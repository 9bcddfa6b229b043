/*
 * Reads server-sent events line by line. A line is kept until its end has come, so it does not matter where the pieces
 * end.
 */
#include "engine/remote/sse.h"
#include "base/utf8.h"

#include <string.h>

void fm_sse_init(struct fm_sse *sse, fm_sse_take_fn *take, void *state) {
    *sse = (struct fm_sse){.take = take, .state = state};
    fm_buf_init(&sse->line, FM_SSE_EVENT_MAX);
    fm_buf_init(&sse->name, FM_SSE_EVENT_MAX);
    fm_buf_init(&sse->data, FM_SSE_EVENT_MAX);
}

void fm_sse_free(struct fm_sse *sse) {
    fm_buf_free(&sse->line);
    fm_buf_free(&sse->name);
    fm_buf_free(&sse->data);
}

/* Handles a failed append to `buf`: the line or event is too long, or memory ran out. */
static enum fm_sse_status why(const struct fm_buf *buf, size_t more) {
    return more > buf->max - buf->len ? FM_SSE_TOO_LONG : FM_SSE_NO_MEMORY;
}

static void append_bytes(struct fm_sse *sse, struct fm_buf *buf, const char *bytes, size_t len) {
    fm_buf_append(buf, bytes, len);
    if (buf->failed && sse->status == FM_SSE_MORE) {
        sse->status = why(buf, len);
    }
}

/* An empty line ends an event. */
static void dispatch(struct fm_sse *sse) {
    const struct fm_sse_event event = {.name = sse->name.len > 0 ? sse->name.data : "",
                                       .name_len = sse->name.len,
                                       .data = sse->data.len > 0 ? sse->data.data : "",
                                       .len = sse->data.len};
    if (sse->has_data && !sse->take(sse->state, &event)) {
        sse->status = FM_SSE_STOPPED;
    }
    fm_buf_reset(&sse->name);
    fm_buf_reset(&sse->data);
    sse->has_data = false;
}

static void take_field(struct fm_sse *sse, const char *line, size_t len) {
    const char *colon = memchr(line, ':', len);
    size_t name_len = colon ? (size_t)(colon - line) : len;
    const char *value = colon ? colon + 1 : line + len;
    size_t value_len = (size_t)(line + len - value);
    if (value_len > 0 && value[0] == ' ') {
        value++;
        value_len--;
    }
    if (name_len == 4 && memcmp(line, "data", 4) == 0) {
        if (sse->has_data) {
            append_bytes(sse, &sse->data, "\n", 1);
        }
        append_bytes(sse, &sse->data, value, value_len);
        sse->has_data = true;
    } else if (name_len == 5 && memcmp(line, "event", 5) == 0) {
        fm_buf_reset(&sse->name);
        append_bytes(sse, &sse->name, value, value_len);
    }
}

static void take_line(struct fm_sse *sse, const char *line, size_t len) {
    if (!sse->begun) {
        size_t mark = fm_utf8_mark(line, len);
        line += mark;
        len -= mark;
    }
    sse->begun = true;
    if (len == 0) {
        dispatch(sse);
    } else {
        take_field(sse, line, len);
    }
}

/* Counts the bytes before the first line end. */
static size_t line_len(const char *bytes, size_t len) {
    const char *feed = memchr(bytes, '\n', len);
    size_t most = feed ? (size_t)(feed - bytes) : len;
    const char *cr = memchr(bytes, '\r', most);
    return cr ? (size_t)(cr - bytes) : most;
}

enum fm_sse_status fm_sse_push(struct fm_sse *sse, const char *bytes, size_t len) {
    while (len > 0 && sse->status == FM_SSE_MORE) {
        if (sse->after_cr && bytes[0] == '\n') {
            bytes++;
            len--;
        }
        sse->after_cr = false;
        size_t part = line_len(bytes, len);
        bool whole = part < len;
        if (sse->line.len == 0 && whole) { /* the whole line is in this piece: no copy is needed */
            take_line(sse, bytes, part);
        } else {
            append_bytes(sse, &sse->line, bytes, part);
        }
        if (whole && sse->line.len > 0 && sse->status == FM_SSE_MORE) {
            take_line(sse, sse->line.data, sse->line.len);
            fm_buf_reset(&sse->line);
        }
        sse->after_cr = whole && bytes[part] == '\r';
        bytes += part + whole;
        len -= part + whole;
    }
    return sse->status;
}
