/* Checks what the library gets: transcripts, options and schemas in Apple's dialect. If a check fails, the engine has a
 * bug. */
#include "standin.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

static struct json_object *member(struct json_object *value, const char *name) {
    struct json_object *found = NULL;
    if (json_object_is_type(value, json_type_object)) {
        json_object_object_get_ex(value, name, &found);
    }
    return found;
}

static const char *text_of(struct json_object *value, const char *name) {
    struct json_object *text = member(value, name);
    return json_object_is_type(text, json_type_string) ? json_object_get_string(text) : NULL;
}

struct json_object *expect_json(const char *text, const char *what) {
    struct json_tokener *tokener = json_tokener_new_ex(200);
    size_t len = strlen(text);
    struct json_object *value = json_tokener_parse_ex(tokener, text, (int)len);
    if (json_tokener_get_error(tokener) != json_tokener_success || json_tokener_get_parse_end(tokener) != len) {
        broken(8, "%s is not JSON: %s", what, text);
    }
    json_tokener_free(tokener);
    return value;
}

/* ---- transcripts ---- */

static void check_contents(struct json_object *entry, bool may_lack) {
    struct json_object *list = member(entry, "contents");
    if (!list && may_lack) {
        return;
    }
    if (!json_object_is_type(list, json_type_array)) {
        broken(8, "an entry has no contents");
    }
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        struct json_object *part = json_object_array_get_idx(list, i);
        if (!text_of(part, "id") || !text_of(part, "type") || !text_of(part, "text")) {
            broken(8, "a part of an entry lacks its id, type or text");
        }
    }
}

static void check_calls(struct json_object *entry) {
    struct json_object *calls = member(entry, "toolCalls");
    for (size_t i = 0; calls && i < json_object_array_length(calls); i++) {
        struct json_object *call = json_object_array_get_idx(calls, i);
        const char *arguments = text_of(call, "arguments");
        if (!text_of(call, "id") || !text_of(call, "name") || !arguments) {
            broken(8, "a call lacks its id, name or arguments");
        }
        struct json_object *parsed = expect_json(arguments, "the arguments of a call");
        if (!json_object_is_type(parsed, json_type_object)) {
            broken(8, "the arguments of a call are no object");
        }
        json_object_put(parsed);
    }
}

static void check_entry(struct json_object *entry, size_t index) {
    const char *role = text_of(entry, "role");
    role = role ? role : "";
    if (!text_of(entry, "id")) {
        broken(8, "an entry has no id");
    }
    if (strcmp(role, "instructions") == 0) {
        struct json_object *tools = member(entry, "tools");
        if (index != 0 || !json_object_is_type(tools, json_type_array)) {
            broken(8, "instructions stand first, and have a list of tools");
        }
        check_contents(entry, false);
    } else if (strcmp(role, "user") == 0) {
        check_contents(entry, false);
        struct json_object *format = member(entry, "responseFormat");
        if (format && !text_of(member(format, "jsonSchema"), "name")) {
            broken(8, "a responseFormat has no name");
        }
    } else if (strcmp(role, "response") == 0) {
        check_contents(entry, member(entry, "toolCalls") != NULL);
        check_calls(entry);
    } else if (strcmp(role, "tool") == 0 && text_of(entry, "toolName") && text_of(entry, "toolCallID")) {
        check_contents(entry, false);
    } else {
        broken(8, "an entry has no role, or lacks a member: %s", role);
    }
}

static struct json_object *entries_of(struct json_object *root) {
    return member(member(root, "transcript"), "entries");
}

void check_transcript(const char *json) {
    struct json_object *root = expect_json(json, "a transcript");
    struct json_object *entries = entries_of(root);
    const char *type = text_of(root, "type");
    if (!type || strcmp(type, "FoundationModels.Transcript") != 0 ||
        json_object_get_int(member(root, "version")) != 1 || !json_object_is_type(entries, json_type_array)) {
        broken(8, "a transcript lacks its type, version or entries");
    }
    for (size_t i = 0; i < json_object_array_length(entries); i++) {
        check_entry(json_object_array_get_idx(entries, i), i);
    }
    json_object_put(root);
}

static int64_t words(const char *text) {
    int64_t count = 0;
    for (text += strspn(text, " \t\r\n"); *text; text += strspn(text, " \t\r\n")) {
        text += strcspn(text, " \t\r\n");
        count++;
    }
    return count;
}

int64_t transcript_tokens(const char *json) {
    struct json_object *root = expect_json(json, "a transcript");
    struct json_object *entries = entries_of(root);
    int64_t tokens = 0;
    for (size_t i = 0; i < json_object_array_length(entries); i++) {
        struct json_object *entry = json_object_array_get_idx(entries, i);
        struct json_object *contents = member(entry, "contents");
        struct json_object *tools = member(entry, "tools");
        struct json_object *calls = member(entry, "toolCalls");
        tokens += ENTRY_TOKENS;
        for (size_t k = 0; contents && k < json_object_array_length(contents); k++) {
            tokens += words(text_of(json_object_array_get_idx(contents, k), "text"));
        }
        tokens += tools ? words(json_object_to_json_string(tools)) - 2 : 0;
        tokens += calls ? words(json_object_to_json_string(calls)) : 0;
    }
    json_object_put(root);
    return tokens;
}

/* ---- options ---- */

int64_t check_options(const char *json) {
    if (!json) {
        return 0;
    }
    struct json_object *root = expect_json(json, "the options");
    struct json_object *sampling = member(root, "sampling");
    struct json_object_iter at;
    json_object_object_foreachC(root, at) {
        const char *key = at.key;
        struct json_object *value = at.val;
        bool known = strcmp(key, "sampling") == 0 || strcmp(key, "temperature") == 0 ||
                     strcmp(key, "maximum_response_tokens") == 0;
        if (!known || !value) {
            broken(8, "the library drops the option %s", key);
        }
    }
    double temperature = json_object_get_double(member(root, "temperature"));
    const char *mode = text_of(sampling, "mode");
    if (temperature < 0 || temperature > 1) {
        broken(8, "the temperature is %f", temperature);
    }
    if (sampling && (!mode || (strcmp(mode, "greedy") != 0 && strcmp(mode, "random") != 0))) {
        broken(8, "the sampling has no mode");
    }
    if (sampling && strcmp(mode, "random") == 0 && !member(sampling, "top_p") && !member(sampling, "top_k")) {
        broken(8, "without top_p or top_k the library drops the sampling, with its seed");
    }
    if (member(sampling, "seed") && json_object_get_int64(member(sampling, "seed")) < 0) {
        broken(8, "the library drops a negative seed");
    }
    int64_t limit = json_object_get_int64(member(root, "maximum_response_tokens"));
    json_object_put(root);
    return limit;
}

/* ---- schemas ---- */

static void check_part(struct json_object *root, struct json_object *schema, bool is_root);

static void check_object(struct json_object *root, struct json_object *schema) {
    struct json_object *properties = member(schema, "properties");
    struct json_object *order = member(schema, "x-order");
    struct json_object *closed = member(schema, "additionalProperties");
    if (!text_of(schema, "title") || !properties || !json_object_is_type(order, json_type_array) || !closed ||
        json_object_get_boolean(closed) || !member(schema, "required") ||
        json_object_array_length(order) != (size_t)json_object_object_length(properties)) {
        broken(8, "an object lacks its title, x-order, required or additionalProperties: %s",
               json_object_to_json_string(schema));
    }
    size_t i = 0;
    struct json_object_iter at;
    json_object_object_foreachC(properties, at) {
        const char *key = at.key;
        struct json_object *value = at.val;
        if (strcmp(json_object_get_string(json_object_array_get_idx(order, i++)), key) != 0) {
            broken(8, "x-order lacks the property %s", key);
        }
        check_part(root, value, false);
    }
}

static void check_ref(struct json_object *root, const char *ref) {
    bool found = strcmp(ref, "#") == 0 || (strncmp(ref, "#/$defs/", 8) == 0 && member(member(root, "$defs"), ref + 8));
    if (!found) {
        broken(8, "the reference %s names nothing", ref);
    }
}

static void check_part(struct json_object *root, struct json_object *schema, bool is_root) {
    static const char *const known[] = {"$defs",    "$ref",        "additionalProperties",
                                        "anyOf",    "description", "enum",
                                        "items",    "maxItems",    "maximum",
                                        "minItems", "minimum",     "properties",
                                        "required", "title",       "type",
                                        "x-order"};
    const char *type = text_of(schema, "type");
    if (!json_object_is_type(schema, json_type_object)) {
        broken(8, "a part of a schema is no object");
    }
    struct json_object_iter at;
    json_object_object_foreachC(schema, at) {
        const char *key = at.key;
        struct json_object *value = at.val;
        bool found = false;
        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
            found = found || strcmp(known[i], key) == 0;
        }
        if (!found || !value) {
            broken(8, "the dialect does not have %s", key);
        }
    }
    if (text_of(schema, "$ref")) {
        check_ref(root, text_of(schema, "$ref"));
    } else if (member(schema, "anyOf")) {
        for (size_t i = 0; i < json_object_array_length(member(schema, "anyOf")); i++) {
            check_part(root, json_object_array_get_idx(member(schema, "anyOf"), i), false);
        }
    } else if (type && strcmp(type, "object") == 0) {
        check_object(root, schema);
    } else if (is_root) {
        broken(8, "the root is no object");
    } else if (type && strcmp(type, "array") == 0) {
        check_part(root, member(schema, "items"), false);
    } else if (!type || (strcmp(type, "string") != 0 && strcmp(type, "number") != 0 && strcmp(type, "integer") != 0 &&
                         strcmp(type, "boolean") != 0)) {
        broken(8, "the dialect does not have the type %s", type ? type : "of nothing");
    }
}

void check_schema(const char *json) {
    struct json_object *root = expect_json(json, "a schema");
    struct json_object *definitions = member(root, "$defs");
    check_part(root, root, true);
    if (definitions) {
        struct json_object_iter at;
        json_object_object_foreachC(definitions, at) {
            struct json_object *schema = at.val;
            check_part(root, schema, false);
        }
    }
    json_object_put(root);
}
