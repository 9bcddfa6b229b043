/* Which arguments can stand in tags: a string is raw text there, so only its schema says what a value is. */
#include "engine/chat/tools.h"
#include "engine/chat/value_schema.h"

#include <json-c/json.h>
#include <string.h>

/*
 * Keys that a schema of arguments may have, so that only its properties matter: a grammar without further arguments
 * fits it.
 */
static const char *const root_keys[] = {"type",        "properties", "required", "additionalProperties", "title",
                                        "description", "$schema",    "$defs",    "definitions",          NULL};

static bool has_only(struct json_object *object, const char *const *keys) {
    struct json_object_iter at;
    json_object_object_foreachC(object, at) {
        size_t i = 0;
        while (keys[i] && strcmp(keys[i], at.key) != 0) {
            i++;
        }
        if (!keys[i]) {
            return false;
        }
    }
    return true;
}

/*
 * Whether a property's schema can use the targets of all references in `value` too. Recurses as deep as a body is
 * nested.
 */
static bool refs_fit(struct json_object *value) {
    bool fit = true;
    if (json_object_is_type(value, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(value) && fit; i++) {
            fit = refs_fit(json_object_array_get_idx(value, i));
        }
    } else if (json_object_is_type(value, json_type_object)) {
        struct json_object_iter at;
        json_object_object_foreachC(value, at) {
            const char *text = json_object_is_type(at.val, json_type_string) ? json_object_get_string(at.val) : "";
            bool refers = text[0] && (strcmp(at.key, "$ref") == 0 || strcmp(at.key, "$dynamicRef") == 0 ||
                                      strcmp(at.key, "$recursiveRef") == 0);
            bool names = text[0] && strcmp(at.key, "$id") == 0;
            bool local = strncmp(text, "#/$defs/", strlen("#/$defs/")) == 0 ||
                         strncmp(text, "#/definitions/", strlen("#/definitions/")) == 0;
            fit = fit && !names && (!refers || local) && refs_fit(at.val);
        }
    }
    return fit;
}

/*
 * Whether `property` is a string, or null, in the subset of value_schema.h. fm_value_types has read all of the property
 * before. `*texts` counts its schemas of a string, and `*limited` the ones among them that limit the text further.
 */
static bool is_text(const struct fm_tool_tags *tags, struct json_object *root, struct json_object *property,
                    size_t *texts, size_t *limited) {
    struct fm_value_schema read;
    if (!fm_value_schema_read(root, property, &read)) {
        return false;
    }
    bool fits = true;
    for (size_t i = 0; fits && read.any_of && i < json_object_array_length(read.any_of); i++) {
        fits = is_text(tags, root, json_object_array_get_idx(read.any_of, i), texts, limited);
    }
    for (size_t i = 0; fits && i < read.choice_count; i++) { /* the mark that closes a value must not be in a choice */
        struct json_object *choice = fm_value_schema_choice(&read, i);
        fits = !choice || (json_object_get_string_len(choice) > 0 &&
                           !memmem(json_object_get_string(choice), (size_t)json_object_get_string_len(choice),
                                   tags->close.text, tags->close.len));
    }
    bool text = !read.any_of && (read.types & FM_VALUE_STRING);
    *texts += text;
    *limited += text && fm_value_schema_limits_text(&read);
    return fits;
}

enum fm_tool_value fm_tool_value_of(const struct fm_tool_tags *tags, struct json_object *root,
                                    struct json_object *property) {
    size_t texts = 0;
    size_t limited = 0;
    unsigned types = fm_value_types(root, property);
    if (!(types & FM_VALUE_STRING)) {
        return types ? FM_TOOL_JSON_VALUE : FM_TOOL_NO_VALUE;
    }
    if ((types & ~(unsigned)(FM_VALUE_STRING | FM_VALUE_NULL)) || !is_text(tags, root, property, &texts, &limited) ||
        (limited > 0 && texts > 1)) {
        return FM_TOOL_NO_VALUE;
    }
    return types & FM_VALUE_NULL ? FM_TOOL_RAW_OR_NULL : FM_TOOL_RAW_VALUE;
}

bool fm_tool_tags_fit(const struct fm_tool_tags *tags, const struct fm_tool *tool) {
    struct json_object *properties = NULL;
    if (!tool->parameters) {
        return true;
    }
    if (!refs_fit(tool->parameters) || !has_only(tool->parameters, root_keys) ||
        !json_object_object_get_ex(tool->parameters, "properties", &properties) ||
        !json_object_is_type(properties, json_type_object) || !fm_value_names_required(tool->parameters)) {
        return false;
    }
    struct json_object_iter at;
    json_object_object_foreachC(properties, at) {
        if (!fm_value_is_key(at.key) || fm_tool_value_of(tags, tool->parameters, at.val) == FM_TOOL_NO_VALUE) {
            return false;
        }
    }
    return true;
}
