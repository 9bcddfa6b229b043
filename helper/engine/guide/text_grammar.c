/* Writes literals, control tokens, and keywords about a string's text as Lark expressions. */
#include "engine/guide/text_grammar.h"
#include "engine/guide/schema_internal.h"
#include "protocol/json_writer.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#define ANY "(?s:.*)"

void fm_text_literal(const char *text, size_t len, struct fm_buf *lark) {
    struct fm_json_writer w = fm_json_writer_on(lark);
    fm_json_string(&w, text, len);
}

void fm_text_control(int32_t token, struct fm_buf *lark) {
    char text[24];
    snprintf(text, sizeof text, " <[%d]>", (int)token);
    fm_buf_append_str(lark, text);
}

/*
 * Writes ` & /.../` from `regex` (`len` bytes) in Rust's syntax, where a slash is a character like any other. A match
 * must begin with the text if `^` is the first character, and end with the text if `ends`: then `$` is the last
 * character.
 */
static void write_regex(const char *regex, size_t len, bool ends, struct fm_buf *lark) {
    const bool begins = len > 0 && regex[0] == '^';
    fm_buf_append_str(lark, begins ? " & /(?:" : " & /" ANY "(?:");
    for (size_t i = begins; i < len - ends; i++) {
        if (regex[i] == '\\' && i + 1 < len - ends) {
            fm_buf_append_char(lark, regex[i++]);
        } else if (regex[i] == '/') {
            fm_buf_append_char(lark, '\\');
        }
        fm_buf_append_char(lark, regex[i]);
    }
    fm_buf_append_str(lark, ends ? ")/" : ")" ANY "/");
}

static void write_pattern(struct json_object *pattern, struct fm_buf *lark) {
    const char *text = json_object_get_string(pattern);
    const size_t len = (size_t)json_object_get_string_len(pattern);
    const char *reason;
    size_t escapes = 0;
    struct fm_buf regex;
    fm_buf_init(&regex, PTRDIFF_MAX);
    bool translated = fm_pattern_translate(text, len, &regex, &reason) == FM_PATTERN_OK;
    while (len > escapes + 1 && text[len - 2 - escapes] == '\\') {
        escapes++;
    }
    if (translated && !regex.failed) {
        write_regex(regex.data, regex.len, len > 0 && text[len - 1] == '$' && escapes % 2 == 0, lark);
    }
    lark->failed |= regex.failed;
    fm_buf_free(&regex);
}

/* ---- without a mark ---- */

/* The bytes of the character at `text`. */
static size_t char_len(const char *text, size_t len) {
    size_t end = 1;
    while (end < len && ((unsigned char)text[end] & 0xC0) == 0x80) {
        end++;
    }
    return end;
}

static void write_char(const char *c, size_t len, struct fm_buf *lark) {
    bool special = len == 1 && strchr(".^$*+?()[]{}|\\/-&~#", *c);
    fm_buf_append_str(lark, special ? "\\" : "");
    if (*c == '\n') {
        fm_buf_append_str(lark, "\\n");
    } else {
        fm_buf_append(lark, c, len);
    }
}

/* Writes `<(a(b)?)?` for the mark `<ab>`: any beginning of `mark`, without its last character. */
static void write_beginning(const char *mark, size_t len, struct fm_buf *lark) {
    size_t count = 0;
    for (size_t at = 0, next = char_len(mark, len); next < len; next = at + char_len(mark + at, len - at)) {
        fm_buf_append_str(lark, at > 0 ? "(" : "");
        write_char(mark + at, next - at, lark);
        count += at > 0;
        at = next;
    }
    while (count-- > 0) {
        fm_buf_append_str(lark, ")?");
    }
}

/* Writes `<([^<a]|a([^<b]|b[^<>]))` for the mark `<ab>`: a beginning of the mark that does not continue as the mark. */
static void write_other_end(const char *mark, size_t len, struct fm_buf *lark) {
    const size_t first = char_len(mark, len);
    size_t count = 0;
    write_char(mark, first, lark);
    for (size_t at = first; at < len;) {
        const size_t part = char_len(mark + at, len - at);
        const bool last = at + part == len;
        fm_buf_append_str(lark, last ? "[^" : "([^");
        write_char(mark, first, lark);
        write_char(mark + at, part, lark);
        fm_buf_append_char(lark, ']');
        if (!last) {
            fm_buf_append_char(lark, '|');
            write_char(mark + at, part, lark);
            count++;
        }
        at += part;
    }
    while (count-- > 0) {
        fm_buf_append_char(lark, ')');
    }
}

/*
 * The regex does not use the complement operator `~`. Once the text contains the mark, the library must see that the
 * lexeme can't continue. It does not see that for `/(?s:.){1,1000}/ & ~/(?s:.*)/`, which only invalid UTF-8 could still
 * match.
 */
void fm_text_without(const char *mark, size_t len, struct fm_buf *lark) {
    const size_t first = char_len(mark, len);
    fm_buf_append_str(lark, "/([^");
    write_char(mark, first, lark);
    fm_buf_append_char(lark, ']');
    if (len > first) {
        fm_buf_append_str(lark, "|(");
        write_beginning(mark, len, lark);
        fm_buf_append_str(lark, ")*");
        write_other_end(mark, len, lark);
    }
    fm_buf_append_str(lark, ")*");
    if (len > first) {
        fm_buf_append_char(lark, '(');
        write_beginning(mark, len, lark);
        fm_buf_append_str(lark, ")*");
    }
    fm_buf_append_char(lark, '/');
}

/* ---- keywords ---- */

void fm_text_grammar(const struct fm_value_schema *schema, struct fm_buf *lark) {
    const size_t least = fm_value_schema_count(schema, "minLength", 0);
    const size_t most = fm_value_schema_count(schema, "maxLength", FM_VALUE_LENGTH_MAX + 1);
    struct json_object *format = json_object_object_get(schema->schema, "format");
    struct json_object *pattern = json_object_object_get(schema->schema, "pattern");
    const char *known = format ? fm_format_pattern(json_object_get_string(format)) : NULL;
    char count[96];
    if (least > 0 || most <= FM_VALUE_LENGTH_MAX) {
        snprintf(count, sizeof count, most <= FM_VALUE_LENGTH_MAX ? " & /(?s:.){%zu,%zu}/" : " & /(?s:.){%zu,}/", least,
                 most);
        fm_buf_append_str(lark, count);
    }
    if (known) {
        write_regex(known, strlen(known), true, lark);
    }
    if (pattern && json_object_get_string_len(pattern) > 0) {
        write_pattern(pattern, lark);
    }
}
