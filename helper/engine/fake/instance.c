/*
 * Writes a small instance of a JSON schema, for the schemas in tests that use the fake engine. Exactly one schema
 * decides each value. If a schema has $ref, anyOf or oneOf, the schema named there decides, and no other keyword may
 * restrict the value. So two schemas never have to be combined. Schemas that need to be combined are refused, and so
 * are unknown keywords.
 */
#include "engine/fake/instance.h"
#include "base/utf8.h"
#include "protocol/json_writer.h"

#include <json-c/json.h>
#include <json-c/json_pointer.h>
#include <math.h>
#include <string.h>

#define DEPTH_MAX   64
#define VALUES_MAX  20000
#define ITEMS_MAX   1000
#define LENGTH_MAX  10000 /* characters of a string */
#define DEEP_REFS   4
#define INTEGER_MAX 9007199254740992.0 /* 2^53 */

struct writer {
    struct json_object *root;
    struct json_object *any; /* the schema {} */
    const char *text;
    size_t len;
    size_t at; /* where the search for the next word begins */
    struct fm_json_writer json;
    struct fm_error *error;
    int values;
    int depth; /* depth of the value that is being written, $refs included */
    int refs;  /* $refs that were followed on the way to this place */
};

static enum fm_code write_value(struct writer *writer, struct json_object *schema);

static enum fm_code unable(struct writer *writer, const char *what) {
    return fm_fail(writer->error, FM_INVALID_REQUEST, "the fake engine can't write an instance of this schema: %s",
                   what);
}

static struct json_object *schema_member(struct json_object *schema, const char *name) {
    struct json_object *value = NULL;
    json_object_object_get_ex(schema, name, &value);
    return value;
}

static bool is_false(struct json_object *value) {
    return json_object_is_type(value, json_type_boolean) && !json_object_get_boolean(value);
}

static double number_of(struct json_object *schema, const char *name, double absent) {
    struct json_object *value = schema_member(schema, name);
    return value ? json_object_get_double(value) : absent;
}

/* ---- keywords ---- */

enum kind { CHOICE, LITERAL, TYPE, CONSTRAINT, UNKNOWN, KINDS };

/* Any other keyword does not restrict the value, or is handled where values of its type are written. */
static const struct {
    const char *name;
    enum kind kind;
} keywords[] = {
    {"$ref", CHOICE},
    {"anyOf", CHOICE},
    {"oneOf", CHOICE},
    {"enum", LITERAL},
    {"const", LITERAL},
    {"type", TYPE},
    {"properties", CONSTRAINT},
    {"required", CONSTRAINT},
    {"format", CONSTRAINT},
    {"items", CONSTRAINT},
    {"minItems", CONSTRAINT},
    {"maxItems", CONSTRAINT},
    {"minLength", CONSTRAINT},
    {"maxLength", CONSTRAINT},
    {"minimum", CONSTRAINT},
    {"maximum", CONSTRAINT},
    {"exclusiveMinimum", CONSTRAINT},
    {"exclusiveMaximum", CONSTRAINT},
    {"additionalProperties", CONSTRAINT},
    {"$dynamicRef", UNKNOWN},
    {"$recursiveRef", UNKNOWN},
    {"allOf", UNKNOWN},
    {"contains", UNKNOWN},
    {"dependencies", UNKNOWN},
    {"dependentRequired", UNKNOWN},
    {"dependentSchemas", UNKNOWN},
    {"if", UNKNOWN},
    {"maxProperties", UNKNOWN},
    {"minProperties", UNKNOWN},
    {"multipleOf", UNKNOWN},
    {"not", UNKNOWN},
    {"pattern", UNKNOWN},
    {"patternProperties", UNKNOWN},
    {"prefixItems", UNKNOWN},
    {"propertyNames", UNKNOWN},
    {"unevaluatedItems", UNKNOWN},
    {"unevaluatedProperties", UNKNOWN},
    {"uniqueItems", UNKNOWN},
};

/* Counts the kinds of keywords, and finds the keyword that decides the value, if the type does not decide it. */
static enum fm_code look_at(struct writer *writer, struct json_object *schema, int *counts, const char **by) {
    *by = NULL;
    for (size_t i = 0; i < sizeof keywords / sizeof keywords[0]; i++) {
        if (!json_object_object_get_ex(schema, keywords[i].name, NULL)) {
            continue;
        }
        if (keywords[i].kind == UNKNOWN) {
            return unable(writer, keywords[i].name);
        }
        counts[keywords[i].kind]++;
        *by = keywords[i].kind == CHOICE || keywords[i].kind == LITERAL ? keywords[i].name : *by;
    }
    int others = counts[CONSTRAINT] + (counts[CHOICE] ? counts[TYPE] : 0);
    if (*by && (others > 0 || counts[CHOICE] + counts[LITERAL] > 1)) {
        return unable(writer, "$ref, anyOf, oneOf, enum or const beside another keyword");
    }
    return FM_OK;
}

/* ---- types ---- */

static bool is_of(struct json_object *value, const char *type) {
    static const char *const names[] = {
        [json_type_null] = "null",     [json_type_boolean] = "boolean", [json_type_double] = "number",
        [json_type_int] = "integer",   [json_type_object] = "object",   [json_type_array] = "array",
        [json_type_string] = "string",
    };
    enum json_type own = json_object_get_type(value);
    return strcmp(names[own], type) == 0 || (own == json_type_int && strcmp(type, "number") == 0);
}

/* The type to write: the first one; without `type`, the one to which a keyword belongs. */
static const char *type_of(struct json_object *schema) {
    struct json_object *type = schema_member(schema, "type");
    if (type) {
        bool list = json_object_is_type(type, json_type_array);
        return json_object_get_string(list ? json_object_array_get_idx(type, 0) : type);
    }
    if (schema_member(schema, "properties") || schema_member(schema, "required") ||
        schema_member(schema, "additionalProperties")) {
        return "object";
    }
    if (json_object_object_get_ex(schema, "items", NULL) || schema_member(schema, "minItems")) {
        return "array";
    }
    bool bounded = schema_member(schema, "minimum") || schema_member(schema, "maximum") ||
                   schema_member(schema, "exclusiveMinimum") || schema_member(schema, "exclusiveMaximum");
    return bounded ? "number" : "string";
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
        fm_buf_append_str(out, "word"); /* the text has no words */
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

static enum fm_code write_string(struct writer *writer, struct json_object *schema) {
    double least = number_of(schema, "minLength", 0);
    double most = number_of(schema, "maxLength", INFINITY);
    struct fm_buf text;
    if (schema_member(schema, "format")) {
        return unable(writer, "format");
    }
    if (least > most || least > LENGTH_MAX) {
        return unable(writer, "minLength");
    }
    fm_buf_init(&text, LENGTH_MAX * 8 + writer->len);
    collect_words(writer, least, most, &text);
    fm_json_string(&writer->json, text.data ? text.data : "", text.len);
    bool failed = text.failed;
    fm_buf_free(&text);
    return failed ? fm_fail_no_memory(writer->error) : FM_OK;
}

/* ---- numbers ---- */

/* The integer within the bounds that is nearest to 0. */
static enum fm_code write_number(struct writer *writer, struct json_object *schema) {
    double above = number_of(schema, "exclusiveMinimum", -INFINITY);
    double below = number_of(schema, "exclusiveMaximum", INFINITY);
    double least = fmax(ceil(number_of(schema, "minimum", -INFINITY)), floor(above) + 1);
    double most = fmin(floor(number_of(schema, "maximum", INFINITY)), ceil(below) - 1);
    double number = least > 0 ? least : most < 0 ? most : 0;
    bool draft_4 = json_object_is_type(schema_member(schema, "exclusiveMinimum"), json_type_boolean) ||
                   json_object_is_type(schema_member(schema, "exclusiveMaximum"), json_type_boolean);
    if (least > most || draft_4 || fabs(number) > INTEGER_MAX) {
        return unable(writer, "minimum and maximum");
    }
    fm_json_int(&writer->json, (int64_t)number);
    return FM_OK;
}

/* ---- arrays and objects ---- */

/* Writes as many items as there must be, but at least one if the schema describes items. */
static enum fm_code write_array(struct writer *writer, struct json_object *schema) {
    double least = number_of(schema, "minItems", 0);
    double most = number_of(schema, "maxItems", INFINITY);
    struct json_object *items = schema_member(schema, "items");
    bool shown = items && !is_false(items) && writer->refs <= DEEP_REFS;
    double count = fmin(fmax(least, shown), most);
    if (json_object_is_type(items, json_type_array) || least > most || count > ITEMS_MAX) {
        return unable(writer, "items, minItems and maxItems");
    }
    enum fm_code code = FM_OK;
    fm_json_array_begin(&writer->json);
    for (size_t i = 0; i < (size_t)count && code == FM_OK; i++) {
        code = write_value(writer, items ? items : writer->any);
    }
    fm_json_array_end(&writer->json);
    return code;
}

static bool is_required(struct json_object *schema, const char *name) {
    struct json_object *required = schema_member(schema, "required");
    for (size_t i = 0; required && i < json_object_array_length(required); i++) {
        if (strcmp(json_object_get_string(json_object_array_get_idx(required, i)), name) == 0) {
            return true;
        }
    }
    return false;
}

static enum fm_code write_key(struct writer *writer, const char *name, struct json_object *schema) {
    fm_json_key_text(&writer->json, name, strlen(name));
    return write_value(writer, schema);
}

static enum fm_code write_properties(struct writer *writer, struct json_object *schema,
                                     struct json_object *properties) {
    enum fm_code code = FM_OK;
    struct json_object_iter member_at;
    json_object_object_foreachC(properties, member_at) {
        bool optional = !is_false(member_at.val) && writer->refs <= DEEP_REFS;
        bool wanted = optional || is_required(schema, member_at.key);
        code = code == FM_OK && wanted ? write_key(writer, member_at.key, member_at.val) : code;
    }
    return code;
}

/* Writes all properties, then those that are required without being described. */
static enum fm_code write_object(struct writer *writer, struct json_object *schema) {
    struct json_object *properties = schema_member(schema, "properties");
    struct json_object *required = schema_member(schema, "required");
    struct json_object *rest = schema_member(schema, "additionalProperties");
    fm_json_object_begin(&writer->json);
    enum fm_code code = properties ? write_properties(writer, schema, properties) : FM_OK;
    for (size_t i = 0; required && i < json_object_array_length(required) && code == FM_OK; i++) {
        const char *name = json_object_get_string(json_object_array_get_idx(required, i));
        bool written = properties && json_object_object_get_ex(properties, name, NULL);
        code = written ? FM_OK : write_key(writer, name, rest ? rest : writer->any);
    }
    fm_json_object_end(&writer->json);
    return code;
}

/* ---- values ---- */

static enum fm_code write_type(struct writer *writer, struct json_object *schema) {
    const char *type = type_of(schema);
    if (strcmp(type, "object") == 0) {
        return write_object(writer, schema);
    }
    if (strcmp(type, "array") == 0) {
        return write_array(writer, schema);
    }
    if (strcmp(type, "string") == 0) {
        return write_string(writer, schema);
    }
    if (strcmp(type, "boolean") == 0) {
        fm_json_bool(&writer->json, true);
        return FM_OK;
    }
    if (strcmp(type, "null") == 0) {
        fm_json_null(&writer->json);
        return FM_OK;
    }
    return write_number(writer, schema);
}

/* The type to write: the first value of `type`, if the schema has one. */
static enum fm_code write_literal(struct writer *writer, struct json_object *schema, const char *by) {
    struct json_object *named = schema_member(schema, by);
    bool list = strcmp(by, "enum") == 0;
    const char *type = schema_member(schema, "type") ? type_of(schema) : NULL;
    for (size_t i = 0; i < (list ? json_object_array_length(named) : 1); i++) {
        struct json_object *value = list ? json_object_array_get_idx(named, i) : named;
        if (!type || is_of(value, type)) {
            fm_json_value(&writer->json, value);
            return FM_OK;
        }
    }
    return unable(writer, "no value of enum or const has the type");
}

static enum fm_code write_choice(struct writer *writer, struct json_object *schema, const char *by) {
    struct json_object *named = schema_member(schema, by);
    struct json_object *target = writer->root;
    if (strcmp(by, "$ref") != 0) {
        return write_value(writer, json_object_array_get_idx(named, 0));
    }
    const char *ref = json_object_get_string(named);
    bool pointer = ref[0] == '#' && (ref[1] == '\0' || ref[1] == '/') && !strchr(ref, '%');
    if (!pointer || (ref[1] && json_pointer_get(writer->root, ref + 1, &target) != 0)) {
        return unable(writer, "$ref is not a JSON pointer into it");
    }
    writer->refs++;
    enum fm_code code = write_value(writer, target);
    writer->refs--;
    return code;
}

static enum fm_code write_value(struct writer *writer, struct json_object *schema) {
    int counts[KINDS] = {0};
    const char *by;
    if (is_false(schema)) {
        return unable(writer, "nothing fits false");
    }
    if (!json_object_is_type(schema, json_type_object) && !json_object_is_type(schema, json_type_boolean)) {
        return unable(writer, "not a schema");
    }
    if (writer->depth >= DEPTH_MAX || ++writer->values > VALUES_MAX) {
        return unable(writer, "it is too deep or too large");
    }
    enum fm_code code = look_at(writer, schema, counts, &by);
    if (code != FM_OK) {
        return code;
    }
    writer->depth++;
    code = counts[CHOICE]    ? write_choice(writer, schema, by)
           : counts[LITERAL] ? write_literal(writer, schema, by)
                             : write_type(writer, schema);
    writer->depth--;
    return code;
}

enum fm_code fm_instance_write(struct json_object *schema, const char *text, size_t len, struct fm_buf *out,
                               struct fm_error *error) {
    struct writer writer = {.root = schema, .text = text, .len = len, .error = error};
    writer.json = fm_json_writer_on(out);
    writer.any = json_object_new_object();
    enum fm_code code = writer.any ? write_value(&writer, schema) : fm_fail_no_memory(error);
    json_object_put(writer.any);
    return code == FM_OK && out->failed ? fm_fail_no_memory(error) : code;
}
