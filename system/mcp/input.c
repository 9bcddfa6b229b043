/*
 * The JSON Schemas of tools' parameters, made from the table of commands. An optional parameter may also be null,
 * because some clients make a schema strict: they require all of its members. A model then writes null for a parameter
 * that it does not need.
 */
#include "commands/table.h"
#include "mcp/tools.h"

#include <string.h>

#define NULL_TYPE  "{\"type\":\"null\"}"
#define MAYBE_BOOL "\"anyOf\":[{\"type\":\"boolean\"}," NULL_TYPE "]"

static void write_words(const char *const *words, struct fm_json_writer *w) {
    fm_json_key(w, "enum");
    fm_json_array_begin(w);
    for (size_t i = 0; words[i]; i++) {
        fm_json_str(w, words[i]);
    }
    fm_json_array_end(w);
}

static void write_items(const char *json, struct fm_json_writer *w) {
    fm_json_key(w, "items");
    fm_json_raw(w, json, strlen(json));
}

static void write_form(const struct sy_param *param, struct fm_json_writer *w) {
    static const char *const types[] = {[SY_STRING] = "string", [SY_WORD] = "string",  [SY_INDEX] = "integer",
                                        [SY_INDICES] = "array", [SY_BOOL] = "boolean", [SY_BOUNDS] = "array"};
    fm_json_key_str(w, "type", types[param->kind]);
    switch (param->kind) {
    case SY_STRING: fm_json_key_int(w, "minLength", 1); break;
    case SY_WORD: write_words(param->words, w); break;
    case SY_INDEX: fm_json_key_int(w, "minimum", 1); break;
    case SY_INDICES:
        write_items("{\"type\":\"integer\",\"minimum\":1}", w);
        fm_json_key_int(w, "minItems", 1);
        break;
    case SY_BOOL: break;
    case SY_BOUNDS:
        write_items("{\"type\":\"integer\",\"minimum\":-32768,\"maximum\":32767}", w);
        fm_json_key_int(w, "minItems", 4);
        fm_json_key_int(w, "maxItems", 4);
        break;
    }
}

static void write_param(const struct sy_param *param, bool required, struct fm_json_writer *w) {
    fm_json_key(w, param->name);
    fm_json_object_begin(w);
    fm_json_key_str(w, "description", param->about);
    if (required) {
        write_form(param, w);
    } else {
        fm_json_key(w, "anyOf");
        fm_json_array_begin(w);
        fm_json_object_begin(w);
        write_form(param, w);
        fm_json_object_end(w);
        fm_json_raw(w, NULL_TYPE, strlen(NULL_TYPE));
        fm_json_array_end(w);
    }
    fm_json_object_end(w);
}

static void write_dry_run(struct fm_json_writer *w) {
    static const char json[] = "{\"description\":\"only tell what would be done\"," MAYBE_BOOL "}";
    fm_json_key(w, "dry_run");
    fm_json_raw(w, json, sizeof json - 1);
}

void sy_write_input_schema(const struct sy_command *command, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_json_key_str(w, "type", "object");
    fm_json_key(w, "properties");
    fm_json_object_begin(w);
    for (const struct sy_param *param = command->params; param->name; param++) {
        write_param(param, param->required, w);
    }
    if (!command->reads) {
        write_dry_run(w);
    }
    fm_json_object_end(w);
    fm_json_key(w, "required");
    fm_json_array_begin(w);
    for (const struct sy_param *param = command->params; param->name; param++) {
        if (param->required) {
            fm_json_str(w, param->name);
        }
    }
    fm_json_array_end(w);
    fm_json_key_bool(w, "additionalProperties", false);
    fm_json_object_end(w);
}

/* ---- a whole request ---- */

/* Whether a command before `end` has a parameter of this name. */
static bool came_before(size_t end, const char *name) {
    for (size_t i = 0; i < end; i++) {
        for (const struct sy_param *param = sy_commands[i].params; param->name; param++) {
            if (strcmp(param->name, name) == 0) {
                return true;
            }
        }
    }
    return false;
}

/* Writes the schema of a command in a request: the parameters of all commands, none of them required. */
static void write_command(const struct sy_policy *policy, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_json_key_str(w, "type", "object");
    fm_json_key(w, "properties");
    fm_json_object_begin(w);
    fm_json_key(w, "type");
    fm_json_object_begin(w);
    fm_json_key_str(w, "type", "string");
    fm_json_key_str(w, "description", "the command; its parameters are those of the tool of that name");
    fm_json_key(w, "enum");
    fm_json_array_begin(w);
    for (size_t i = 0; i < sy_command_count; i++) {
        if (sy_policy_allows(policy, sy_commands[i].type, sy_commands[i].reads)) {
            fm_json_str(w, sy_commands[i].type);
        }
    }
    fm_json_array_end(w);
    fm_json_object_end(w);
    for (size_t i = 0; i < sy_command_count; i++) {
        for (const struct sy_param *param = sy_commands[i].params; param->name; param++) {
            if (!came_before(i, param->name)) {
                write_param(param, false, w);
            }
        }
    }
    fm_json_object_end(w);
    fm_json_key(w, "required");
    fm_json_raw(w, "[\"type\"]", strlen("[\"type\"]"));
    fm_json_key_bool(w, "additionalProperties", false);
    fm_json_object_end(w);
}

void sy_write_envelope_schema(const struct sy_policy *policy, struct fm_json_writer *w) {
    static const char asks[] = "{\"description\":\"the user must be asked first\"," MAYBE_BOOL "}";
    static const char reason[] =
        "{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}],\"description\":\"what to ask the user\"}";
    fm_json_object_begin(w);
    fm_json_key_str(w, "type", "object");
    fm_json_key(w, "properties");
    fm_json_object_begin(w);
    fm_json_key(w, "commands");
    fm_json_object_begin(w);
    fm_json_key_str(w, "type", "array");
    fm_json_key(w, "items");
    write_command(policy, w);
    fm_json_key_int(w, "maxItems", SY_STEPS_MAX);
    fm_json_object_end(w);
    fm_json_key(w, "needs_clarification");
    fm_json_raw(w, asks, sizeof asks - 1);
    fm_json_key(w, "clarification_reason");
    fm_json_raw(w, reason, sizeof reason - 1);
    write_dry_run(w);
    fm_json_object_end(w);
    fm_json_key(w, "required");
    fm_json_raw(w, "[\"commands\"]", strlen("[\"commands\"]"));
    fm_json_key_bool(w, "additionalProperties", false);
    fm_json_object_end(w);
}
