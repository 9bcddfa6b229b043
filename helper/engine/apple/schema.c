/*
 * The walk over the host's schema. Each object gets a name when it is first met, before its properties are converted,
 * so an object that refers to itself ends the recursion. fm_schema_prepare has checked the schema before: its keywords
 * have valid values, and each $ref names something that exists.
 */
#include "engine/apple/schema.h"
#include "engine/apple/schema_nulls.h"
#include "engine/apple/schema_work.h"
#include "engine/guide/schema.h"

#include <ctype.h>
#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX  (2 * FM_SCHEMA_DEPTH_MAX) /* with $refs */
#define REPORT_MAX (1u << 20)

static struct json_object *convert(struct fm_apple_work *work, struct json_object *schema,
                                   const struct fm_apple_place *place);

/* ---- names ---- */

static bool is_named(const struct fm_apple_work *work, const char *name) {
    bool found = false;
    for (size_t i = 0; i < work->count; i++) {
        found = found || strcmp(work->names[i], name) == 0;
    }
    return found;
}

/* Makes a name from the letters, digits and "_" in `wish`. If another object has that name, a number is added. */
static void make_name(const struct fm_apple_work *work, const char *wish, char name[FM_APPLE_NAME_SIZE]) {
    char base[FM_APPLE_NAME_SIZE - 8];
    size_t len = 0;
    for (; *wish && len < sizeof base - 1; wish++) {
        if (isalnum((unsigned char)*wish) || *wish == '_') {
            base[len++] = *wish;
        }
    }
    base[len] = '\0';
    snprintf(name, FM_APPLE_NAME_SIZE, "%s", len > 0 ? base : "Object");
    for (unsigned number = 2; is_named(work, name); number++) {
        snprintf(name, FM_APPLE_NAME_SIZE, "%s%u", len > 0 ? base : "Object", number);
    }
}

static struct json_object *new_string(const char *text) {
    return json_object_new_string(text);
}

static struct json_object *refer(const char *name) {
    char pointer[FM_APPLE_NAME_SIZE + 16];
    struct json_object *made = json_object_new_object();
    snprintf(pointer, sizeof pointer, name[0] ? "#/$defs/%s" : "#%s", name);
    json_object_object_add(made, "$ref", new_string(pointer));
    return made;
}

/* ---- kinds of values ---- */

static bool add_property(struct fm_apple_work *work, struct json_object *made, const char *key,
                         struct json_object *schema, const struct fm_apple_place *place, bool required) {
    struct fm_apple_place at = fm_apple_below(place, key, "properties.%s", key);
    if (fm_apple_only_null(work->root, schema)) {
        return true; /* nothing is written; if the property is required, it becomes null afterwards */
    }
    struct json_object *value = convert(work, schema, &at);
    if (!value) {
        return false;
    }
    json_object_object_add(fm_apple_member(made, "properties"), key, value);
    json_object_array_add(fm_apple_member(made, "x-order"), new_string(key));
    if (required && !fm_apple_may_be_null(work->root, schema)) {
        json_object_array_add(fm_apple_member(made, "required"), new_string(key));
    }
    return true;
}

static bool is_required(struct json_object *schema, const char *key) {
    struct json_object *list = fm_apple_member(schema, "required");
    size_t count = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
    bool found = false;
    for (size_t i = 0; i < count; i++) {
        found = found || strcmp(json_object_get_string(json_object_array_get_idx(list, i)), key) == 0;
    }
    return found;
}

static bool requires_unknown(struct json_object *schema) {
    struct json_object *list = fm_apple_member(schema, "required");
    size_t count = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
    bool unknown = false;
    for (size_t i = 0; i < count; i++) {
        const char *key = json_object_get_string(json_object_array_get_idx(list, i));
        unknown = unknown || !fm_apple_member(fm_apple_member(schema, "properties"), key);
    }
    return unknown;
}

/* Converts an object schema itself, with everything in it. */
static struct json_object *make_object(struct fm_apple_work *work, struct json_object *schema,
                                       const struct fm_apple_place *place, const char *title) {
    struct json_object *properties = fm_apple_member(schema, "properties");
    struct json_object *description = fm_apple_member(schema, "description");
    if (!properties || json_object_object_length(properties) == 0) {
        return fm_apple_schema_refuse(work, place, "", "an object needs properties; it can't be one of any keys");
    }
    if (requires_unknown(schema)) {
        return fm_apple_schema_refuse(work, place, "required",
                                      "each required property has to be one of the properties");
    }
    struct json_object *made = json_object_new_object();
    json_object_object_add(made, "title", new_string(title));
    json_object_object_add(made, "type", new_string("object"));
    if (json_object_is_type(description, json_type_string)) {
        json_object_object_add(made, "description", json_object_get(description));
    }
    json_object_object_add(made, "properties", json_object_new_object());
    json_object_object_add(made, "required", json_object_new_array());
    json_object_object_add(made, "additionalProperties", json_object_new_boolean(0));
    json_object_object_add(made, "x-order", json_object_new_array());
    bool ok = true;
    struct json_object_iter member_at;
    json_object_object_foreachC(properties, member_at) {
        ok = ok && add_property(work, made, member_at.key, member_at.val, place, is_required(schema, member_at.key));
    }
    if (!ok) {
        json_object_put(made);
        return NULL;
    }
    return made;
}

/* Makes a reference to the object, which becomes a definition at the first reference. */
static struct json_object *convert_object(struct fm_apple_work *work, struct json_object *schema,
                                          const struct fm_apple_place *place) {
    for (size_t i = 0; i < work->count; i++) {
        if (work->objects[i] == schema) {
            return refer(work->names[i]);
        }
    }
    if (work->count == FM_APPLE_OBJECTS_MAX) {
        return fm_apple_schema_refuse(work, place, "", "it has too many objects");
    }
    struct json_object *title = fm_apple_member(schema, "title");
    size_t number = work->count;
    make_name(work, json_object_is_type(title, json_type_string) ? json_object_get_string(title) : place->name,
              work->names[number]);
    work->objects[number] = schema;
    work->count++;
    struct json_object *made = make_object(work, schema, place, work->names[number]);
    if (!made) {
        return NULL;
    }
    json_object_object_add(work->definitions, work->names[number], made);
    return refer(work->names[number]);
}

static struct json_object *convert_array(struct fm_apple_work *work, struct json_object *schema,
                                         const struct fm_apple_place *place) {
    static const char *const bounds[] = {"minItems", "maxItems"};
    struct json_object *items = fm_apple_member(schema, "items");
    struct fm_apple_place at = fm_apple_below(place, place->name, "items");
    if (!json_object_is_type(items, json_type_object)) {
        return fm_apple_schema_refuse(work, place, "items", "an array needs one schema for its items");
    }
    struct json_object *item = convert(work, items, &at);
    if (!item) {
        return NULL;
    }
    struct json_object *made = json_object_new_object();
    json_object_object_add(made, "type", new_string("array"));
    json_object_object_add(made, "items", item);
    for (size_t i = 0; i < 2; i++) {
        if (fm_apple_member(schema, bounds[i])) {
            json_object_object_add(made, bounds[i], json_object_get(fm_apple_member(schema, bounds[i])));
        }
    }
    return made;
}

/* Adds a bound. The dialect has only inclusive bounds, so an exclusive bound of integers is moved by `step`. */
static void add_bound(struct json_object *made, struct json_object *schema, const char *name, const char *exclusive,
                      int64_t step) {
    struct json_object *bound = fm_apple_member(schema, name);
    struct json_object *beyond = fm_apple_member(schema, exclusive);
    bool integer = strcmp(json_object_get_string(fm_apple_member(made, "type")), "integer") == 0;
    if (integer && json_object_is_type(beyond, json_type_int)) {
        int64_t value = json_object_get_int64(beyond) + step;
        bool closer = !bound || (double)step * ((double)value - json_object_get_double(bound)) > 0;
        bound = closer ? NULL : bound;
        if (closer) {
            json_object_object_add(made, name, json_object_new_int64(value));
        }
    }
    if (bound && !fm_apple_member(made, name)) {
        double value = json_object_get_double(bound);
        value = integer ? (step > 0 ? ceil(value) : floor(value)) : value;
        json_object_object_add(made, name, integer ? json_object_new_int64((int64_t)value) : json_object_get(bound));
    }
}

static struct json_object *convert_scalar(const char *type, struct json_object *schema) {
    struct json_object *made = json_object_new_object();
    json_object_object_add(made, "type", new_string(type));
    if (strcmp(type, "integer") == 0 || strcmp(type, "number") == 0) {
        add_bound(made, schema, "minimum", "exclusiveMinimum", 1);
        add_bound(made, schema, "maximum", "exclusiveMaximum", -1);
    }
    return made;
}

/* Converts `enum` and `const` of strings. The caller has handled a null among them already. */
static struct json_object *convert_choice(struct fm_apple_work *work, struct json_object *list,
                                          struct json_object *constant, const struct fm_apple_place *place) {
    struct json_object *choices = json_object_new_array();
    size_t count = list ? json_object_array_length(list) : 1;
    bool strings = true;
    for (size_t i = 0; i < count; i++) {
        struct json_object *value = list ? json_object_array_get_idx(list, i) : constant;
        strings = strings && (!value || json_object_is_type(value, json_type_string));
        if (strings && value) {
            json_object_array_add(choices, json_object_get(value));
        }
    }
    if (!strings || json_object_array_length(choices) == 0) {
        json_object_put(choices);
        return fm_apple_schema_refuse(work, place, list ? "enum" : "const", "it can choose among strings alone");
    }
    struct json_object *made = json_object_new_object();
    json_object_object_add(made, "type", new_string("string"));
    json_object_object_add(made, "enum", choices);
    return made;
}

static struct json_object *drop_branches(struct json_object *branches) {
    json_object_put(branches);
    return NULL;
}

/* Makes a choice between branches, which it takes over. A single branch is returned itself. */
static struct json_object *join_branches(struct fm_apple_work *work, struct json_object *branches,
                                         const struct fm_apple_place *place) {
    struct json_object *made = NULL;
    if (json_object_array_length(branches) == 1) {
        made = json_object_get(json_object_array_get_idx(branches, 0));
        json_object_put(branches);
        return made;
    }
    char title[FM_APPLE_NAME_SIZE];
    make_name(work, place->name, title);
    made = json_object_new_object();
    json_object_object_add(made, "title", new_string(title));
    json_object_object_add(made, "anyOf", branches);
    return made;
}

/* Converts the branches that are not null. */
static struct json_object *convert_branches(struct fm_apple_work *work, struct json_object *list, const char *keyword,
                                            const struct fm_apple_place *place) {
    struct json_object *branches = json_object_new_array();
    bool ok = true;
    for (size_t i = 0; i < json_object_array_length(list) && ok; i++) {
        struct json_object *branch = json_object_array_get_idx(list, i);
        struct fm_apple_place at = fm_apple_below(place, place->name, "%s[%zu]", keyword, i);
        struct json_object *made = fm_apple_only_null(work->root, branch) ? NULL : convert(work, branch, &at);
        ok = made || fm_apple_only_null(work->root, branch);
        if (made) {
            json_object_array_add(branches, made);
        }
    }
    size_t count = json_object_array_length(branches);
    bool exclusive = strcmp(keyword, "oneOf") == 0 && count > 1;
    ok = ok && (!exclusive || fm_apple_check_later(work, place, keyword));
    return ok ? join_branches(work, branches, place) : drop_branches(branches);
}

static const char *implied_type(struct json_object *schema) {
    return fm_apple_member(schema, "properties") ? "object" : fm_apple_member(schema, "items") ? "array" : NULL;
}

static struct json_object *convert_type(struct fm_apple_work *work, const char *type, struct json_object *schema,
                                        const struct fm_apple_place *place) {
    if (strcmp(type, "object") == 0) {
        return convert_object(work, schema, place);
    }
    return strcmp(type, "array") == 0 ? convert_array(work, schema, place) : convert_scalar(type, schema);
}

static struct json_object *convert_types(struct fm_apple_work *work, struct json_object *schema,
                                         const struct fm_apple_place *place) {
    struct json_object *type = fm_apple_member(schema, "type");
    if (!json_object_is_type(type, json_type_array)) {
        const char *name = type ? json_object_get_string(type) : implied_type(schema);
        return name ? convert_type(work, name, schema, place)
                    : fm_apple_schema_refuse(work, place, "", "it does not say which type the value has");
    }
    struct json_object *branches = json_object_new_array();
    bool ok = true;
    for (size_t i = 0; i < json_object_array_length(type) && ok; i++) {
        const char *name = json_object_get_string(json_object_array_get_idx(type, i));
        struct json_object *made = strcmp(name, "null") == 0 ? NULL : convert_type(work, name, schema, place);
        ok = made || strcmp(name, "null") == 0;
        if (made) {
            json_object_array_add(branches, made);
        }
    }
    return ok ? join_branches(work, branches, place) : drop_branches(branches);
}

static struct json_object *convert_kind(struct fm_apple_work *work, struct json_object *schema,
                                        const struct fm_apple_place *place) {
    struct json_object *all = fm_apple_member(schema, "allOf");
    const char *choice = fm_apple_member(schema, "anyOf") ? "anyOf" : "oneOf";
    if (fm_apple_member(schema, "$ref")) {
        struct json_object *target = fm_apple_resolve(work->root, schema);
        return target ? convert(work, target, place)
                      : fm_apple_schema_refuse(work, place, "$ref", "only a path in it can be named");
    }
    if (all) {
        struct fm_apple_place at = fm_apple_below(place, place->name, "allOf[0]");
        return json_object_array_length(all) == 1 && !fm_apple_member(schema, "type")
                   ? convert(work, json_object_array_get_idx(all, 0), &at)
                   : fm_apple_schema_refuse(work, place, "allOf",
                                            "schemas can't be combined; write what they are together");
    }
    if (fm_apple_member(schema, choice)) {
        return implied_type(schema)
                   ? fm_apple_schema_refuse(work, place, choice, "it can't stand beside properties or items")
                   : convert_branches(work, fm_apple_member(schema, choice), choice, place);
    }
    if (fm_apple_member(schema, "enum") || json_object_object_get_ex(schema, "const", NULL)) {
        return convert_choice(work, fm_apple_member(schema, "enum"), fm_apple_member(schema, "const"), place);
    }
    return convert_types(work, schema, place);
}

/* Converts the schema at `place` to the dialect. The caller owns it; NULL with the error filled. */
static struct json_object *convert(struct fm_apple_work *work, struct json_object *schema,
                                   const struct fm_apple_place *place) {
    if (!json_object_is_type(schema, json_type_object)) {
        return fm_apple_schema_refuse(work, place, "", "a value of any kind is not possible");
    }
    if (work->depth == DEPTH_MAX) {
        return fm_apple_schema_refuse(work, place, "", "it refers to itself without an object between, or is too deep");
    }
    work->depth++;
    struct json_object *made =
        fm_apple_look_at_keywords(work, schema, place) ? convert_kind(work, schema, place) : NULL;
    work->depth--;
    struct json_object *description = fm_apple_member(schema, "description");
    if (made && json_object_is_type(description, json_type_string) && !fm_apple_member(made, "description")) {
        json_object_object_add(made, "description", json_object_get(description));
    }
    return made;
}

/* ---- the whole ---- */

static bool is_object_schema(struct json_object *root) {
    struct json_object *type = fm_apple_member(root, "type");
    bool says =
        !type || (json_object_is_type(type, json_type_string) && strcmp(json_object_get_string(type), "object") == 0);
    return says && fm_apple_member(root, "properties") && !fm_apple_member(root, "$ref") &&
           !fm_apple_member(root, "anyOf") && !fm_apple_member(root, "oneOf") && !fm_apple_member(root, "allOf") &&
           !fm_apple_member(root, "enum");
}

static struct json_object *convert_root(struct fm_apple_work *work, const char *title) {
    struct fm_apple_place place = {.path = "", .name = title};
    work->objects[0] = work->root;
    work->names[0][0] = '\0';
    work->count = 1;
    return fm_apple_look_at_keywords(work, work->root, &place) ? make_object(work, work->root, &place, title) : NULL;
}

/* A schema that is not an object becomes the only property of one. */
static struct json_object *convert_wrapped(struct fm_apple_work *work, const char *title) {
    struct fm_apple_place place = {.path = "", .name = title};
    struct json_object *value = convert(work, work->root, &place);
    if (!value) {
        return NULL;
    }
    struct json_object *made = json_object_new_object();
    struct json_object *names = json_object_new_array();
    json_object_array_add(names, new_string(FM_APPLE_WRAPPED));
    json_object_object_add(made, "title", new_string("Answer_"));
    json_object_object_add(made, "type", new_string("object"));
    json_object_object_add(made, "properties", json_object_new_object());
    json_object_object_add(fm_apple_member(made, "properties"), FM_APPLE_WRAPPED, value);
    json_object_object_add(made, "required", names);
    json_object_object_add(made, "additionalProperties", json_object_new_boolean(0));
    json_object_object_add(made, "x-order", json_object_get(names));
    return made;
}

enum fm_code fm_apple_schema_make(struct json_object *source, const char *title, bool strict, const char *at,
                                  struct fm_apple_schema *schema, struct fm_error *error) {
    *schema = (struct fm_apple_schema){.source = source, .wrapped = !is_object_schema(source)};
    fm_buf_init(&schema->report, REPORT_MAX);
    struct fm_apple_work *work = calloc(1, sizeof *work);
    if (!work) {
        return fm_fail_no_memory(error);
    }
    work->root = source;
    work->strict = strict;
    work->at = at;
    work->error = error;
    work->definitions = json_object_new_object();
    work->checked = json_object_new_array();
    enum fm_code code = FM_INVALID_REQUEST;
    schema->root = schema->wrapped ? convert_wrapped(work, title) : convert_root(work, title);
    if (schema->root) {
        if (json_object_object_length(work->definitions) > 0) {
            json_object_object_add(schema->root, "$defs", json_object_get(work->definitions));
        }
        fm_apple_write_report(work, &schema->report);
        code = schema->report.failed ? fm_fail_no_memory(error) : FM_OK;
    }
    json_object_put(work->definitions);
    json_object_put(work->checked);
    free(work);
    if (code != FM_OK) {
        fm_apple_schema_free(schema);
    }
    return code;
}

void fm_apple_schema_free(struct fm_apple_schema *schema) {
    json_object_put(schema->root);
    fm_buf_free(&schema->report);
    *schema = (struct fm_apple_schema){0};
}
