/* Builds a json-c tree from checked text. Nothing here is checked again: the text is known to be valid. */
#include "protocol/json_tree.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/*
 * The text being read. It is valid, so strings and containers end before the text ends. Only a number may end at the
 * end of the text.
 */
struct input {
    const char *at;
    const char *end;
    struct fm_buf *scratch;
};

static bool take_value(struct input *in, struct json_object **value);

static void skip_blanks(struct input *in) {
    in->at += strspn(in->at, " \t\r\n");
}

/* ---- strings ---- */

static unsigned hex4(const char *digits) {
    unsigned value = 0;
    for (int i = 0; i < 4; i++) {
        char c = digits[i];
        unsigned digit = c <= '9' ? (unsigned)(c - '0') : (unsigned)((c | 0x20) - 'a') + 10;
        value = value << 4 | digit;
    }
    return value;
}

static void append_code_point(struct fm_buf *out, unsigned code) {
    static const unsigned char leads[] = {0, 0, 0xC0, 0xE0, 0xF0};
    char bytes[4];
    size_t len = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = len - 1; i > 0; i--) {
        bytes[i] = (char)(0x80 | (code & 0x3F));
        code >>= 6;
    }
    bytes[0] = (char)(leads[len] | code);
    fm_buf_append(out, bytes, len);
}

/*
 * Reads an escape; `at` is after "\u". Returns its end, or the end of both escapes of a surrogate pair (RFC 8259
 * section 7).
 */
static const char *append_unicode(struct fm_buf *out, const char *at) {
    unsigned code = hex4(at);
    at += 4;
    if (code >= 0xD800 && code < 0xDC00) {
        code = 0x10000 + ((code - 0xD800) << 10) + (hex4(at + 2) - 0xDC00);
        at += 6;
    }
    append_code_point(out, code);
    return at;
}

/* Reads an escape; `at` is after the backslash. Returns the end of the escape. */
static const char *append_escape(struct fm_buf *out, const char *at) {
    static const char from[] = "bfnrt";
    static const char to[] = "\b\f\n\r\t";
    if (*at == 'u') {
        return append_unicode(out, at + 1);
    }
    const char *found = strchr(from, *at);
    fm_buf_append_char(out, found ? to[found - from] : *at);
    return at + 1;
}

/* Moves `in` from after the opening quote to after the closing one. A string without escapes is not copied. */
static bool take_text(struct input *in, const char **text, size_t *len) {
    const char *start = in->at;
    in->at += strcspn(in->at, "\"\\");
    *text = start;
    *len = (size_t)(in->at - start);
    if (*in->at == '"') {
        in->at++;
        return true;
    }
    fm_buf_reset(in->scratch);
    while (*in->at != '"') {
        fm_buf_append(in->scratch, start, (size_t)(in->at - start));
        start = append_escape(in->scratch, in->at + 1);
        in->at = start + strcspn(start, "\"\\");
    }
    fm_buf_append(in->scratch, start, (size_t)(in->at - start));
    in->at++;
    *text = in->scratch->len ? in->scratch->data : "";
    *len = in->scratch->len;
    return !in->scratch->failed;
}

static bool take_string(struct input *in, struct json_object **value) {
    const char *text;
    size_t len;
    in->at++;
    if (take_text(in, &text, &len)) {
        *value = json_object_new_string_len(text, (int)len);
    }
    return *value != NULL;
}

/* ---- numbers ---- */

/*
 * Makes an integer. An integer beyond 64 bits becomes the nearest 64-bit integer, but is written back with its own
 * digits.
 */
static struct json_object *large_integer(const char *digits, int64_t nearest) {
    struct json_object *value =
        digits[0] == '-' ? json_object_new_int64(nearest) : json_object_new_uint64(strtoull(digits, NULL, 10));
    char *text = value ? strdup(digits) : NULL;
    if (!text) {
        json_object_put(value);
        return NULL;
    }
    json_object_set_serializer(value, json_object_userdata_to_json_string, text, json_object_free_userdata);
    return value;
}

static struct json_object *integer(const char *digits) {
    errno = 0;
    int64_t number = strtoll(digits, NULL, 10);
    return errno == ERANGE ? large_integer(digits, number) : json_object_new_int64(number);
}

static bool take_number(struct input *in, struct json_object **value) {
    const char *start = in->at;
    bool whole = true;
    while (in->at < in->end && *in->at && strchr("+-0123456789.eE", *in->at)) {
        whole = whole && !strchr(".eE", *in->at);
        in->at++;
    }
    fm_buf_reset(in->scratch);
    fm_buf_append(in->scratch, start, (size_t)(in->at - start));
    fm_buf_append_char(in->scratch, '\0');
    if (!in->scratch->failed) {
        const char *text = in->scratch->data;
        *value = whole ? integer(text) : json_object_new_double_s(strtod(text, NULL), text);
    }
    return *value != NULL;
}

/* ---- containers ---- */

/* Takes `value` over, also on failure. False when out of memory. */
static bool add_member(struct json_object *object, const char *name, struct json_object *value) {
    bool added = json_object_object_add(object, name, value) == 0;
    if (!added) {
        json_object_put(value);
    }
    return added;
}

/* Reads one member; `in` is at its name. */
static bool take_member(struct input *in, struct json_object *object) {
    const char *text;
    size_t len;
    in->at++;
    char *name = take_text(in, &text, &len) ? strndup(text, len) : NULL;
    if (!name) {
        return false;
    }
    struct json_object *value = NULL;
    skip_blanks(in);
    in->at++; /* the colon */
    bool ok = take_value(in, &value) && add_member(object, name, value);
    free(name);
    return ok;
}

static bool take_element(struct input *in, struct json_object *array) {
    struct json_object *value = NULL;
    if (!take_value(in, &value)) {
        return false;
    }
    bool added = json_object_array_add(array, value) == 0;
    if (!added) {
        json_object_put(value);
    }
    return added;
}

static bool take_container(struct input *in, struct json_object **value) {
    bool is_object = *in->at == '{';
    char end = is_object ? '}' : ']';
    struct json_object *container = is_object ? json_object_new_object() : json_object_new_array();
    bool ok = container != NULL;
    in->at++;
    skip_blanks(in);
    while (ok && *in->at != end) {
        ok = is_object ? take_member(in, container) : take_element(in, container);
        skip_blanks(in);
        if (ok && *in->at == ',') {
            in->at++;
            skip_blanks(in);
        }
    }
    if (!ok) {
        json_object_put(container);
        return false;
    }
    in->at++;
    *value = container;
    return true;
}

static bool take_value(struct input *in, struct json_object **value) {
    skip_blanks(in);
    switch (*in->at) {
    case '{':
    case '[': return take_container(in, value);
    case '"': return take_string(in, value);
    case 'n': in->at += 4; return true; /* null is NULL */
    case 't':
    case 'f':
        *value = json_object_new_boolean(*in->at == 't');
        in->at += *in->at == 't' ? 4 : 5;
        return *value != NULL;
    default: return take_number(in, value);
    }
}

bool fm_json_tree(const char *text, size_t len, struct fm_buf *scratch, struct json_object **root) {
    struct input in = {.at = text, .end = text + len, .scratch = scratch};
    *root = NULL;
    return take_value(&in, root);
}
