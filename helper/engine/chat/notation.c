/* Arguments in a notation other than JSON: which arguments can be written in it, and turning them into JSON. */
#include "engine/chat/notation.h"
#include "engine/chat/value_schema.h"
#include "protocol/json_writer.h"

#include <json-c/json.h>
#include <string.h>

#define DEPTH_MAX  16   /* schemas inside each other, with the schemas that they refer to */
#define SCHEMA_MAX 2000 /* schemas in all */

#define ESCAPED_MAX 16 /* bytes */

char fm_notation_close(const struct fm_notation *notation) {
    return notation->open == '(' ? ')' : '}';
}

/* ---- which arguments fit ---- */

struct fitting {
    const struct fm_notation *notation;
    struct json_object *root;
    size_t left; /* schemas that may still be visited */
};

static bool value_fits(struct fitting *fitting, struct json_object *schema, int depth);

static bool choices_fit(const struct fitting *fitting, const struct fm_value_schema *schema) {
    const struct fm_notation *notation = fitting->notation;
    bool fit = true;
    for (size_t i = 0; i < schema->choice_count && fit; i++) {
        struct json_object *choice = fm_value_schema_choice(schema, i);
        if (json_object_is_type(choice, json_type_string) && notation->quote_len > 0) {
            fit = !memmem(json_object_get_string(choice), (size_t)json_object_get_string_len(choice), notation->quote,
                          notation->quote_len);
        }
    }
    return fit;
}

static bool members_fit(struct fitting *fitting, struct json_object *schema, int depth) {
    struct json_object *properties = json_object_object_get(schema, "properties");
    struct json_object *more = json_object_object_get(schema, "additionalProperties");
    struct json_object *items = json_object_object_get(schema, "items");
    bool fit = (!json_object_is_type(more, json_type_object) || value_fits(fitting, more, depth + 1)) &&
               (!json_object_is_type(items, json_type_object) || value_fits(fitting, items, depth + 1));
    if (properties && fit) {
        struct json_object_iter at;
        json_object_object_foreachC(properties, at) {
            fit = fit && fm_value_is_key(at.key) && value_fits(fitting, at.val, depth + 1);
        }
    }
    return fit;
}

static bool value_fits(struct fitting *fitting, struct json_object *schema, int depth) {
    struct fm_value_schema read;
    if (depth > DEPTH_MAX || fitting->left == 0 || !fm_value_schema_read(fitting->root, schema, &read)) {
        return false;
    }
    fitting->left--;
    bool fit = choices_fit(fitting, &read);
    for (size_t i = 0; read.any_of && fit && i < json_object_array_length(read.any_of); i++) {
        fit = value_fits(fitting, json_object_array_get_idx(read.any_of, i), depth + 1);
    }
    return fit && (!json_object_is_type(read.schema, json_type_object) || members_fit(fitting, read.schema, depth));
}

bool fm_notation_fits(const struct fm_notation *notation, struct json_object *parameters) {
    struct fitting fitting = {.notation = notation, .root = parameters, .left = SCHEMA_MAX};
    struct fm_value_schema read;
    return !parameters || (json_object_is_type(parameters, json_type_object) &&
                           fm_value_schema_read(parameters, parameters, &read) && !read.any_of &&
                           read.choice_count == 0 && (read.types & FM_VALUE_OBJECT) &&
                           value_fits(&fitting, parameters, 0));
}

/* ---- the reader ---- */

void fm_notation_escape(char c, struct fm_buf *json) {
    struct fm_buf quoted;
    if ((unsigned char)c >= 0x80) {
        fm_buf_append_char(json, c);
        return;
    }
    fm_buf_init(&quoted, ESCAPED_MAX);
    struct fm_json_writer w = fm_json_writer_on(&quoted);
    fm_json_string(&w, &c, 1);
    json->failed |= quoted.failed;
    if (!quoted.failed) {
        fm_buf_append(json, quoted.data + 1, quoted.len - 2);
    }
    fm_buf_free(&quoted);
}

static bool is_of_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_' || c == '-' || c == '+' || c == '.';
}

/* Ends a word: a key, a number, or a literal such as true. */
static void end_word(char next, struct fm_buf *word, struct fm_buf *json) {
    static const struct {
        const char *python;
        const char *json;
    } words[] = {{"True", "true"}, {"False", "false"}, {"None", "null"}};
    struct fm_json_writer w = fm_json_writer_on(json);
    json->failed |= word->failed;
    if (word->len == 0) {
        return;
    }
    if (next == ':' || next == '=') {
        fm_json_string(&w, word->data, word->len);
        fm_buf_reset(word);
        return;
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (word->len == strlen(words[i].python) && memcmp(word->data, words[i].python, word->len) == 0) {
            fm_buf_append_str(json, words[i].json);
            fm_buf_reset(word);
            return;
        }
    }
    fm_buf_append(json, word->data, word->len);
    fm_buf_reset(word);
}

/* Reads a byte of a string between marks, or of the mark before or after the string. */
static void read_between(struct fm_notation_reader *reader, char c, struct fm_buf *json) {
    const struct fm_notation *notation = reader->notation;
    if (c != notation->quote[reader->matched]) {
        for (size_t i = 0; i < reader->matched; i++) {
            fm_notation_escape(notation->quote[i], json);
        }
        reader->matched = 0;
    }
    if (c != notation->quote[reader->matched]) {
        fm_notation_escape(c, json);
    } else if (++reader->matched == notation->quote_len) {
        reader->in_string = reader->in_string ? '\0' : notation->quote[0];
        reader->matched = 0;
        fm_buf_append_char(json, '"');
    }
}

/* Reads a byte of a string with escapes: the escapes of JSON, and one more. */
static void read_string(struct fm_notation_reader *reader, char c, struct fm_buf *json) {
    if (reader->escaped) {
        reader->escaped = false;
        fm_buf_append_str(json, c == '\'' ? "" : "\\");
        fm_buf_append_char(json, c);
    } else if (c == '\\') {
        reader->escaped = true;
    } else if (c == reader->in_string) {
        reader->in_string = '\0';
        fm_buf_append_char(json, '"');
    } else {
        fm_notation_escape(c, json);
    }
}

/* Reads a byte between values. */
static bool read_punctuation(struct fm_notation_reader *reader, char c, struct fm_buf *json) {
    static const char python[] = "()=";
    static const char in_json[] = "{}:";
    const char *other = strchr(python, c);
    c = other && c ? in_json[other - python] : c;
    if ((c == '\'' || c == '"') && reader->notation->quote_len == 0) {
        reader->in_string = c;
        c = '"';
    }
    if (c != ' ') {
        fm_buf_append_char(json, c);
    }
    reader->depth += c == '{' || c == '[';
    reader->depth -= c == '}' || c == ']';
    return reader->depth == 0 && c == '}';
}

bool fm_notation_read(struct fm_notation_reader *reader, char c, struct fm_buf *word, struct fm_buf *json) {
    const struct fm_notation *notation = reader->notation;
    bool begins = !reader->in_string && notation->quote_len > 0 && c == notation->quote[0];
    if (reader->matched > 0 || begins || (reader->in_string && notation->quote_len > 0)) {
        read_between(reader, c, json);
        return false;
    }
    if (reader->in_string) {
        read_string(reader, c, json);
        return false;
    }
    if (is_of_word(c)) {
        fm_buf_append_char(word, c);
        return false;
    }
    end_word(c, word, json);
    return read_punctuation(reader, c, json);
}
