/*
 * The library builds a tool's schema property by property. There it knows fewer kinds of values than in the JSON of a
 * schema: scalars, strings with choices, arrays of scalars, and objects by name. Other kinds are refused: the host can
 * ask for the call with tool_choice "required", which uses the JSON.
 */
#include "engine/apple/tools.h"
#include "engine/apple/inbox.h"
#include "engine/apple/status.h"
#include "engine/guide/grammar.h"
#include "engine/guide/schema.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TYPE_SIZE 128

static struct json_object *schema_member(struct json_object *schema, const char *name) {
    struct json_object *value = NULL;
    if (json_object_is_type(schema, json_type_object)) {
        json_object_object_get_ex(schema, name, &value);
    }
    return value;
}

static const char *schema_text(struct json_object *schema, const char *name) {
    struct json_object *value = schema_member(schema, name);
    return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : NULL;
}

static bool has_properties(struct json_object *parameters) {
    struct json_object *properties = schema_member(parameters, "properties");
    return properties && json_object_object_length(properties) > 0;
}

/* fm_schema_prepare knows only schemas of formats, so the param in its error is renamed. */
static void rename_param(size_t index, struct fm_error *error) {
    static const char prefix[] = "format.schema";
    char rest[sizeof error->param];
    bool is_format = strncmp(error->param, prefix, sizeof prefix - 1) == 0;
    snprintf(rest, sizeof rest, "%s", is_format ? error->param + sizeof prefix - 1 : "");
    snprintf(error->param, sizeof error->param, "tools[%zu].parameters%.200s", index, rest);
}

enum fm_code fm_apple_tool_schema(const struct fm_kit_job *job, size_t index, struct fm_apple_schema *schema,
                                  struct fm_error *error) {
    const struct fm_tool *tool = &job->tools[index];
    struct fm_schema prepared;
    char at[48];
    *schema = (struct fm_apple_schema){0};
    if (!tool->parameters || !has_properties(tool->parameters)) {
        return FM_OK;
    }
    enum fm_code code = fm_schema_prepare(tool->parameters, false, &prepared, error);
    if (code != FM_OK) {
        rename_param(index, error);
        return code;
    }
    fm_schema_free(&prepared);
    snprintf(at, sizeof at, "tools[%zu].parameters", index);
    bool only_enforced = tool->strict && !fm_grammar_supported(); /* otherwise nothing checks the other keywords */
    return fm_apple_schema_make(tool->parameters, "Arguments", only_enforced, at, schema, error);
}

/* ---- properties ---- */

/* Returns the name in "#/$defs/NAME"; NULL: it is the root, or something else. */
static const char *named(const char *pointer) {
    static const char prefix[] = "#/$defs/";
    return pointer && strncmp(pointer, prefix, sizeof prefix - 1) == 0 ? pointer + sizeof prefix - 1 : NULL;
}

/*
 * Returns the library's word for the type of a property that is no array; NULL: the library has no word for that type.
 */
static const char *plain_type(struct json_object *schema) {
    const char *type = schema_text(schema, "type");
    bool scalar = type && strcmp(type, "array") != 0 && strcmp(type, "object") != 0;
    return scalar ? type : named(schema_text(schema, "$ref"));
}

/* Writes the library's word for the type; false: the library has no word for it. */
static bool write_type(struct json_object *schema, char word[TYPE_SIZE]) {
    const char *type = schema_text(schema, "type");
    const char *item = type && strcmp(type, "array") == 0 ? plain_type(schema_member(schema, "items")) : NULL;
    const char *plain = item ? NULL : plain_type(schema);
    bool flags = item && strcmp(item, "boolean") == 0; /* there are arrays of strings, numbers and objects */
    snprintf(word, TYPE_SIZE, item ? "array<%s>" : "%s", item ? item : plain ? plain : "");
    return (item && !flags) || plain;
}

static void add_choices(const struct fm_apple_api *api, fm_apple_ref property, struct json_object *schema,
                        bool of_items) {
    struct json_object *choices = schema_member(schema, "enum");
    size_t count = choices ? json_object_array_length(choices) : 0;
    const char **texts = count > 0 ? calloc(count, sizeof *texts) : NULL;
    for (size_t i = 0; texts && i < count; i++) {
        texts[i] = json_object_get_string(json_object_array_get_idx(choices, i));
    }
    if (texts) {
        api->property_any_of(property, texts, (int)count, of_items);
    }
    free(texts);
}

static void add_guides(const struct fm_apple_api *api, fm_apple_ref property, struct json_object *schema) {
    struct json_object *items = schema_member(schema, "items");
    struct json_object *of = items ? items : schema;
    add_choices(api, property, of, items != NULL);
    if (schema_member(of, "minimum")) {
        api->property_minimum(property, json_object_get_double(schema_member(of, "minimum")), items != NULL);
    }
    if (schema_member(of, "maximum")) {
        api->property_maximum(property, json_object_get_double(schema_member(of, "maximum")), items != NULL);
    }
    if (schema_member(schema, "minItems")) {
        api->property_min_items(property, json_object_get_int(schema_member(schema, "minItems")));
    }
    if (schema_member(schema, "maxItems")) {
        api->property_max_items(property, json_object_get_int(schema_member(schema, "maxItems")));
    }
}

static bool is_required(struct json_object *schema, const char *key) {
    struct json_object *list = schema_member(schema, "required");
    bool found = false;
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        found = found || strcmp(json_object_get_string(json_object_array_get_idx(list, i)), key) == 0;
    }
    return found;
}

/* Adds the properties. Returns the name of the first one that the library can't express; NULL: it took all. */
static const char *add_properties(const struct fm_apple_api *api, fm_apple_ref made, struct json_object *schema) {
    char word[TYPE_SIZE];
    const char *lacking = NULL;
    struct json_object_iter at;
    json_object_object_foreachC(schema_member(schema, "properties"), at) {
        if (lacking || !write_type(at.val, word)) {
            lacking = lacking ? lacking : at.key;
            continue;
        }
        fm_apple_ref property =
            api->property(at.key, schema_text(at.val, "description"), word, !is_required(schema, at.key));
        add_guides(api, property, at.val);
        api->schema_add(made, property);
        api->release(property);
    }
    return lacking;
}

/* Returns the library's schema, which the caller releases. `*lacking` is the result of add_properties. */
static fm_apple_ref build_schema(const struct fm_apple_api *api, struct json_object *root, const char **lacking) {
    const char *title = schema_text(root, "title");
    struct json_object *definitions = schema_member(root, "$defs");
    fm_apple_ref made = api->schema(title ? title : "Arguments", schema_text(root, "description"));
    *lacking = root ? add_properties(api, made, root) : NULL;
    if (definitions) {
        struct json_object_iter at;
        json_object_object_foreachC(definitions, at) {
            fm_apple_ref other = api->schema(at.key, schema_text(at.val, "description"));
            const char *inner = add_properties(api, other, at.val);
            *lacking = *lacking ? *lacking : inner;
            api->schema_refer(made, other);
            api->release(other);
        }
    }
    return made;
}

/* ---- tools ---- */

static enum fm_code refuse_tool(size_t index, const char *property, struct fm_error *error) {
    (void)fm_fail(
        error, FM_INVALID_REQUEST,
        "Apple's model can't choose this tool by itself, because of its parameter '%.100s': use strings, numbers, "
        "booleans, arrays of strings or numbers, and objects, or tool_choice \"required\"",
        property);
    error->elsewhere = true;
    snprintf(error->param, sizeof error->param, "tools[%zu].parameters", index);
    return FM_INVALID_REQUEST;
}

static enum fm_code make_tool(struct fm_apple_tools *tools, const struct fm_tool *tool, size_t index,
                              struct fm_error *error) {
    const struct fm_apple_api *api = tools->api;
    const char *lacking = NULL;
    int status = FM_APPLE_OK;
    char *why = NULL;
    if (tools->schemas[index].wrapped) {
        return refuse_tool(index, "parameters", error);
    }
    fm_apple_ref schema = build_schema(api, tools->schemas[index].root, &lacking);
    if (!lacking) {
        tools->refs[index] = api->tool(tool->name, tool->description ? tool->description : "", schema,
                                       fm_apple_trampoline(index), &status, &why);
    }
    api->release(schema);
    if (lacking) {
        return refuse_tool(index, lacking, error);
    }
    if (!tools->refs[index]) {
        const struct fm_apple_end end = {
            .status = status ? status : FM_APPLE_SCHEMA, .text = why ? why : "", .tools = true};
        (void)fm_apple_end_reason(&end, error);
        api->free_string(why);
        return error->code;
    }
    return FM_OK;
}

static void define(struct fm_apple_tools *tools, const struct fm_tool *tool, size_t index) {
    struct json_object *function = json_object_new_object();
    struct json_object *parameters = json_object_get(tools->schemas[index].root);
    if (!parameters) {
        parameters =
            json_tokener_parse("{\"title\":\"Arguments\",\"type\":\"object\",\"properties\":{},\"required\":[],"
                               "\"additionalProperties\":false,\"x-order\":[]}");
    }
    json_object_object_add(function, "name", json_object_new_string(tool->name));
    json_object_object_add(function, "description", json_object_new_string(tool->description ? tool->description : ""));
    json_object_object_add(function, "parameters", parameters);
    struct json_object *entry = json_object_new_object();
    json_object_object_add(entry, "type", json_object_new_string("function"));
    json_object_object_add(entry, "function", function);
    json_object_array_add(tools->definitions, entry);
}

enum fm_code fm_apple_tools_make(struct fm_apple_tools *tools, const struct fm_apple_api *api,
                                 const struct fm_kit_job *job, struct fm_error *error) {
    *tools = (struct fm_apple_tools){.api = api, .count = job->tool_count};
    tools->definitions = json_object_new_array();
    for (size_t i = 0; i < job->tool_count; i++) {
        if (!job->tools[i].allowed) {
            continue;
        }
        enum fm_code code = fm_apple_tool_schema(job, i, &tools->schemas[i], error);
        code = code ? code : make_tool(tools, &job->tools[i], i, error);
        if (code != FM_OK) {
            return code;
        }
        define(tools, &job->tools[i], i);
    }
    return FM_OK;
}

void fm_apple_tools_free(struct fm_apple_tools *tools) {
    for (size_t i = 0; i < tools->count; i++) {
        if (tools->refs[i]) {
            tools->api->release(tools->refs[i]);
        }
        fm_apple_schema_free(&tools->schemas[i]);
    }
    json_object_put(tools->definitions);
    *tools = (struct fm_apple_tools){0};
}
