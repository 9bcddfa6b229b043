/* Writes JSON into a buffer. The finished text is valid if each begin has its end. */
#include "protocol/json_writer.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fm_json_writer fm_json_writer_on(struct fm_buf *buf) {
    return (struct fm_json_writer){.buf = buf};
}

static void separate(struct fm_json_writer *w) {
    if (w->comma) {
        fm_buf_append_char(w->buf, ',');
    }
    w->comma = true;
}

static void open_bracket(struct fm_json_writer *w, char bracket) {
    separate(w);
    fm_buf_append_char(w->buf, bracket);
    w->comma = false;
}

static void close_bracket(struct fm_json_writer *w, char bracket) {
    fm_buf_append_char(w->buf, bracket);
    w->comma = true;
}

void fm_json_object_begin(struct fm_json_writer *w) {
    open_bracket(w, '{');
}

void fm_json_object_end(struct fm_json_writer *w) {
    close_bracket(w, '}');
}

void fm_json_array_begin(struct fm_json_writer *w) {
    open_bracket(w, '[');
}

void fm_json_array_end(struct fm_json_writer *w) {
    close_bracket(w, ']');
}

void fm_json_key(struct fm_json_writer *w, const char *key) {
    separate(w);
    fm_buf_append_char(w->buf, '"');
    fm_buf_append_str(w->buf, key);
    fm_buf_append(w->buf, "\":", 2);
    w->comma = false;
}

void fm_json_raw(struct fm_json_writer *w, const char *json, size_t len) {
    separate(w);
    fm_buf_append(w->buf, json, len);
}

void fm_json_null(struct fm_json_writer *w) {
    fm_json_raw(w, "null", 4);
}

void fm_json_bool(struct fm_json_writer *w, bool value) {
    fm_json_raw(w, value ? "true" : "false", value ? 4 : 5);
}

void fm_json_int(struct fm_json_writer *w, int64_t value) {
    char text[24];
    int len = snprintf(text, sizeof text, "%" PRId64, value);
    fm_json_raw(w, text, (size_t)len);
}

void fm_json_double(struct fm_json_writer *w, double value) {
    char text[40];
    int len = 0;
    for (int digits = 6; digits <= 17; digits += digits == 6 ? 9 : 1) {
        len = snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) {
            break;
        }
    }
    fm_json_raw(w, text, (size_t)len);
}

/* How many bytes at `text` need no escape; 0 when the first one does. */
static size_t plain_bytes(const char *text, size_t len) {
    size_t ascii = fm_ascii_plain(text, len);
    if (ascii > 0 || (unsigned char)*text < 0x80) {
        return ascii;
    }
    int sequence = fm_utf8_sequence(text, len);
    return sequence > 0 ? (size_t)sequence : 0;
}

/* Writes one character that can't stay as it is (RFC 8259 section 7). A byte that is not UTF-8 becomes U+FFFD. */
static const char short_form[0x20] = {['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};

static void escape(struct fm_buf *buf, unsigned char c) {
    char text[8] = {'\\', (char)c};
    size_t len = 2;
    if (c >= 0x80) {
        fm_buf_append(buf, "\xEF\xBF\xBD", 3);
        return;
    }
    if (c < 0x20 && short_form[c]) {
        text[1] = short_form[c];
    } else if (c < 0x20) {
        len = (size_t)snprintf(text, sizeof text, "\\u%04x", c);
    }
    fm_buf_append(buf, text, len);
}

void fm_json_string(struct fm_json_writer *w, const char *text, size_t len) {
    separate(w);
    bool reserved = fm_buf_reserve(w->buf, len + 2); /* at once; escapes take more */
    (void)reserved;
    fm_buf_append_char(w->buf, '"');
    size_t plain = 0; /* start of the run that needs no escape */
    for (size_t i = 0; i < len && !w->buf->failed;) {
        size_t step = plain_bytes(text + i, len - i);
        if (step) {
            i += step;
            continue;
        }
        fm_buf_append(w->buf, text + plain, i - plain);
        escape(w->buf, (unsigned char)text[i]);
        plain = ++i;
    }
    fm_buf_append(w->buf, text + plain, len - plain);
    fm_buf_append_char(w->buf, '"');
}

void fm_json_key_text(struct fm_json_writer *w, const char *text, size_t len) {
    fm_json_string(w, text, len);
    fm_buf_append_char(w->buf, ':');
    w->comma = false;
}

size_t fm_json_string_size(const char *text, size_t len) {
    size_t size = len + 2;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\') {
            size += 1;
        } else if (c < 0x20) {
            size += short_form[c] ? 1 : 5;
        }
    }
    return size;
}

void fm_json_str(struct fm_json_writer *w, const char *text) {
    if (text) {
        fm_json_string(w, text, strlen(text));
    } else {
        fm_json_null(w);
    }
}

void fm_json_value(struct fm_json_writer *w, struct json_object *value) {
    size_t len = 0;
    const char *text =
        json_object_to_json_string_length(value, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &len);
    if (text) {
        fm_json_raw(w, text, len);
    } else {
        w->buf->failed = true;
    }
}

void fm_json_key_count(struct fm_json_writer *w, const char *key, int64_t count) {
    if (count < 0) {
        fm_json_key_null(w, key);
    } else {
        fm_json_key_int(w, key, count);
    }
}

void fm_json_key_null(struct fm_json_writer *w, const char *key) {
    fm_json_key(w, key);
    fm_json_null(w);
}

void fm_json_key_bool(struct fm_json_writer *w, const char *key, bool value) {
    fm_json_key(w, key);
    fm_json_bool(w, value);
}

void fm_json_key_int(struct fm_json_writer *w, const char *key, int64_t value) {
    fm_json_key(w, key);
    fm_json_int(w, value);
}

void fm_json_key_double(struct fm_json_writer *w, const char *key, double value) {
    fm_json_key(w, key);
    fm_json_double(w, value);
}

void fm_json_key_str(struct fm_json_writer *w, const char *key, const char *text) {
    fm_json_key(w, key);
    fm_json_str(w, text);
}

void fm_json_key_value(struct fm_json_writer *w, const char *key, struct json_object *value) {
    fm_json_key(w, key);
    fm_json_value(w, value);
}
