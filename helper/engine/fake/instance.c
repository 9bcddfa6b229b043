/*
 * A small instance of a JSON schema: all schemas that a value has to fit are collected first, by $ref, allOf and the
 * first branch of anyOf and oneOf, and then the value is written that fits all of them.
 */
#include "engine/fake/instance.h"
#include "base/utf8.h"
#include "protocol/json_writer.h"

#include <json-c/json.h>
#include <json-c/json_pointer.h>
#include <math.h>
#include <string.h>

#define PARTS_MAX  64
#define DEPTH_MAX  64
#define VALUES_MAX 20000
#define ITEMS_MAX  1000
#define LENGTH_MAX 10000 /* characters of a string */
#define DEEP_REFS  4

struct writer {
    struct json_object *root;
    const char *text;
    size_t len;
    size_t at; /* where the next word is looked for */
    struct fm_json_writer json;
    struct fm_error *error;
    int values;
};

/* Schemas that the value has to fit, all of them. */
struct parts {
    struct json_object *schemas[PARTS_MAX];
    size_t count;
    int refs;  /* followed on the way from the root */
    int depth; /* arrays and objects around it */
};

static enum fm_code write_parts(struct writer *writer, struct parts *parts);

static enum fm_code unable(struct writer *writer, const char *what) {
    return fm_fail(writer->error, FM_INVALID_REQUEST, "the fake engine can't write an instance of this schema: %s",
                   what);
}

static struct json_object *member(struct json_object *schema, const char *name) {
    struct json_object *value = NULL;
    json_object_object_get_ex(schema, name, &value);
    return value;
}

static bool is_false(struct json_object *value) {
    return json_object_is_type(value, json_type_boolean) && !json_object_get_boolean(value);
}

/* ---- which schemas a value has to fit ---- */

static enum fm_code add(struct writer *writer, struct parts *parts, struct json_object *schema) {
    if (is_false(schema)) {
        return unable(writer, "nothing fits false");
    }
    if (!json_object_is_type(schema, json_type_object)) {
        return json_object_is_type(schema, json_type_boolean) ? FM_OK : unable(writer, "not a schema");
    }
    if (parts->count == PARTS_MAX) {
        return unable(writer, "too many schemas for one value");
    }
    parts->schemas[parts->count++] = schema;
    return FM_OK;
}

static enum fm_code add_ref(struct writer *writer, struct parts *parts, const char *ref) {
    struct json_object *target = writer->root;
    bool pointer = ref[0] == '#' && (ref[1] == '\0' || ref[1] == '/') && !strchr(ref, '%');
    if (!pointer || (ref[1] && json_pointer_get(writer->root, ref + 1, &target) != 0)) {
        return unable(writer, "$ref is not a JSON pointer into it");
    }
    parts->refs++;
    return add(writer, parts, target);
}

/* What stands in place in one of them, after the others. */
static enum fm_code add_in_place(struct writer *writer, struct parts *parts, struct json_object *schema) {
    static const char *const choices[] = {"anyOf", "oneOf"};
    struct json_object *all = member(schema, "allOf");
    struct json_object *ref = member(schema, "$ref");
    enum fm_code code = ref ? add_ref(writer, parts, json_object_get_string(ref)) : FM_OK;
    for (size_t i = 0; all && i < json_object_array_length(all) && code == FM_OK; i++) {
        code = add(writer, parts, json_object_array_get_idx(all, i));
    }
    for (size_t i = 0; i < sizeof choices / sizeof choices[0] && code == FM_OK; i++) {
        struct json_object *choice = member(schema, choices[i]);
        code = choice ? add(writer, parts, json_object_array_get_idx(choice, 0)) : FM_OK;
    }
    return code;
}

/* Keywords that this has no answer to, whatever the value is. */
static enum fm_code check_known(struct writer *writer, struct json_object *schema) {
    static const char *const unknown[] = {"not",
                                          "if",
                                          "contains",
                                          "propertyNames",
                                          "$dynamicRef",
                                          "dependencies",
                                          "dependentRequired",
                                          "dependentSchemas",
                                          "pattern",
                                          "$recursiveRef",
                                          "patternProperties"};
    static const char *const unless_true[] = {"unevaluatedItems", "unevaluatedProperties"};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        if (json_object_object_get_ex(schema, unknown[i], NULL)) {
            return unable(writer, unknown[i]);
        }
    }
    for (size_t i = 0; i < sizeof unless_true / sizeof unless_true[0]; i++) {
        struct json_object *value = member(schema, unless_true[i]);
        if (value && !(json_object_is_type(value, json_type_boolean) && json_object_get_boolean(value))) {
            return unable(writer, unless_true[i]);
        }
    }
    return FM_OK;
}

static enum fm_code complete(struct writer *writer, struct parts *parts) {
    enum fm_code code = FM_OK;
    for (size_t i = 0; i < parts->count && code == FM_OK; i++) { /* it grows */
        code = check_known(writer, parts->schemas[i]);
        code = code == FM_OK ? add_in_place(writer, parts, parts->schemas[i]) : code;
    }
    return code;
}

/* ---- bounds ---- */

/* The largest (`sign` 1) or smallest (-1) of a number keyword; `absent` when none has it. */
static double extreme(const struct parts *parts, const char *name, int sign, double absent) {
    double found = absent;
    for (size_t i = 0; i < parts->count; i++) {
        struct json_object *value = member(parts->schemas[i], name);
        bool number = json_object_is_type(value, json_type_int) || json_object_is_type(value, json_type_double);
        double own = json_object_get_double(value);
        if (number && (found == absent || sign * own > sign * found)) {
            found = own;
        }
    }
    return found;
}

static bool fits_multiples(const struct parts *parts, double number) {
    for (size_t i = 0; i < parts->count; i++) {
        struct json_object *value = member(parts->schemas[i], "multipleOf");
        double step = json_object_get_double(value);
        if (value && fabs(remainder(number, step)) > 1e-9 * step) {
            return false;
        }
    }
    return true;
}

/* Draft 4's true beside a bound leaves the bound out. */
static bool is_left_out(const struct parts *parts, const char *bound, const char *exclusive, double number) {
    for (size_t i = 0; i < parts->count; i++) {
        struct json_object *value = member(parts->schemas[i], bound);
        struct json_object *open = member(parts->schemas[i], exclusive);
        if (value && json_object_is_type(open, json_type_boolean) && json_object_get_boolean(open) &&
            json_object_get_double(value) == number) {
            return true;
        }
    }
    return false;
}

static bool fits_number(const struct parts *parts, bool integer, double number) {
    if (is_left_out(parts, "minimum", "exclusiveMinimum", number) ||
        is_left_out(parts, "maximum", "exclusiveMaximum", number)) {
        return false;
    }
    return number >= extreme(parts, "minimum", 1, -INFINITY) && number <= extreme(parts, "maximum", -1, INFINITY) &&
           number > extreme(parts, "exclusiveMinimum", 1, -INFINITY) &&
           number < extreme(parts, "exclusiveMaximum", -1, INFINITY) && (!integer || number == floor(number)) &&
           fits_multiples(parts, number);
}

static bool fits_length(const struct parts *parts, const char *text, size_t len) {
    double count = (double)fm_utf8_characters(text, len);
    return count >= extreme(parts, "minLength", 1, 0) && count <= extreme(parts, "maxLength", -1, INFINITY);
}

/* ---- types ---- */

static bool same_type(const char *allowed, const char *type) {
    return strcmp(allowed, type) == 0 || (strcmp(allowed, "number") == 0 && strcmp(type, "integer") == 0);
}

static bool allows(struct json_object *schema, const char *type) {
    struct json_object *allowed = member(schema, "type");
    if (!json_object_is_type(allowed, json_type_array)) {
        return !allowed || same_type(json_object_get_string(allowed), type);
    }
    for (size_t i = 0; i < json_object_array_length(allowed); i++) {
        if (same_type(json_object_get_string(json_object_array_get_idx(allowed, i)), type)) {
            return true;
        }
    }
    return false;
}

static bool all_allow(const struct parts *parts, const char *type) {
    for (size_t i = 0; i < parts->count; i++) {
        if (!allows(parts->schemas[i], type)) {
            return false;
        }
    }
    return true;
}

/* Without `type`, the type that a keyword is about. */
static const char *hinted_type(const struct parts *parts) {
    static const char *const hints[][2] = {
        {"properties", "object"},
        {"required", "object"},
        {"additionalProperties", "object"},
        {"items", "array"},
        {"prefixItems", "array"},
        {"minItems", "array"},
        {"minimum", "number"},
        {"maximum", "number"},
        {"multipleOf", "number"},
        {"exclusiveMinimum", "number"},
        {"exclusiveMaximum", "number"},
    };
    for (size_t i = 0; i < parts->count; i++) {
        for (size_t j = 0; j < sizeof hints / sizeof hints[0]; j++) {
            if (json_object_object_get_ex(parts->schemas[i], hints[j][0], NULL)) {
                return hints[j][1];
            }
        }
    }
    return "string";
}

static const char *choose_type(const struct parts *parts) {
    for (size_t i = 0; i < parts->count; i++) {
        struct json_object *named = member(parts->schemas[i], "type");
        size_t count = json_object_is_type(named, json_type_array) ? json_object_array_length(named) : named != NULL;
        for (size_t j = 0; j < count; j++) {
            bool list = json_object_is_type(named, json_type_array);
            const char *type = json_object_get_string(list ? json_object_array_get_idx(named, j) : named);
            if (all_allow(parts, type)) {
                return type;
            }
            if (strcmp(type, "number") == 0 && all_allow(parts, "integer")) {
                return "integer";
            }
        }
        if (count) {
            return NULL;
        }
    }
    return hinted_type(parts);
}

/* ---- enum and const ---- */

static bool equal(struct json_object *one, struct json_object *other) {
    bool numbers = (json_object_is_type(one, json_type_int) || json_object_is_type(one, json_type_double)) &&
                   (json_object_is_type(other, json_type_int) || json_object_is_type(other, json_type_double));
    return numbers ? json_object_get_double(one) == json_object_get_double(other) : json_object_equal(one, other);
}

static bool in_literals(struct json_object *schema, struct json_object *value) {
    struct json_object *list = member(schema, "enum");
    bool found = !list;
    for (size_t i = 0; list && i < json_object_array_length(list) && !found; i++) {
        found = equal(json_object_array_get_idx(list, i), value);
    }
    return found && (!json_object_object_get_ex(schema, "const", NULL) || equal(member(schema, "const"), value));
}

static const char *type_of(struct json_object *value) {
    double number = json_object_get_double(value);
    switch (json_object_get_type(value)) {
    case json_type_null: return "null";
    case json_type_boolean: return "boolean";
    case json_type_int: return "integer";
    case json_type_double: return number == floor(number) ? "integer" : "number";
    case json_type_string: return "string";
    case json_type_array: return "array";
    default: return "object";
    }
}

static bool fits(const struct parts *parts, struct json_object *value) {
    const char *type = type_of(value);
    for (size_t i = 0; i < parts->count; i++) {
        if (!in_literals(parts->schemas[i], value)) {
            return false;
        }
    }
    if (!all_allow(parts, type)) {
        return false;
    }
    if (json_object_is_type(value, json_type_string)) {
        return fits_length(parts, json_object_get_string(value), (size_t)json_object_get_string_len(value));
    }
    bool number = json_object_is_type(value, json_type_int) || json_object_is_type(value, json_type_double);
    return !number || fits_number(parts, false, json_object_get_double(value));
}

/* Beside them, these would have to be looked at too. */
static bool has_structure(const struct parts *parts) {
    static const char *const names[] = {
        "properties", "required",      "additionalProperties", "items",       "prefixItems", "minItems",
        "maxItems",   "minProperties", "maxProperties",        "uniqueItems", "format"};
    for (size_t i = 0; i < parts->count; i++) {
        for (size_t j = 0; j < sizeof names / sizeof names[0]; j++) {
            if (json_object_object_get_ex(parts->schemas[i], names[j], NULL)) {
                return true;
            }
        }
    }
    return false;
}

static bool has_literals(const struct parts *parts, size_t *where) {
    for (*where = 0; *where < parts->count; ++*where) {
        struct json_object *schema = parts->schemas[*where];
        if (json_object_object_get_ex(schema, "const", NULL) || json_object_object_get_ex(schema, "enum", NULL)) {
            return true;
        }
    }
    return false;
}

static enum fm_code write_literal(struct writer *writer, const struct parts *parts, struct json_object *schema) {
    struct json_object *list = member(schema, "enum");
    size_t count = list ? json_object_array_length(list) : 1;
    for (size_t i = 0; i < count; i++) {
        struct json_object *value = list ? json_object_array_get_idx(list, i) : member(schema, "const");
        if (fits(parts, value)) {
            bool plain = !json_object_is_type(value, json_type_object) &&
                         !json_object_is_type(value, json_type_array) && !json_object_is_type(value, json_type_string);
            if (!plain && has_structure(parts)) {
                return unable(writer, "enum or const beside what they would have to be compared with");
            }
            fm_json_value(&writer->json, value);
            return FM_OK;
        }
    }
    return unable(writer, "no value of enum or const fits the rest");
}

/* ---- strings ---- */

static bool is_space(char c) {
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static void append_word(struct writer *writer, struct fm_buf *out) {
    for (size_t i = 0; i < writer->len && (writer->at >= writer->len || is_space(writer->text[writer->at])); i++) {
        writer->at = writer->at >= writer->len ? 0 : writer->at + 1;
    }
    size_t start = writer->at < writer->len ? writer->at : 0;
    size_t end = start;
    while (end < writer->len && !is_space(writer->text[end])) {
        end++;
    }
    if (end == start) {
        fm_buf_append_str(out, "word"); /* the text has none */
    } else {
        fm_buf_append(out, writer->text + start, end - start);
    }
    writer->at = end;
}

/* Words until there are `least` characters, cut to `most`. */
static void collect_words(struct writer *writer, double least, double most, struct fm_buf *out) {
    append_word(writer, out);
    while (!out->failed && (double)fm_utf8_characters(out->data, out->len) < least) {
        fm_buf_append_char(out, ' ');
        append_word(writer, out);
    }
    size_t kept = 0;
    for (size_t i = 0; i < out->len && (double)kept <= most; i++) {
        bool begins = ((unsigned char)out->data[i] & 0xC0) != 0x80;
        kept += begins;
        if ((double)kept > most) {
            out->len = i;
        }
    }
}

static const char *sample_of(const char *format) {
    static const char *const samples[][2] = {
        {"date", "2001-02-03"},
        {"date-time", "2001-02-03T04:05:06Z"},
        {"duration", "P1D"},
        {"email", "user@example.com"},
        {"hostname", "example.com"},
        {"ipv4", "192.0.2.1"},
        {"ipv6", "2001:db8::1"},
        {"json-pointer", "/a"},
        {"regex", "a"},
        {"time", "04:05:06Z"},
        {"uri", "https://example.com/"},
        {"uri-reference", "/a"},
        {"uuid", "123e4567-e89b-42d3-a456-426614174000"},
    };
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        if (strcmp(samples[i][0], format) == 0) {
            return samples[i][1];
        }
    }
    return NULL;
}

static enum fm_code write_format(struct writer *writer, const struct parts *parts, const char *format) {
    const char *sample = sample_of(format);
    if (!sample || !fits_length(parts, sample, strlen(sample))) {
        return unable(writer, "format");
    }
    for (size_t i = 0; i < parts->count; i++) {
        struct json_object *other = member(parts->schemas[i], "format");
        if (other && strcmp(json_object_get_string(other), format) != 0) {
            return unable(writer, "two formats");
        }
    }
    fm_json_str(&writer->json, sample);
    return FM_OK;
}

static enum fm_code write_string(struct writer *writer, const struct parts *parts) {
    double least = extreme(parts, "minLength", 1, 0);
    double most = extreme(parts, "maxLength", -1, INFINITY);
    struct fm_buf words;
    for (size_t i = 0; i < parts->count; i++) {
        struct json_object *format = member(parts->schemas[i], "format");
        if (format) {
            return write_format(writer, parts, json_object_get_string(format));
        }
    }
    if (least > most || least > LENGTH_MAX) {
        return unable(writer, "minLength");
    }
    fm_buf_init(&words, LENGTH_MAX * 8 + writer->len);
    collect_words(writer, least, most, &words);
    fm_json_string(&writer->json, words.data ? words.data : "", words.len);
    bool failed = words.failed;
    fm_buf_free(&words);
    return failed ? fm_fail_no_memory(writer->error) : FM_OK;
}

/* ---- numbers ---- */

/* The first of a few candidates around the bounds that fits; NAN for none. */
static double choose_number(const struct parts *parts, bool integer) {
    double step = extreme(parts, "multipleOf", 1, 0);
    double low = fmax(extreme(parts, "minimum", 1, -INFINITY), extreme(parts, "exclusiveMinimum", 1, -INFINITY));
    double high = fmin(extreme(parts, "maximum", -1, INFINITY), extreme(parts, "exclusiveMaximum", -1, INFINITY));
    double unit = step > 0 ? step : 1;
    if (fits_number(parts, integer, 0)) {
        return 0;
    }
    if (fits_number(parts, integer, (low + high) / 2)) {
        return (low + high) / 2;
    }
    for (int i = 0; i < 1000; i++) {
        double up = (ceil(low / unit) + i) * unit;
        double down = (floor(high / unit) - i) * unit;
        if (isfinite(up) && fits_number(parts, integer, up)) {
            return up;
        }
        if (isfinite(down) && fits_number(parts, integer, down)) {
            return down;
        }
    }
    return NAN;
}

static enum fm_code write_number(struct writer *writer, const struct parts *parts, bool integer) {
    double number = choose_number(parts, integer);
    if (isnan(number)) {
        return unable(writer, "minimum, maximum and multipleOf");
    }
    if (number == floor(number) && fabs(number) <= 9007199254740992.0) {
        fm_json_int(&writer->json, (int64_t)number);
    } else {
        fm_json_double(&writer->json, number);
    }
    return FM_OK;
}

/* ---- arrays ---- */

/* What item `index` has to fit. */
static enum fm_code parts_of_item(struct writer *writer, const struct parts *parts, size_t index, struct parts *item) {
    enum fm_code code = FM_OK;
    item->refs = parts->refs;
    item->depth = parts->depth + 1;
    item->count = 0;
    for (size_t i = 0; i < parts->count && code == FM_OK; i++) {
        struct json_object *schema = parts->schemas[i];
        struct json_object *items = member(schema, "items");
        bool old = json_object_is_type(items, json_type_array);
        struct json_object *prefix = old ? items : member(schema, "prefixItems");
        struct json_object *rest = old ? member(schema, "additionalItems") : items;
        size_t count = prefix ? json_object_array_length(prefix) : 0;
        struct json_object *own = index < count ? json_object_array_get_idx(prefix, index) : rest;
        code = own ? add(writer, item, own) : FM_OK;
    }
    return code;
}

/* How many items show what the schema says, where nothing says how many there are. */
static double items_shown(const struct parts *parts) {
    double shown = 0;
    for (size_t i = 0; i < parts->count; i++) {
        struct json_object *items = member(parts->schemas[i], "items");
        bool old = json_object_is_type(items, json_type_array);
        struct json_object *prefix = old ? items : member(parts->schemas[i], "prefixItems");
        double count = prefix ? (double)json_object_array_length(prefix) : (double)(items && !is_false(items));
        shown = fmax(shown, count);
    }
    return parts->refs > DEEP_REFS ? 0 : shown;
}

static bool wants_unique(const struct parts *parts) {
    for (size_t i = 0; i < parts->count; i++) {
        struct json_object *unique = member(parts->schemas[i], "uniqueItems");
        if (unique && json_object_get_boolean(unique)) {
            return true;
        }
    }
    return false;
}

static enum fm_code write_array(struct writer *writer, const struct parts *parts) {
    double least = extreme(parts, "minItems", 1, 0);
    double most = extreme(parts, "maxItems", -1, INFINITY);
    bool unique = wants_unique(parts);
    double count = fmin(fmax(least, unique ? fmin(1, items_shown(parts)) : items_shown(parts)), most);
    if (least > most || count > ITEMS_MAX || (unique && count > 1)) {
        return unable(writer, "minItems, maxItems and uniqueItems");
    }
    enum fm_code code = FM_OK;
    fm_json_array_begin(&writer->json);
    for (size_t i = 0; i < (size_t)count && code == FM_OK; i++) {
        struct parts item;
        code = parts_of_item(writer, parts, i, &item);
        code = code == FM_OK ? write_parts(writer, &item) : code;
    }
    fm_json_array_end(&writer->json);
    return code;
}

/* ---- objects ---- */

static bool is_required(const struct parts *parts, const char *name) {
    for (size_t i = 0; i < parts->count; i++) {
        struct json_object *required = member(parts->schemas[i], "required");
        size_t count = required ? json_object_array_length(required) : 0;
        for (size_t j = 0; j < count; j++) {
            if (strcmp(json_object_get_string(json_object_array_get_idx(required, j)), name) == 0) {
                return true;
            }
        }
    }
    return false;
}

/* What the value of a key has to fit. `*forbidden`: the key may not be there. */
static enum fm_code parts_of_key(struct writer *writer, const struct parts *parts, const char *name,
                                 struct parts *value, bool *forbidden) {
    enum fm_code code = FM_OK;
    value->refs = parts->refs;
    value->depth = parts->depth + 1;
    value->count = 0;
    *forbidden = false;
    for (size_t i = 0; i < parts->count && code == FM_OK; i++) {
        struct json_object *properties = member(parts->schemas[i], "properties");
        struct json_object *own = NULL;
        if (!properties || !json_object_object_get_ex(properties, name, &own)) {
            own = member(parts->schemas[i], "additionalProperties");
        }
        *forbidden = *forbidden || is_false(own);
        code = own && !is_false(own) ? add(writer, value, own) : FM_OK;
    }
    return code;
}

/* One object on its way. */
struct object {
    const struct parts *parts;
    struct json_object *written; /* its keys */
    double most;
    double required_left; /* required keys that are not written yet */
};

static enum fm_code write_key(struct writer *writer, struct object *object, const char *name) {
    struct parts value;
    bool forbidden;
    bool required = is_required(object->parts, name);
    double kept = json_object_object_length(object->written) + object->required_left;
    bool wanted = required || (object->parts->refs <= DEEP_REFS && kept < object->most);
    if (json_object_object_get_ex(object->written, name, NULL) || !wanted) {
        return FM_OK;
    }
    enum fm_code code = parts_of_key(writer, object->parts, name, &value, &forbidden);
    if (code == FM_OK && forbidden) {
        return required ? unable(writer, "a required property is forbidden") : FM_OK;
    }
    if (code == FM_OK && json_object_object_add(object->written, name, NULL) != 0) {
        return fm_fail_no_memory(writer->error);
    }
    object->required_left -= required;
    fm_json_key_text(&writer->json, name, strlen(name));
    return code == FM_OK ? write_parts(writer, &value) : code;
}

static enum fm_code write_properties(struct writer *writer, struct object *object, struct json_object *schema) {
    struct json_object *properties = member(schema, "properties");
    struct json_object *required = member(schema, "required");
    enum fm_code code = FM_OK;
    if (properties) {
        struct json_object_iter member_at;
        json_object_object_foreachC(properties, member_at) {
            const char *name = member_at.key;
            code = code == FM_OK ? write_key(writer, object, name) : code;
        }
    }
    for (size_t i = 0; required && i < json_object_array_length(required) && code == FM_OK; i++) {
        code = write_key(writer, object, json_object_get_string(json_object_array_get_idx(required, i)));
    }
    return code;
}

/* How many keys are required, each counted where it stands first. */
static enum fm_code count_required(struct writer *writer, const struct parts *parts, double *count) {
    struct json_object *names = json_object_new_object();
    bool failed = !names;
    for (size_t i = 0; i < parts->count && !failed; i++) {
        struct json_object *required = member(parts->schemas[i], "required");
        for (size_t j = 0; required && j < json_object_array_length(required) && !failed; j++) {
            const char *name = json_object_get_string(json_object_array_get_idx(required, j));
            failed = json_object_object_add(names, name, NULL) != 0;
        }
    }
    *count = failed ? 0 : json_object_object_length(names);
    json_object_put(names);
    return failed ? fm_fail_no_memory(writer->error) : FM_OK;
}

static enum fm_code write_object(struct writer *writer, const struct parts *parts) {
    struct object object = {.parts = parts, .most = extreme(parts, "maxProperties", -1, INFINITY)};
    enum fm_code code = count_required(writer, parts, &object.required_left);
    object.written = code == FM_OK ? json_object_new_object() : NULL;
    if (code == FM_OK && !object.written) {
        code = fm_fail_no_memory(writer->error);
    }
    if (code == FM_OK && object.most < object.required_left) {
        code = unable(writer, "maxProperties");
    }
    fm_json_object_begin(&writer->json);
    for (size_t i = 0; i < parts->count && code == FM_OK; i++) {
        code = write_properties(writer, &object, parts->schemas[i]);
    }
    fm_json_object_end(&writer->json);
    if (code == FM_OK && json_object_object_length(object.written) < extreme(parts, "minProperties", 1, 0)) {
        code = unable(writer, "minProperties");
    }
    json_object_put(object.written);
    return code;
}

/* ---- values ---- */

static enum fm_code write_type(struct writer *writer, const struct parts *parts) {
    const char *type = choose_type(parts);
    if (!type) {
        return unable(writer, "type");
    }
    if (strcmp(type, "object") == 0) {
        return write_object(writer, parts);
    }
    if (strcmp(type, "array") == 0) {
        return write_array(writer, parts);
    }
    if (strcmp(type, "string") == 0) {
        return write_string(writer, parts);
    }
    if (strcmp(type, "boolean") == 0) {
        fm_json_bool(&writer->json, true);
        return FM_OK;
    }
    if (strcmp(type, "null") == 0) {
        fm_json_null(&writer->json);
        return FM_OK;
    }
    return write_number(writer, parts, strcmp(type, "integer") == 0);
}

static enum fm_code write_parts(struct writer *writer, struct parts *parts) {
    size_t literal;
    enum fm_code code = complete(writer, parts);
    if (code != FM_OK) {
        return code;
    }
    if (parts->depth > DEPTH_MAX || ++writer->values > VALUES_MAX) {
        return unable(writer, "it is too deep or too large");
    }
    return has_literals(parts, &literal) ? write_literal(writer, parts, parts->schemas[literal])
                                         : write_type(writer, parts);
}

enum fm_code fm_instance_write(struct json_object *schema, const char *text, size_t len, struct fm_buf *out,
                               struct fm_error *error) {
    struct writer writer = {.root = schema, .text = text, .len = len, .error = error};
    struct parts parts = {.count = 0};
    writer.json = fm_json_writer_on(out);
    enum fm_code code = add(&writer, &parts, schema);
    code = code == FM_OK ? write_parts(&writer, &parts) : code;
    return code == FM_OK && out->failed ? fm_fail_no_memory(error) : code;
}
