/* Which arguments can stand in tags: a string is raw text there, so that its schema alone tells what a value is. */
#include "engine/chat/tools.h"

#include <json-c/json.h>
#include <string.h>

/* Of a schema whose properties are all that counts; a grammar without further arguments fits it. */
static const char *const root_keys[] = {"type",  "properties",  "required", "additionalProperties",
                                        "title", "description", "$schema",  NULL};
static const char *const string_keys[] = {"type",     "title",    "description", "default",
                                          "examples", "$comment", "enum",        NULL};

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

static bool is_text(struct json_object *value, const char *text) {
    return json_object_is_type(value, json_type_string) && strcmp(json_object_get_string(value), text) == 0;
}

/* Texts that are not empty, as a grammar wants them. */
static bool are_texts(struct json_object *values) {
    bool texts = json_object_is_type(values, json_type_array) && json_object_array_length(values) > 0;
    for (size_t i = 0; texts && i < json_object_array_length(values); i++) {
        struct json_object *value = json_object_array_get_idx(values, i);
        texts = json_object_is_type(value, json_type_string) && json_object_get_string_len(value) > 0;
    }
    return texts;
}

enum fm_tool_value fm_tool_value_of(struct json_object *property) {
    struct json_object *choices = NULL;
    struct json_object *type = NULL;
    if (!json_object_is_type(property, json_type_object) || !json_object_object_get_ex(property, "type", &type)) {
        return FM_TOOL_NO_VALUE;
    }
    if (is_text(type, "string")) {
        bool any = !json_object_object_get_ex(property, "enum", &choices);
        return has_only(property, string_keys) && (any || are_texts(choices)) ? FM_TOOL_RAW_VALUE : FM_TOOL_NO_VALUE;
    }
    if (!are_texts(type)) {
        return json_object_is_type(type, json_type_string) ? FM_TOOL_JSON_VALUE : FM_TOOL_NO_VALUE;
    }
    for (size_t i = 0; i < json_object_array_length(type); i++) {
        if (is_text(json_object_array_get_idx(type, i), "string")) {
            return FM_TOOL_NO_VALUE;
        }
    }
    return FM_TOOL_JSON_VALUE;
}

/* What closes a value is in none of its choices. */
static bool choices_fit(const struct fm_tool_tags *tags, struct json_object *property) {
    struct json_object *choices = json_object_object_get(property, "enum");
    bool fit = true;
    for (size_t i = 0; fm_tool_value_of(property) == FM_TOOL_RAW_VALUE && choices && fit &&
                       i < json_object_array_length(choices); i++) {
        struct json_object *choice = json_object_array_get_idx(choices, i);
        fit = !memmem(json_object_get_string(choice), (size_t)json_object_get_string_len(choice), tags->close.text,
                      tags->close.len);
    }
    return fit;
}

static bool is_key(const char *key) {
    return key[0] && key[strspn(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")] == '\0';
}

/* All that are required are there. */
static bool has_required(struct json_object *schema, struct json_object *properties) {
    struct json_object *required = NULL;
    bool there = !json_object_object_get_ex(schema, "required", &required) ||
                 json_object_is_type(required, json_type_array);
    for (size_t i = 0; there && required && i < json_object_array_length(required); i++) {
        struct json_object *key = json_object_array_get_idx(required, i);
        there = json_object_is_type(key, json_type_string) &&
                json_object_object_get_ex(properties, json_object_get_string(key), NULL);
    }
    return there;
}

bool fm_tool_tags_fit(const struct fm_tool_tags *tags, const struct fm_tool *tool) {
    struct json_object *properties = NULL;
    if (!tool->parameters) {
        return true;
    }
    const char *text = json_object_to_json_string(tool->parameters);
    if (!text || strstr(text, "\"$ref\"") || !has_only(tool->parameters, root_keys) ||
        !json_object_object_get_ex(tool->parameters, "properties", &properties) ||
        !json_object_is_type(properties, json_type_object) || !has_required(tool->parameters, properties)) {
        return false;
    }
    struct json_object_iter at;
    json_object_object_foreachC(properties, at) {
        if (!is_key(at.key) || fm_tool_value_of(at.val) == FM_TOOL_NO_VALUE || !choices_fit(tags, at.val)) {
            return false;
        }
    }
    return true;
}
