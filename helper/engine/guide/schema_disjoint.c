/* Whether the branches of a oneOf exclude each other, as far as that can be decided without comparing patterns. */
#include "engine/guide/schema_internal.h"

#include <math.h>
#include <string.h>

#define DEPTH_MAX 6 /* depth of $refs, anyOfs and properties that are followed */

enum {
    KIND_NULL = 1,
    KIND_BOOLEAN = 2,
    KIND_INTEGER = 4,
    KIND_FRACTION = 8,
    KIND_STRING = 16,
    KIND_ARRAY = 32,
    KIND_OBJECT = 64,
    KIND_ANY = 127,
};

/* A schema, and the resource that its $refs are relative to. */
struct side {
    struct json_object *schema;
    size_t resource;
};

static bool disjoint(struct fm_schema_work *work, struct side one, struct side other, int depth);

/* Pays for a comparison of up to `bytes`. */
static void spend(struct fm_schema_work *work, size_t bytes) {
    size_t cost = 1 + bytes / 64;
    work->fuel -= cost < work->fuel ? cost : work->fuel;
}

static size_t text_len(struct json_object *value) {
    return json_object_is_type(value, json_type_string) ? (size_t)json_object_get_string_len(value) : 0;
}

/* ---- kinds of values ---- */

static unsigned kind_of_name(const char *name) {
    static const struct {
        const char *name;
        unsigned kind;
    } kinds[] = {
        {"null", KIND_NULL},     {"boolean", KIND_BOOLEAN}, {"integer", KIND_INTEGER},
        {"string", KIND_STRING}, {"array", KIND_ARRAY},     {"number", KIND_INTEGER | KIND_FRACTION},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            return kinds[i].kind;
        }
    }
    return KIND_OBJECT;
}

static unsigned kind_of_value(struct json_object *value) {
    double number = json_object_get_double(value);
    switch (json_object_get_type(value)) {
    case json_type_null: return KIND_NULL;
    case json_type_boolean: return KIND_BOOLEAN;
    case json_type_int: return KIND_INTEGER;
    case json_type_double: return number == floor(number) ? KIND_INTEGER : KIND_FRACTION;
    case json_type_string: return KIND_STRING;
    case json_type_array: return KIND_ARRAY;
    default: return KIND_OBJECT;
    }
}

/* Lists the only values that can fit: the values of `const` or `enum`. False: there is no such list. */
static bool find_values(struct json_object *schema, struct json_object **values, size_t *count) {
    struct json_object *list = fm_schema_member(schema, "enum");
    if (json_object_object_get_ex(schema, "const", NULL)) {
        *values = NULL;
        *count = 1;
        return true;
    }
    *values = list;
    *count = list ? json_object_array_length(list) : 0;
    return list != NULL;
}

static struct json_object *value_at(struct json_object *schema, struct json_object *values, size_t index) {
    return values ? json_object_array_get_idx(values, index) : fm_schema_member(schema, "const");
}

static unsigned kinds(struct fm_schema_work *work, struct json_object *schema) {
    struct json_object *type = fm_schema_member(schema, "type");
    struct json_object *values;
    size_t count;
    unsigned found = type ? 0 : KIND_ANY;
    if (json_object_is_type(type, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(type); i++) {
            found |= kind_of_name(json_object_get_string(json_object_array_get_idx(type, i)));
        }
    } else if (type) {
        found = kind_of_name(json_object_get_string(type));
    }
    if (find_values(schema, &values, &count)) {
        unsigned of_values = 0;
        for (size_t i = 0; i < count; i++) {
            of_values |= kind_of_value(value_at(schema, values, i));
        }
        work->fuel -= count < work->fuel ? count : work->fuel;
        found &= of_values;
    }
    return found;
}

/* ---- values ---- */

static bool is_scalar(struct json_object *value) {
    return !json_object_is_type(value, json_type_array) && !json_object_is_type(value, json_type_object);
}

/* Whether two values are surely not equal; 1 and 1.0 are equal. The contents of arrays and objects are not compared. */
static bool differ(struct json_object *one, struct json_object *other) {
    if (kind_of_value(one) != kind_of_value(other)) {
        return true;
    }
    if (!is_scalar(one)) {
        return false;
    }
    if (kind_of_value(one) & (KIND_INTEGER | KIND_FRACTION)) {
        return json_object_get_double(one) != json_object_get_double(other);
    }
    return !json_object_equal(one, other);
}

static bool values_differ(struct fm_schema_work *work, struct json_object *one, struct json_object *other) {
    struct json_object *one_values;
    struct json_object *other_values;
    size_t one_count;
    size_t other_count;
    if (!find_values(one, &one_values, &one_count) || !find_values(other, &other_values, &other_count)) {
        return false;
    }
    for (size_t i = 0; i < one_count; i++) {
        for (size_t j = 0; j < other_count; j++) {
            struct json_object *value = value_at(one, one_values, i);
            if (work->fuel == 0 || !differ(value, value_at(other, other_values, j))) {
                return false;
            }
            spend(work, text_len(value));
        }
    }
    return true;
}

/* ---- objects ---- */

/* The schema for a key's value; NULL: any value fits. `*forbidden`: the key can't be there. */
static struct json_object *property(struct json_object *schema, const char *key, bool *forbidden) {
    struct json_object *properties = fm_schema_member(schema, "properties");
    struct json_object *additional = fm_schema_member(schema, "additionalProperties");
    struct json_object *found = properties ? fm_schema_member(properties, key) : NULL;
    bool closed = json_object_is_type(additional, json_type_boolean) && !json_object_get_boolean(additional) &&
                  !fm_schema_member(schema, "patternProperties");
    *forbidden = !found && closed;
    return found;
}

/* Whether one of the two schemas requires a key for which no value fits both schemas. */
static bool keys_differ(struct fm_schema_work *work, struct side one, struct side other, struct json_object *required,
                        int depth) {
    size_t count = required ? json_object_array_length(required) : 0;
    for (size_t i = 0; i < count && work->fuel > 0; i++) {
        const char *key = json_object_get_string(json_object_array_get_idx(required, i));
        bool one_forbids;
        bool other_forbids;
        struct side in_one = {property(one.schema, key, &one_forbids), one.resource};
        struct side in_other = {property(other.schema, key, &other_forbids), other.resource};
        spend(work, strlen(key));
        if (one_forbids || other_forbids) {
            return true;
        }
        if (in_one.schema && in_other.schema && disjoint(work, in_one, in_other, depth + 1)) {
            return true;
        }
    }
    return false;
}

/* ---- schemas ---- */

/* Whether the schema has anyOf or oneOf, and each branch excludes `other`. */
static bool branches_differ(struct fm_schema_work *work, struct side one, struct side other, const char *keyword,
                            int depth) {
    struct json_object *branches = fm_schema_member(one.schema, keyword);
    size_t count = branches ? json_object_array_length(branches) : 0;
    for (size_t i = 0; i < count; i++) {
        struct side branch = {json_object_array_get_idx(branches, i), one.resource};
        if (!disjoint(work, branch, other, depth + 1)) {
            return false;
        }
    }
    return count > 0;
}

static bool ref_differs(struct fm_schema_work *work, struct side one, struct side other, int depth) {
    const struct fm_schema_at nowhere = {.key = ""};
    struct json_object *ref = fm_schema_member(one.schema, "$ref");
    size_t index;
    if (!ref || fm_schema_resolve(work, one.resource, ref, &nowhere, &index) != FM_OK) {
        return false;
    }
    struct side target = {work->targets[index].schema, work->targets[index].resource};
    return disjoint(work, target, other, depth + 1);
}

/* Whether a schema that `one` refers to, or all its alternatives, exclude `other`. */
static bool looks_through(struct fm_schema_work *work, struct side one, struct side other, int depth) {
    return ref_differs(work, one, other, depth) || branches_differ(work, one, other, "anyOf", depth) ||
           branches_differ(work, one, other, "oneOf", depth);
}

static bool disjoint(struct fm_schema_work *work, struct side one, struct side other, int depth) {
    bool plain =
        json_object_is_type(one.schema, json_type_object) && json_object_is_type(other.schema, json_type_object);
    if (!plain || depth > DEPTH_MAX || work->fuel == 0) {
        return false;
    }
    work->fuel--;
    one.resource = fm_schema_resource_inside(work, one.schema, one.resource);
    other.resource = fm_schema_resource_inside(work, other.schema, other.resource);
    if (work->draft <= FM_DRAFT_7 && fm_schema_member(one.schema, "$ref")) {
        return ref_differs(work, one, other, depth); /* in these drafts, keywords beside $ref have no effect */
    }
    if (work->draft <= FM_DRAFT_7 && fm_schema_member(other.schema, "$ref")) {
        return ref_differs(work, other, one, depth);
    }
    unsigned common = kinds(work, one.schema) & kinds(work, other.schema);
    if (common == 0 || values_differ(work, one.schema, other.schema)) {
        return true;
    }
    if (common == KIND_OBJECT && (keys_differ(work, one, other, fm_schema_member(one.schema, "required"), depth) ||
                                  keys_differ(work, one, other, fm_schema_member(other.schema, "required"), depth))) {
        return true;
    }
    return looks_through(work, one, other, depth) || looks_through(work, other, one, depth);
}

bool fm_schema_disjoint(struct fm_schema_work *work, size_t resource, struct json_object *branches) {
    size_t count = json_object_array_length(branches);
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < i; j++) {
            struct side one = {json_object_array_get_idx(branches, i), resource};
            struct side other = {json_object_array_get_idx(branches, j), resource};
            if (!disjoint(work, one, other, 0)) {
                return false;
            }
        }
    }
    return true;
}
