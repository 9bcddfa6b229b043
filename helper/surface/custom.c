/* Custom tools as functions with one argument: their rules, the function, and the text of a call. */
#include "surface/custom.h"
#include "surface/format.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

/* ---- the rows ---- */

static const char *const format_types[] = {"text", "grammar", NULL};
static const char *const syntaxes[] = {"lark", "regex", NULL};

/* A Lark grammar holds for whole texts, and a call's text is a string inside JSON. */
static enum fm_code check_syntax(const struct fm_rule *rule, struct json_object *value, const struct fm_path *at,
                                 struct fm_error *error) {
    enum fm_code code = fm_check_enum(rule, value, at, error);
    bool lark = code == FM_OK && fm_string_is(value, "lark");
    return lark ? fm_reject_unsupported_value(at, "fm-proxy enforces only regular expressions in tools: use 'regex'.",
                                              error)
                : code;
}

static const struct fm_rule grammar_rules[] = {
    {.name = "syntax", .check = check_syntax, .words = syntaxes, .required = true},
    {.name = "definition", .check = fm_check_definition, .min = 1, .required = true},
    {0},
};

static const struct fm_rule text_rules[] = {{.name = "type", .check = fm_check_any}, {0}};

static const struct fm_rule flat_grammar_rules[] = {
    {.name = "type", .check = fm_check_any},
    {.members = grammar_rules},
};

static const struct fm_rule nested_grammar_rules[] = {
    {.name = "type", .check = fm_check_any},
    {.name = "grammar", .check = fm_check_object, .members = grammar_rules, .required = true},
    {0},
};

static const struct fm_rule flat_formats[] = {
    {.name = "text", .members = text_rules},
    {.name = "grammar", .members = flat_grammar_rules},
    {0},
};

static const struct fm_rule nested_formats[] = {
    {.name = "text", .members = text_rules},
    {.name = "grammar", .members = nested_grammar_rules},
    {0},
};

const struct fm_rule fm_custom_rules[] = {
    {.name = "name", .check = fm_check_name, .required = true},
    {.name = "description", .check = fm_check_text},
    {.name = "format", .check = fm_check_variant, .words = format_types, .members = flat_formats},
    {0},
};

const struct fm_rule fm_nested_custom_rules[] = {
    {.name = "name", .check = fm_check_name, .required = true},
    {.name = "description", .check = fm_check_text},
    {.name = "format", .check = fm_check_variant, .words = format_types, .members = nested_formats},
    {0},
};

/* ---- the function ---- */

/* Returns the regular expression of a checked tool; NULL: any text. */
static struct json_object *regex_of(struct json_object *tool) {
    struct json_object *format = json_object_object_get(tool, "format");
    struct json_object *grammar = json_object_object_get(format, "grammar");
    return json_object_object_get(grammar ? grammar : format, "definition");
}

static void write_around(const char *before, struct json_object *text, const char *after, struct fm_json_writer *w) {
    struct fm_buf all;
    fm_buf_init(&all, w->buf->max);
    fm_buf_append_str(&all, before);
    fm_buf_append(&all, json_object_get_string(text), (size_t)json_object_get_string_len(text));
    fm_buf_append_str(&all, after);
    fm_json_string(w, all.data ? all.data : "", all.len);
    w->buf->failed |= all.failed;
    fm_buf_free(&all);
}

void fm_custom_write_function(struct json_object *tool, struct fm_json_writer *w) {
    struct json_object *description = json_object_object_get(tool, "description");
    struct json_object *regex = regex_of(tool);
    if (description) {
        fm_json_key_value(w, "description", description);
    }
    fm_json_key(w, "parameters");
    fm_json_object_begin(w);
    fm_json_key_str(w, "type", "object");
    fm_json_key(w, "properties");
    fm_json_object_begin(w);
    fm_json_key(w, "input");
    fm_json_object_begin(w);
    fm_json_key_str(w, "type", "string");
    if (regex) {
        fm_json_key(w, "description");
        write_around("A text that matches this regular expression: ", regex, "", w);
        fm_json_key(w, "pattern");
        write_around("^(?:", regex, ")$", w); /* OpenAI's regular expressions hold for the whole text */
    }
    fm_json_object_end(w);
    fm_json_object_end(w);
    fm_json_key(w, "required");
    fm_json_raw(w, "[\"input\"]", 9);
    fm_json_key_bool(w, "additionalProperties", false);
    fm_json_object_end(w);
}

void fm_custom_write_echo(struct json_object *tool, struct fm_json_writer *w) {
    struct json_object *description = json_object_object_get(tool, "description");
    struct json_object *format = json_object_object_get(tool, "format");
    fm_json_key_str(w, "type", "custom");
    fm_json_key_value(w, "name", json_object_object_get(tool, "name"));
    if (description) { /* OpenAI's type has no null here */
        fm_json_key_value(w, "description", description);
    }
    fm_json_key(w, "format");
    if (format) {
        fm_json_value(w, format);
        return;
    }
    fm_json_object_begin(w);
    fm_json_key_str(w, "type", "text");
    fm_json_object_end(w);
}

/* ---- calls ---- */

void fm_custom_write_arguments(struct json_object *text, struct fm_buf *scratch, struct fm_json_writer *w) {
    fm_buf_reset(scratch);
    struct fm_json_writer inner = fm_json_writer_on(scratch);
    fm_json_object_begin(&inner);
    fm_json_key_value(&inner, "input", text);
    fm_json_object_end(&inner);
    fm_json_key(w, "arguments");
    fm_json_string(w, scratch->data ? scratch->data : "", scratch->len);
    w->buf->failed |= scratch->failed;
}

/* Whether the escape is the first half of a surrogate pair, as `\ud83d`. */
static bool is_half(const struct fm_custom_reader *reader) {
    return reader->held >= 6 && strchr("dD", reader->escape[2]) && strchr("89abAB", reader->escape[3]);
}

/* How many bytes the escape has, as far as it has come. */
static size_t length_of(const struct fm_custom_reader *reader) {
    if (reader->held < 2 || reader->escape[1] != 'u') {
        return 2;
    }
    return is_half(reader) ? 12 : 6;
}

/* Appends the character of the escape. Half of a pair counts as U+FFFD. */
static void end_escape(struct fm_custom_reader *reader, struct fm_buf *text) {
    char json[sizeof reader->escape + 3];
    snprintf(json, sizeof json, "\"%.*s\"", (int)reader->held, reader->escape);
    struct json_object *value = json_tokener_parse(json);
    text->failed |= !value;
    fm_buf_append(text, json_object_get_string(value), (size_t)json_object_get_string_len(value));
    json_object_put(value);
    reader->held = 0;
}

/* Ends half of a pair that no second half follows. */
static void end_half(struct fm_custom_reader *reader, char byte, struct fm_buf *text) {
    bool begun = reader->held == 7;
    if ((reader->held == 6 && byte != '\\') || (begun && byte != 'u')) {
        reader->held = 6;
        end_escape(reader, text);
        reader->escape[0] = '\\';
        reader->held = begun ? 1 : 0;
    }
}

/* Takes a byte inside of the text's string. */
static void take_byte(struct fm_custom_reader *reader, char byte, struct fm_buf *text) {
    end_half(reader, byte, text);
    if (reader->held == 0 && byte == '"') {
        reader->place = FM_CUSTOM_AFTER;
    } else if (reader->held > 0 || byte == '\\') {
        reader->escape[reader->held++] = byte;
        if (reader->held == length_of(reader)) {
            end_escape(reader, text);
        }
    } else {
        fm_buf_append_char(text, byte);
    }
}

void fm_custom_read(struct fm_custom_reader *reader, const char *piece, size_t len, struct fm_buf *text) {
    for (size_t i = 0; i < len; i++) {
        if (reader->place == FM_CUSTOM_TEXT) {
            take_byte(reader, piece[i], text);
        } else if (reader->place == FM_CUSTOM_BEFORE && piece[i] == '"' && ++reader->quotes == 3) {
            reader->place = FM_CUSTOM_TEXT;
        }
    }
}
