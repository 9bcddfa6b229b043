/*
 * Reads the tools of job.start, and the calls in its messages, and checks them as strictly as the rest (job_params.c).
 */
#include "engine/kit/job_read.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- tools ---- */

static struct fm_tool *find_tool(const struct fm_kit_job *job, const char *name) {
    for (size_t i = 0; i < job->tool_count; i++) {
        if (strcmp(job->tools[i].name, name) == 0) {
            return &job->tools[i];
        }
    }
    return NULL;
}

/* Readers of a tool's members. Each returns whether `value` is valid. */
static bool read_name(struct fm_tool *tool, struct json_object *value) {
    tool->name = fm_kit_job_full_string(value);
    return tool->name;
}

static bool read_description(struct fm_tool *tool, struct json_object *value) {
    tool->description = fm_kit_job_string(value);
    return tool->description;
}

static bool read_parameters(struct fm_tool *tool, struct json_object *value) {
    tool->parameters = value;
    return json_object_is_type(value, json_type_object);
}

static bool read_strict(struct fm_tool *tool, struct json_object *value) {
    tool->strict = json_object_get_boolean(value);
    return json_object_is_type(value, json_type_boolean);
}

static const struct tool_member {
    const char *name;
    const char *at; /* the member's path in the tool */
    bool required;
    bool (*read)(struct fm_tool *tool, struct json_object *value);
    const char *expected;
} tool_members[] = {
    {"name", ".name", true, read_name, "a string that is not empty and has no NUL"},
    {"description", ".description", false, read_description, "a string without NUL"},
    {"parameters", ".parameters", false, read_parameters, "an object"},
    {"strict", ".strict", false, read_strict, "true or false"},
};

static enum fm_code read_tool(struct fm_tool *tool, size_t index, struct json_object *value, struct fm_error *error) {
    int count = 0;
    if (!json_object_is_type(value, json_type_object)) {
        return fm_kit_job_wrong_entry(error, "tools", index, "", "an object");
    }
    for (size_t i = 0; i < sizeof tool_members / sizeof tool_members[0]; i++) {
        const struct tool_member *row = &tool_members[i];
        struct json_object *member = NULL;
        count += json_object_object_get_ex(value, row->name, &member);
        if ((member || row->required) && !row->read(tool, member)) {
            return fm_kit_job_wrong_entry(error, "tools", index, row->at, row->expected);
        }
    }
    bool known = json_object_object_length(value) == count;
    return known ? FM_OK : fm_kit_job_wrong_entry(error, "tools", index, "", "the members of a tool and nothing else");
}

enum fm_code fm_kit_job_read_tools(struct fm_kit_job *job, struct json_object *value, struct fm_error *error) {
    size_t count = json_object_is_type(value, json_type_array) ? json_object_array_length(value) : 0;
    if (count == 0 || count > FM_TOOLS_MAX) {
        return fm_kit_job_wrong(error, "tools", "a list of 1 to 128 tools");
    }
    job->tools = calloc(count, sizeof *job->tools);
    if (!job->tools) {
        return fm_fail_no_memory(error);
    }
    for (size_t i = 0; i < count; i++) {
        struct fm_tool tool = {.allowed = true};
        enum fm_code code = read_tool(&tool, i, json_object_array_get_idx(value, i), error);
        if (code != FM_OK) {
            return code;
        }
        if (find_tool(job, tool.name)) {
            return fm_kit_job_wrong_entry(error, "tools", i, ".name", "a name that no other tool has");
        }
        job->tools[job->tool_count++] = tool;
    }
    return FM_OK;
}

/* ---- the choice ---- */

/* The tools in `names` are allowed, and no other. */
static enum fm_code allow_names(struct fm_kit_job *job, struct json_object *names, struct fm_error *error) {
    size_t count = json_object_is_type(names, json_type_array) ? json_object_array_length(names) : 0;
    if (count == 0 || count > FM_TOOLS_MAX) {
        return fm_kit_job_wrong(error, "tool_choice.names", "a list of 1 to 128 names");
    }
    for (size_t i = 0; i < job->tool_count; i++) {
        job->tools[i].allowed = false;
    }
    for (size_t i = 0; i < count; i++) {
        const char *name = fm_kit_job_string(json_object_array_get_idx(names, i));
        struct fm_tool *tool = name ? find_tool(job, name) : NULL;
        if (!tool) {
            return fm_kit_job_wrong_entry(error, "tool_choice.names", i, "", "the name of a tool");
        }
        tool->allowed = true;
    }
    return FM_OK;
}

enum fm_code fm_kit_job_read_tool_choice(struct fm_kit_job *job, struct json_object *value, struct fm_error *error) {
    static const char *const modes[] = {
        [FM_TOOLS_AUTO] = "auto", [FM_TOOLS_REQUIRED] = "required", [FM_TOOLS_NONE] = "none", NULL};
    struct json_object *names = NULL;
    if (!value) {
        return FM_OK;
    }
    if (!json_object_is_type(value, json_type_object)) {
        return fm_kit_job_wrong(error, "tool_choice", "an object");
    }
    int mode = fm_kit_job_word(json_object_object_get(value, "mode"), modes);
    if (mode < 0) {
        return fm_kit_job_wrong(error, "tool_choice.mode", "\"auto\", \"required\" or \"none\"");
    }
    job->tool_mode = (enum fm_tool_mode)mode;
    int count = 1 + json_object_object_get_ex(value, "names", &names);
    if (json_object_object_length(value) != count || job->tool_count == 0) {
        return fm_kit_job_wrong(error, "tool_choice", "mode and names and nothing else, beside tools");
    }
    if (names && job->tool_mode == FM_TOOLS_NONE) {
        return fm_kit_job_wrong(error, "tool_choice.names", "no list beside \"none\"");
    }
    for (size_t i = 0; i < job->tool_count; i++) {
        job->tools[i].allowed = job->tool_mode != FM_TOOLS_NONE;
    }
    return names ? allow_names(job, names, error) : FM_OK;
}

enum fm_code fm_kit_job_read_parallel_tool_calls(struct fm_kit_job *job, struct json_object *value,
                                                 struct fm_error *error) {
    job->parallel_tool_calls = json_object_get_boolean(value);
    bool valid = json_object_is_type(value, json_type_boolean);
    return valid ? FM_OK : fm_kit_job_wrong(error, "parallel_tool_calls", "true or false");
}

/* ---- calls in messages ---- */

/* Reads one call. False unless it is {id, name, arguments}. */
static bool read_call(struct fm_tool_call *call, struct json_object *value) {
    if (!json_object_is_type(value, json_type_object)) {
        return false;
    }
    struct json_object *arguments = json_object_object_get(value, "arguments");
    *call = (struct fm_tool_call){
        .id = fm_kit_job_full_string(json_object_object_get(value, "id")),
        .name = fm_kit_job_full_string(json_object_object_get(value, "name")),
        .arguments = fm_kit_job_string(arguments),
        .arguments_len = (size_t)json_object_get_string_len(arguments),
    };
    return call->id && call->name && call->arguments && json_object_object_length(value) == 3;
}

enum fm_code fm_kit_job_read_calls(struct fm_message *message, size_t index, struct json_object *value,
                                   struct fm_error *error) {
    size_t count = json_object_is_type(value, json_type_array) ? json_object_array_length(value) : 0;
    if (count == 0) {
        return fm_kit_job_wrong_entry(error, "messages", index, ".tool_calls", "a list that is not empty");
    }
    message->tool_calls = calloc(count, sizeof *message->tool_calls);
    if (!message->tool_calls) {
        return fm_fail_no_memory(error);
    }
    message->tool_call_count = count;
    for (size_t i = 0; i < count; i++) {
        if (!read_call(&message->tool_calls[i], json_object_array_get_idx(value, i))) {
            char list[64];
            snprintf(list, sizeof list, "messages[%zu].tool_calls", index);
            return fm_kit_job_wrong_entry(error, list, i, "", "id, name and arguments, strings, and nothing else");
        }
    }
    return FM_OK;
}

enum fm_code fm_kit_job_read_call_id(struct fm_message *message, size_t index, struct json_object *value,
                                     struct fm_error *error) {
    message->tool_call_id = fm_kit_job_full_string(value);
    return message->tool_call_id ? FM_OK
                                 : fm_kit_job_wrong_entry(error, "messages", index, ".tool_call_id",
                                                          "a string that is not empty and has no NUL");
}

bool fm_kit_job_uses_tools(const struct fm_kit_job *job) {
    bool uses = job->tool_count > 0;
    for (size_t i = 0; i < job->message_count; i++) {
        uses |= job->messages[i].tool_call_count > 0 || job->messages[i].tool_call_id;
    }
    return uses;
}
