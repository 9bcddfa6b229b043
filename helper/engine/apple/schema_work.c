/* Helpers for the walk over a schema: the table of keywords, what is done with each, and the paths of places. */
#include "engine/apple/schema_work.h"
#include "protocol/json_writer.h"

#include <json-c/json.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What is done with a keyword. A keyword that is not in the table does not restrict a value. */
enum fate { TAKEN, CHECKED };

static const struct keyword {
    const char *name;
    enum fate fate;
} keywords[] = {
    {"$ref", TAKEN},
    {"additionalProperties", TAKEN},
    {"allOf", TAKEN},
    {"anyOf", TAKEN},
    {"const", TAKEN},
    {"enum", TAKEN},
    {"items", TAKEN},
    {"maxItems", TAKEN},
    {"maximum", TAKEN},
    {"minItems", TAKEN},
    {"minimum", TAKEN},
    {"oneOf", TAKEN},
    {"properties", TAKEN},
    {"required", TAKEN},
    {"type", TAKEN},
    {"$dynamicRef", CHECKED},
    {"$recursiveRef", CHECKED},
    {"additionalItems", CHECKED},
    {"contains", CHECKED},
    {"dependencies", CHECKED},
    {"dependentRequired", CHECKED},
    {"dependentSchemas", CHECKED},
    {"else", CHECKED},
    {"exclusiveMaximum", CHECKED},
    {"exclusiveMinimum", CHECKED},
    {"format", CHECKED},
    {"if", CHECKED},
    {"maxContains", CHECKED},
    {"maxLength", CHECKED},
    {"maxProperties", CHECKED},
    {"minContains", CHECKED},
    {"minLength", CHECKED},
    {"minProperties", CHECKED},
    {"multipleOf", CHECKED},
    {"not", CHECKED},
    {"pattern", CHECKED},
    {"patternProperties", CHECKED},
    {"prefixItems", CHECKED},
    {"propertyNames", CHECKED},
    {"then", CHECKED},
    {"unevaluatedItems", CHECKED},
    {"unevaluatedProperties", CHECKED},
    {"uniqueItems", CHECKED},
};

_Static_assert(sizeof keywords / sizeof keywords[0] == FM_APPLE_KEYWORDS, "as many as can be noted");

struct json_object *fm_apple_member(struct json_object *schema, const char *name) {
    struct json_object *value = NULL;
    if (json_object_is_type(schema, json_type_object)) {
        json_object_object_get_ex(schema, name, &value);
    }
    return value;
}

struct json_object *fm_apple_schema_refuse(struct fm_apple_work *work, const struct fm_apple_place *place,
                                           const char *keyword, const char *what) {
    (void)fm_fail(work->error, FM_INVALID_REQUEST, "Apple's model can't follow this part of the schema: %s", what);
    work->error->elsewhere = true;
    int room = (int)sizeof work->error->param;
    snprintf(work->error->param, sizeof work->error->param, "%.*s%s%.*s%s%.*s", room / 4, work->at,
             place->path[0] ? "." : "", room / 2, place->path, keyword[0] ? "." : "", room / 8, keyword);
    return NULL;
}

struct fm_apple_place fm_apple_below(const struct fm_apple_place *parent, const char *name, const char *fmt, ...) {
    struct fm_apple_place place = *parent;
    size_t len = strlen(place.path);
    va_list args;
    place.name = name;
    if (len > 0 && len < sizeof place.path - 1) {
        place.path[len++] = '.';
    }
    va_start(args, fmt);
    vsnprintf(place.path + len, sizeof place.path - len, fmt, args);
    va_end(args);
    return place;
}

bool fm_apple_check_later(struct fm_apple_work *work, const struct fm_apple_place *place, const char *name) {
    char path[sizeof place->path + FM_APPLE_NAME_SIZE];
    if (work->strict) {
        (void)fm_apple_schema_refuse(work, place, name,
                                     "the keyword has no counterpart there; leave it out, or strict");
        return false;
    }
    snprintf(path, sizeof path, "%s%s%s", place->path, place->path[0] ? "." : "", name);
    json_object_array_add(work->checked, json_object_new_string(path));
    return true;
}

bool fm_apple_look_at_keywords(struct fm_apple_work *work, struct json_object *schema,
                               const struct fm_apple_place *place) {
    for (size_t i = 0; i < FM_APPLE_KEYWORDS; i++) {
        struct json_object *value = fm_apple_member(schema, keywords[i].name);
        /* with type integer, an exclusive bound that is an integer becomes an inclusive bound of the dialect */
        bool whole = json_object_is_type(value, json_type_int);
        bool bound = whole && strncmp(keywords[i].name, "exclusive", 9) == 0;
        if (!value || (bound && fm_apple_member(schema, "type") &&
                       json_object_is_type(fm_apple_member(schema, "type"), json_type_string) &&
                       strcmp(json_object_get_string(fm_apple_member(schema, "type")), "integer") == 0)) {
            continue;
        }
        if (keywords[i].fate == TAKEN) {
            work->taken[i] = true;
        } else if (!fm_apple_check_later(work, place, keywords[i].name)) {
            return false;
        }
    }
    return true;
}

void fm_apple_write_report(const struct fm_apple_work *work, struct fm_buf *report) {
    struct fm_json_writer w = fm_json_writer_on(report);
    fm_json_object_begin(&w);
    fm_json_key(&w, "enforced");
    fm_json_array_begin(&w);
    for (size_t i = 0; i < FM_APPLE_KEYWORDS; i++) { /* sorted, because the table is sorted */
        if (work->taken[i] && keywords[i].fate == TAKEN) {
            fm_json_str(&w, keywords[i].name);
        }
    }
    fm_json_array_end(&w);
    fm_json_key_value(&w, "checked", work->checked);
    fm_json_object_end(&w);
}
