/* Gives objects only the keys that their schema names: schema.h. */
#include "engine/chat/value_schema.h"
#include "engine/guide/schema.h"

#include <json-c/json.h>

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* If a schema has one of these keywords, not only `properties` decides which keys are allowed. */
static const char *const about_keys[] = {
    "additionalProperties", "patternProperties", "unevaluatedProperties", "propertyNames", "minProperties",
    "dependencies",         "dependentRequired", "dependentSchemas",      "$ref",          "$dynamicRef",
    "$recursiveRef",        "allOf",             "anyOf",                 "oneOf",         "not",
    "if",                   "const",             "enum"};

/* Whether all keys are named, including the required ones. */
static bool names_all(struct json_object *schema) {
    struct json_object *properties = json_object_object_get(schema, "properties");
    bool all = json_object_is_type(properties, json_type_object) && json_object_object_length(properties) > 0 &&
               fm_value_names_required(schema);
    for (size_t i = 0; all && i < COUNT(about_keys); i++) {
        all = !json_object_object_get_ex(schema, about_keys[i], NULL);
    }
    return all;
}

/* Changes the schema in place. False: out of memory. */
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
