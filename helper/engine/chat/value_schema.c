/* A subset of JSON Schema, for forms that do not write values as JSON. */
#include "engine/chat/value_schema.h"

#include <json-c/json.h>
#include <string.h>

#define FOLLOW_MAX    16   /* $refs one after another */
#define LOOKED_AT_MAX 1000 /* schemas; if there are more, a value may be of any type */

/* By their bits. */
static const char *const type_names[] = {"string", "number", "integer", "boolean", "null", "array", "object", NULL};

static bool is_bool(struct json_object *value) {
    return json_object_is_type(value, json_type_boolean);
}

static bool is_object(struct json_object *value) {
    return json_object_is_type(value, json_type_object);
}

static bool is_schema(struct json_object *value) {
    return is_object(value) || is_bool(value);
}

static bool is_array(struct json_object *value) {
    return json_object_is_type(value, json_type_array) && json_object_array_length(value) > 0;
}

static bool is_number(struct json_object *value) {
    return json_object_is_type(value, json_type_int) || json_object_is_type(value, json_type_double);
}

static bool is_count(struct json_object *value, int64_t most) {
    return json_object_is_type(value, json_type_int) && json_object_get_int64(value) >= 0 &&
           json_object_get_int64(value) <= most;
}

static bool is_items_count(struct json_object *value) {
    return is_count(value, FM_VALUE_ITEMS_MAX);
}

static bool is_length(struct json_object *value) {
    return is_count(value, FM_VALUE_LENGTH_MAX);
}

static bool are_strings(struct json_object *value) {
    bool strings = json_object_is_type(value, json_type_array);
    for (size_t i = 0; strings && i < json_object_array_length(value); i++) {
        strings = json_object_is_type(json_object_array_get_idx(value, i), json_type_string);
    }
    return strings;
}

static bool is_string(struct json_object *value) {
    return json_object_is_type(value, json_type_string);
}

/*
 * Whether the pattern has alternatives only inside brackets, and `^` and `$` only at its ends. If one of them is
 * missing, any text may come at that end.
 */
static bool is_pattern(struct json_object *value) {
    const char *text = is_string(value) ? json_object_get_string(value) : "|";
    size_t depth = 0;
    bool in_set = false;
    for (size_t i = 0; text[i]; i++) {
        if (text[i] == '\\' && text[i + 1]) {
            i++;
        } else if (in_set || text[i] == '[') {
            in_set = text[i] != ']';
        } else if ((text[i] == '^' && i > 0) || (text[i] == '$' && text[i + 1]) || (text[i] == '|' && depth == 0)) {
            return false;
        }
        depth += !in_set && text[i] == '(';
        depth -= !in_set && text[i] == ')' && depth > 0;
    }
    return true;
}

static bool is_anything(struct json_object *value) {
    (void)value;
    return true;
}

static bool is_nothing(struct json_object *value) {
    (void)value;
    return false;
}

static unsigned types_named(struct json_object *value);

static bool is_type(struct json_object *value) {
    return types_named(value) != 0;
}

/* The values that keywords must have. A grammar enforces no keywords except these; many others only describe. */
static const struct keyword {
    const char *name;
    bool (*takes)(struct json_object *value);
} keywords[] = {
    {"type", is_type},
    {"enum", is_array},
    {"const", is_anything},
    {"anyOf", is_array},
    {"oneOf", is_array}, /* treated as anyOf: that a value fits only one branch can't be enforced */
    {"items", is_schema},
    {"minItems", is_items_count},
    {"maxItems", is_items_count},
    {"properties", is_object},
    {"required", are_strings},
    {"additionalProperties", is_schema},
    {"minLength", is_length},
    {"maxLength", is_length},
    {"format", is_string},
    {"pattern", is_pattern},
    {"minimum", is_number},
    {"maximum", is_number},
    {"exclusiveMinimum", is_number},
    {"exclusiveMaximum", is_number},
    {"multipleOf", is_number},
    {"$id", is_nothing},
    {"$ref", is_nothing}, /* a reference that leads nowhere */
    {"allOf", is_nothing}, /* a list of several */
    {"additionalItems", is_nothing},
    {"maxProperties", is_nothing},
    {"minProperties", is_nothing},
    {"patternProperties", is_nothing},
    {"prefixItems", is_nothing},
    {NULL, NULL},
};

static const struct keyword *keyword_of(const char *name) {
    const struct keyword *keyword = keywords;
    while (keyword->name && strcmp(keyword->name, name) != 0) {
        keyword++;
    }
    return keyword->name ? keyword : NULL;
}

/* Whether `schema` has none of the keywords in the table, except `one` and `other`. */
static bool has_only(struct json_object *schema, const char *one, const char *other) {
    struct json_object_iter at;
    json_object_object_foreachC(schema, at) {
        if (keyword_of(at.key) && strcmp(at.key, one) != 0 && strcmp(at.key, other) != 0) {
            return false;
        }
    }
    return true;
}

/* Follows one reference, or the only schema of "allOf"; NULL: there is nothing to follow. */
static struct json_object *one_step(struct json_object *root, struct json_object *schema) {
    static const char *const places[] = {"$defs", "definitions"};
    struct json_object *ref = json_object_object_get(schema, "$ref");
    struct json_object *all = json_object_object_get(schema, "allOf");
    if (is_array(all) && json_object_array_length(all) == 1 && has_only(schema, "allOf", "allOf")) {
        return json_object_array_get_idx(all, 0);
    }
    if (!json_object_is_type(ref, json_type_string) || !has_only(schema, "$ref", "$ref")) {
        return NULL;
    }
    const char *text = json_object_get_string(ref);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        size_t len = strlen(places[i]);
        if (strncmp(text, "#/", 2) == 0 && strncmp(text + 2, places[i], len) == 0 && text[2 + len] == '/' &&
            !strpbrk(text + 3 + len, "/~%")) {
            return json_object_object_get(json_object_object_get(root, places[i]), text + 3 + len);
        }
    }
    return NULL;
}

/* Follows references to their end. A schema that still has a reference then is not in the subset. */
static struct json_object *follow_references(struct json_object *root, struct json_object *schema) {
    struct json_object *next = is_object(schema) ? one_step(root, schema) : NULL;
    for (int i = 0; i < FOLLOW_MAX && is_object(next); i++) {
        schema = next;
        next = one_step(root, schema);
    }
    return schema;
}

unsigned fm_value_type(struct json_object *value) {
    static const unsigned types[] = {
        [json_type_null] = FM_VALUE_NULL,       [json_type_boolean] = FM_VALUE_BOOLEAN,
        [json_type_double] = FM_VALUE_NUMBER,   [json_type_int] = FM_VALUE_INTEGER,
        [json_type_object] = FM_VALUE_OBJECT,   [json_type_array] = FM_VALUE_ARRAY,
        [json_type_string] = FM_VALUE_STRING,
    };
    return types[json_object_get_type(value)];
}

static unsigned type_named(struct json_object *name) {
    for (size_t i = 0; json_object_is_type(name, json_type_string) && type_names[i]; i++) {
        if (strcmp(json_object_get_string(name), type_names[i]) == 0) {
            return 1u << i;
        }
    }
    return 0;
}

/* The types in "type"; 0 if its value is wrong. */
static unsigned types_named(struct json_object *value) {
    unsigned types = 0;
    if (!is_array(value)) {
        return type_named(value);
    }
    for (size_t i = 0; i < json_object_array_length(value); i++) {
        unsigned type = type_named(json_object_array_get_idx(value, i));
        if (type == 0) {
            return 0;
        }
        types |= type;
    }
    return types;
}

static bool keywords_fit(struct json_object *schema) {
    struct json_object_iter at;
    json_object_object_foreachC(schema, at) {
        const struct keyword *keyword = keyword_of(at.key);
        if (keyword && !keyword->takes(at.val)) {
            return false;
        }
    }
    return fm_value_names_required(schema);
}

/* Whether no choice is an array or object, and each has one of the types. */
static bool choices_fit(const struct fm_value_schema *schema) {
    unsigned types = schema->types & ~(unsigned)(FM_VALUE_ARRAY | FM_VALUE_OBJECT);
    types |= types & FM_VALUE_NUMBER ? FM_VALUE_INTEGER : 0;
    for (size_t i = 0; i < schema->choice_count; i++) {
        if (!(fm_value_type(fm_value_schema_choice(schema, i)) & types)) {
            return false;
        }
    }
    return true;
}

bool fm_value_schema_read(struct json_object *root, struct json_object *schema, struct fm_value_schema *out) {
    struct json_object *type = NULL;
    *out = (struct fm_value_schema){.schema = follow_references(root, schema), .types = FM_VALUE_ANY};
    if (is_bool(out->schema) && json_object_get_boolean(out->schema)) {
        return true;
    }
    if (!is_object(out->schema) || !keywords_fit(out->schema)) {
        return false;
    }
    if (json_object_object_get_ex(out->schema, "type", &type)) {
        out->types = types_named(type);
    }
    const char *list = json_object_object_get_ex(out->schema, "anyOf", NULL) ? "anyOf" : "oneOf";
    out->any_of = json_object_object_get(out->schema, list);
    out->choices = json_object_object_get(out->schema, "enum");
    out->is_constant = json_object_object_get_ex(out->schema, "const", &out->constant);
    out->choice_count = out->is_constant ? 1 : out->choices ? json_object_array_length(out->choices) : 0;
    if (out->any_of) {
        return has_only(out->schema, list, list);
    }
    return out->choice_count == 0 ||
           (has_only(out->schema, out->is_constant ? "const" : "enum", "type") && choices_fit(out));
}

struct json_object *fm_value_schema_choice(const struct fm_value_schema *schema, size_t index) {
    return schema->is_constant ? schema->constant : json_object_array_get_idx(schema->choices, index);
}

bool fm_value_schema_limits_text(const struct fm_value_schema *schema) {
    static const char *const keys[] = {"minLength", "maxLength", "format", "pattern"};
    bool limits = false;
    for (size_t i = 0; is_object(schema->schema) && i < sizeof keys / sizeof *keys && !limits; i++) {
        limits = json_object_object_get_ex(schema->schema, keys[i], NULL);
    }
    return limits;
}

size_t fm_value_schema_count(const struct fm_value_schema *schema, const char *key, size_t none) {
    struct json_object *count = is_object(schema->schema) ? json_object_object_get(schema->schema, key) : NULL;
    return count ? (size_t)json_object_get_int64(count) : none;
}

bool fm_value_names_required(struct json_object *schema) {
    struct json_object *properties = json_object_object_get(schema, "properties");
    struct json_object *required = NULL;
    bool named = !json_object_object_get_ex(schema, "required", &required) || json_object_is_type(required, json_type_array);
    for (size_t i = 0; required && named && i < json_object_array_length(required); i++) {
        struct json_object *key = json_object_array_get_idx(required, i);
        named = is_string(key) && json_object_object_get_ex(properties, json_object_get_string(key), NULL);
    }
    return named;
}

bool fm_value_is_key(const char *key) {
    return key[0] && key[strspn(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")] == '\0';
}

bool fm_value_is_required(struct json_object *schema, const char *key) {
    struct json_object *required = json_object_object_get(schema, "required");
    bool found = false;
    for (size_t i = 0; required && i < json_object_array_length(required) && !found; i++) {
        found = strcmp(json_object_get_string(json_object_array_get_idx(required, i)), key) == 0;
    }
    return found;
}

/* The type of a value of "enum" or "const": an integer is a number too. */
static unsigned type_of_choice(struct json_object *value) {
    unsigned type = fm_value_type(value);
    return type | (type & FM_VALUE_INTEGER ? FM_VALUE_NUMBER : 0);
}

/* The types that a value may have; visits `*budget` more schemas. */
static unsigned types_within(struct json_object *root, struct json_object *schema, size_t *budget) {
    static const char *const lists[] = {"anyOf", "oneOf"};
    struct json_object *value;
    unsigned types = FM_VALUE_ANY;
    schema = follow_references(root, schema);
    if (!is_object(schema) || *budget == 0) {
        return FM_VALUE_ANY;
    }
    --*budget;
    if (json_object_object_get_ex(schema, "type", &value) && types_named(value)) {
        types &= types_named(value);
    }
    if (json_object_object_get_ex(schema, "const", &value)) {
        types &= type_of_choice(value);
    }
    value = json_object_object_get(schema, "enum");
    unsigned found = is_array(value) ? 0 : FM_VALUE_ANY;
    for (size_t i = 0; is_array(value) && i < json_object_array_length(value); i++) {
        found |= type_of_choice(json_object_array_get_idx(value, i));
    }
    types &= found;
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
        value = json_object_object_get(schema, lists[k]);
        found = is_array(value) ? 0 : FM_VALUE_ANY;
        for (size_t i = 0; is_array(value) && i < json_object_array_length(value); i++) {
            found |= types_within(root, json_object_array_get_idx(value, i), budget);
        }
        types &= found;
    }
    return types;
}

unsigned fm_value_types(struct json_object *root, struct json_object *schema) {
    size_t budget = LOOKED_AT_MAX;
    return types_within(root, schema, &budget);
}
