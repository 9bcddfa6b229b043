/* The parser of Content-Length frames, fed in pieces. It never holds more than one header and one body. */
#include "protocol/frame.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Room for the header before a body: "Content-Length: " + 8 digits + two line ends. */
#define HEADER_ROOM 32u

/* A body buffer larger than this is freed after its frame. */
#define BODY_KEEP 65536u

void fm_framer_set_max(struct fm_framer *framer, size_t max) {
    framer->body_max = max;
    fm_buf_init(&framer->body, max);
}

void fm_framer_init(struct fm_framer *framer) {
    memset(framer, 0, sizeof *framer);
    fm_framer_set_max(framer, FM_FRAME_BODY_MAX);
}

void fm_framer_free(struct fm_framer *framer) {
    fm_buf_free(&framer->body);
}

bool fm_framer_at_boundary(const struct fm_framer *framer) {
    return !framer->in_body && framer->header_len == 0 && framer->verdict != FM_FRAME_BROKEN;
}

static bool broken(struct fm_framer *framer, const char *fault) {
    framer->verdict = FM_FRAME_BROKEN;
    framer->fault = fault;
    return false;
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

/* RFC 9110 section 5.6.2: the characters that a header's name may have. */
static bool is_token_char(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static bool parse_length(struct fm_framer *framer, const char *value, size_t len) {
    if (framer->has_length) {
        return broken(framer, "a second Content-Length");
    }
    if (len == 0 || len > 19 || (value[0] == '0' && len > 1)) {
        return broken(framer, "Content-Length is not a decimal number");
    }
    uint64_t length = 0;
    for (size_t i = 0; i < len; i++) {
        if (value[i] < '0' || value[i] > '9') {
            return broken(framer, "Content-Length is not a decimal number");
        }
        length = length * 10 + (uint64_t)(value[i] - '0');
    }
    if (length > FM_FRAME_DISCARD_MAX) {
        return broken(framer, "Content-Length is above 40,000,000");
    }
    framer->has_length = true;
    framer->remaining = length;
    return true;
}

/*
 * Checks the charset. With a charset other than UTF-8 the body can't be read, but the frame is valid: its body is
 * skipped.
 */
static void parse_content_type(struct fm_framer *framer, const char *value, size_t len) {
    static const char key[] = "charset=";
    for (size_t i = 0; i + sizeof key - 1 <= len; i++) {
        if (strncasecmp(value + i, key, sizeof key - 1) != 0) {
            continue;
        }
        const char *name = value + i + sizeof key - 1;
        size_t name_len = len - i - (sizeof key - 1);
        const char *end = memchr(name, ';', name_len);
        name_len = end ? (size_t)(end - name) : name_len;
        while (name_len && is_blank(name[name_len - 1])) {
            name_len--;
        }
        if (name_len >= 2 && name[0] == '"' && name[name_len - 1] == '"') {
            name++;
            name_len -= 2;
        }
        bool utf8 = (name_len == 4 && strncasecmp(name, "utf8", 4) == 0) ||
                    (name_len == 5 && strncasecmp(name, "utf-8", 5) == 0);
        if (!utf8) {
            framer->verdict = FM_FRAME_CHARSET;
        }
        return;
    }
}

static bool name_is(const char *line, size_t len, const char *name) {
    return strlen(name) == len && strncasecmp(line, name, len) == 0;
}

/* One header line without its line end. */
static bool parse_line(struct fm_framer *framer, const char *line, size_t len) {
    const char *colon = memchr(line, ':', len);
    if (!colon || colon == line) {
        return broken(framer, "a header line without a name and a colon");
    }
    size_t name_len = (size_t)(colon - line);
    for (size_t i = 0; i < name_len; i++) {
        if (!is_token_char(line[i])) {
            return broken(framer, "a header name with a character that is not allowed");
        }
    }
    const char *value = colon + 1;
    size_t value_len = len - name_len - 1;
    while (value_len && is_blank(*value)) {
        value++;
        value_len--;
    }
    while (value_len && is_blank(value[value_len - 1])) {
        value_len--;
    }
    if (name_is(line, name_len, "content-length")) {
        return parse_length(framer, value, value_len);
    }
    if (name_is(line, name_len, "content-type")) {
        parse_content_type(framer, value, value_len);
    }
    return true;
}

/* The empty line has come: the body begins. */
static bool end_header(struct fm_framer *framer) {
    if (!framer->has_length) {
        return broken(framer, "a header without Content-Length");
    }
    if (framer->remaining > framer->body_max) {
        framer->verdict = FM_FRAME_TOO_LARGE;
    }
    framer->in_body = true;
    return true;
}

/* A CR LF has come; `header` ends with it. */
static bool end_line(struct fm_framer *framer) {
    size_t len = framer->header_len - framer->line_start - 2;
    const char *line = framer->header + framer->line_start;
    framer->line_start = framer->header_len;
    if (len == 0) {
        return end_header(framer);
    }
    if (++framer->header_lines > FM_FRAME_HEADER_LINES) {
        return broken(framer, "more than 32 header lines");
    }
    return parse_line(framer, line, len);
}

static bool header_byte(struct fm_framer *framer, char c) {
    bool after_cr = framer->header_len > framer->line_start && framer->header[framer->header_len - 1] == '\r';
    if (c == '\0' || (unsigned char)c >= 0x80) {
        return broken(framer, "a header byte that is NUL or not ASCII");
    }
    if ((c == '\n') != after_cr) {
        return broken(framer, "a header line that does not end with CR LF");
    }
    if (framer->header_len == FM_FRAME_HEADER_MAX) {
        return broken(framer, "a header of more than 8,192 bytes");
    }
    framer->header[framer->header_len++] = c;
    return c != '\n' || end_line(framer);
}

static void next_frame(struct fm_framer *framer) {
    framer->header_len = 0;
    framer->line_start = 0;
    framer->header_lines = 0;
    framer->has_length = false;
    framer->in_body = false;
    framer->verdict = FM_FRAME_MORE;
}

/* Copies body bytes into the buffer, or skips them when the frame has a verdict already. */
static void take_body(struct fm_framer *framer, const char *data, size_t len) {
    framer->remaining -= len;
    if (framer->verdict != FM_FRAME_MORE) {
        return;
    }
    fm_buf_append(&framer->body, data, len);
    if (framer->body.failed) {
        framer->verdict = FM_FRAME_NO_MEMORY;
        fm_buf_free(&framer->body);
    }
}

static enum fm_frame_event finish_body(struct fm_framer *framer, const char **body, size_t *body_len) {
    enum fm_frame_event event = framer->verdict == FM_FRAME_MORE ? FM_FRAME_BODY : framer->verdict;
    if (event == FM_FRAME_BODY) {
        *body = framer->body.len ? framer->body.data : "";
        *body_len = framer->body.len;
    }
    next_frame(framer);
    return event;
}

enum fm_frame_event fm_framer_next(struct fm_framer *framer, const char **data, size_t *len, const char **body,
                                   size_t *body_len) {
    if (framer->verdict == FM_FRAME_BROKEN) {
        return FM_FRAME_BROKEN;
    }
    if (!framer->in_body) { /* the caller has finished with the body of the last call */
        if (framer->body.cap > BODY_KEEP) {
            fm_buf_free(&framer->body);
        }
        fm_buf_reset(&framer->body);
    }
    while (*len && !framer->in_body) {
        bool ok = header_byte(framer, **data);
        (*data)++;
        (*len)--;
        if (!ok) {
            return FM_FRAME_BROKEN;
        }
    }
    if (!framer->in_body) {
        return FM_FRAME_MORE;
    }
    size_t take = *len < framer->remaining ? *len : (size_t)framer->remaining;
    bool whole = take == framer->remaining && framer->body.len == 0 && framer->verdict == FM_FRAME_MORE;
    if (whole) { /* the usual case: the input holds the whole body, so nothing is copied */
        *body = *data;
        *body_len = take;
        next_frame(framer);
    } else {
        take_body(framer, *data, take);
    }
    *data += take;
    *len -= take;
    if (whole) {
        return FM_FRAME_BODY;
    }
    return framer->remaining ? FM_FRAME_MORE : finish_body(framer, body, body_len);
}

void fm_frame_begin(struct fm_buf *buf) {
    static const char room[HEADER_ROOM];
    fm_buf_reset(buf);
    fm_buf_append(buf, room, sizeof room);
}

bool fm_frame_end(struct fm_buf *buf, const char **frame, size_t *frame_len) {
    if (buf->failed) {
        return false;
    }
    char header[HEADER_ROOM + 1];
    int len = snprintf(header, sizeof header, "Content-Length: %zu\r\n\r\n", buf->len - HEADER_ROOM);
    if (len < 0 || (size_t)len > HEADER_ROOM) {
        return false;
    }
    char *start = buf->data + HEADER_ROOM - (size_t)len;
    memcpy(start, header, (size_t)len);
    *frame = start;
    *frame_len = buf->len - HEADER_ROOM + (size_t)len;
    return true;
}
