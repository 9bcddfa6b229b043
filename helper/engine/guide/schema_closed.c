/* Objects that have no other keys than those that their schema names: schema.h. */
#include "engine/guide/schema.h"

#include <json-c/json.h>
#include <string.h>

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* Beside one of these, `properties` may not be all that is said of keys. */
static const char *const about_keys[] = {
    "additionalProperties", "patternProperties", "unevaluatedProperties", "propertyNames", "minProperties",
    "dependencies",         "dependentRequired", "dependentSchemas",      "$ref",          "$dynamicRef",
    "$recursiveRef",        "allOf",             "anyOf",                 "oneOf",         "not",
    "if",                   "const",             "enum"};

static bool names_key(struct json_object *properties, struct json_object *key) {
    return json_object_is_type(key, json_type_string) &&
           json_object_object_get_ex(properties, json_object_get_string(key), NULL);
}

/* All keys are named, and the required ones are among them. */
static bool names_all(struct json_object *schema) {
    struct json_object *properties = json_object_object_get(schema, "properties");
    struct json_object *required = json_object_object_get(schema, "required");
    bool all = json_object_is_type(properties, json_type_object) && json_object_object_length(properties) > 0;
    for (size_t i = 0; all && i < COUNT(about_keys); i++) {
        all = !json_object_object_get_ex(schema, about_keys[i], NULL);
    }
    if (json_object_is_type(required, json_type_array)) {
        for (size_t i = 0; all && i < json_object_array_length(required); i++) {
            all = names_key(properties, json_object_array_get_idx(required, i));
        }
    }
    return all;
}

/* In place. False: out of memory. */
static bool close_objects(struct json_object *schema, int depth) {
    if (!json_object_is_type(schema, json_type_object) || depth == 0) {
        return true;
    }
    struct json_object *properties = json_object_object_get(schema, "properties");
    bool done = close_objects(json_object_object_get(schema, "items"), depth - 1);
    if (json_object_is_type(properties, json_type_object)) {
        struct json_object_iter at;
        json_object_object_foreachC(properties, at) {
            done = done && close_objects(at.val, depth - 1);
        }
    }
    if (!done || !names_all(schema)) {
        return done;
    }
    struct json_object *none = json_object_new_boolean(false);
    done = none && json_object_object_add(schema, "additionalProperties", none) == 0;
    if (!done) {
        json_object_put(none);
    }
    return done;
}

struct json_object *fm_schema_closed(struct json_object *schema) {
    struct json_object *closed = NULL;
    if (json_object_deep_copy(schema, &closed, NULL) == 0 && close_objects(closed, FM_SCHEMA_DEPTH_MAX)) {
        return closed;
    }
    json_object_put(closed);
    return NULL;
}
