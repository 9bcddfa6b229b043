/*
 * Calls of tools. If the model calls tools by itself, the calls come as callbacks. If it has to call one, it first
 * writes the tool's name and then the arguments, each by a schema. Arguments are reported in the form of the host's
 * schema.
 */
#include "engine/apple/run.h"
#include "engine/guide/guide.h"

#include <json-c/json.h>
#include <string.h>

#define NO_TOOL FM_TOOLS_MAX

static void describe_tools(struct fm_apple_run *run) {
    const struct fm_kit_job *job = run->job;
    fm_buf_append_str(&run->instructions, "Call one of these tools; do not answer in another way.");
    for (size_t i = 0; i < job->tool_count; i++) {
        if (job->tools[i].allowed) {
            fm_buf_append_str(&run->instructions, "\n- ");
            fm_buf_append_str(&run->instructions, job->tools[i].name);
            fm_buf_append_str(&run->instructions, job->tools[i].description ? ": " : "");
            fm_buf_append_str(&run->instructions, job->tools[i].description ? job->tools[i].description : "");
        }
    }
    fm_buf_append_char(&run->instructions, '\0');
    run->extras.instructions = run->instructions.failed ? NULL : run->instructions.data;
}

enum fm_code fm_apple_prepare_calls(struct fm_apple_run *run) {
    enum fm_code code = FM_OK;
    describe_tools(run);
    for (size_t i = 0; i < run->job->tool_count && code == FM_OK; i++) {
        struct fm_apple_schema schema = {0};
        code = run->job->tools[i].allowed ? fm_apple_tool_schema(run->job, i, &schema, run->error) : FM_OK;
        fm_apple_schema_free(&schema);
    }
    return code;
}

/* Checks the arguments of a strict tool. FM_INTERNAL: they do not match its schema. */
static enum fm_code check_arguments(struct fm_apple_run *run, size_t index, const struct fm_buf *arguments) {
    const struct fm_tool *tool = &run->job->tools[index];
    enum fm_code code = FM_OK;
    struct fm_buf why;
    if (!tool->strict || !tool->parameters || !fm_grammar_supported()) {
        return FM_OK;
    }
    fm_buf_init(&why, FM_SCHEMA_ERROR_MAX);
    if (!fm_guide_check_text(tool->parameters, arguments->data, arguments->len, &why)) {
        run->apple->stuck = true; /* a thread still checks the arguments, and uses memory */
    }
    if (why.len > 0) {
        code =
            fm_fail(run->error, FM_INTERNAL, "Apple's model called a tool with arguments that do not match its schema");
    }
    fm_buf_free(&why);
    return code;
}

/* Sends the call of tool `index`; `json` has its arguments as the library wrote them. */
static enum fm_reason tell_call(struct fm_apple_run *run, size_t index, const struct fm_apple_schema *schema,
                                const char *json) {
    struct fm_buf arguments;
    fm_buf_init(&arguments, FM_APPLE_TEXT_MAX);
    enum fm_code code = FM_OK;
    if (schema->root) {
        code = fm_apple_schema_restore(schema, json, strlen(json), &arguments, run->error);
    } else {
        fm_buf_append_str(&arguments, "{}");
    }
    code = code ? code : check_arguments(run, index, &arguments);
    fm_buf_append(&run->answer, arguments.data, arguments.len);
    enum fm_reason reason = code ? FM_REASON_ERROR : fm_kit_job_tool_call(run->job, run->job->tools[index].name);
    reason = reason ? reason : fm_kit_job_piece(run->job, FM_PIECE_ARGUMENTS, arguments.data, arguments.len);
    if (reason == FM_REASON_ERROR && code == FM_OK) {
        (void)fm_apple_no_memory(run);
    }
    fm_buf_free(&arguments);
    return reason;
}

enum fm_reason fm_apple_tell_calls(struct fm_apple_run *run) {
    enum fm_reason reason = FM_REASON_NONE;
    size_t most = run->job->parallel_tool_calls ? run->running.collected : 1;
    for (size_t i = 0; i < most && i < run->running.collected && !reason; i++) {
        const struct fm_apple_call *call = &run->running.calls[i];
        char *json = run->api->content_json(call->arguments);
        reason = tell_call(run, call->tool, &run->tools.schemas[call->tool], json ? json : "");
        run->api->free_string(json);
    }
    run->complete = true;
    return reason ? reason : FM_REASON_STOP;
}

/* Makes the schema of the name in a call. */
static struct json_object *name_schema(const struct fm_kit_job *job) {
    struct json_object *schema = json_tokener_parse(
        "{\"title\":\"Call\",\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"enum\":[]}},"
        "\"required\":[\"name\"],\"additionalProperties\":false,\"x-order\":[\"name\"]}");
    struct json_object *names =
        json_object_object_get(json_object_object_get(json_object_object_get(schema, "properties"), "name"), "enum");
    for (size_t i = 0; i < job->tool_count; i++) {
        if (job->tools[i].allowed) {
            json_object_array_add(names, json_object_new_string(job->tools[i].name));
        }
    }
    return schema;
}

/* Finds the tool whose name is in {"name":NAME}; NO_TOOL: there is no such tool, or it may not be called. */
static size_t tool_in(const struct fm_kit_job *job, const struct fm_buf *answer) {
    struct json_tokener *tokener = json_tokener_new();
    struct json_object *value = tokener ? json_tokener_parse_ex(tokener, answer->data, (int)answer->len) : NULL;
    struct json_object *name = NULL;
    size_t found = NO_TOOL;
    if (json_object_is_type(value, json_type_object) && json_object_object_get_ex(value, "name", &name)) {
        for (size_t i = 0; i < job->tool_count; i++) {
            bool same = job->tools[i].allowed && strcmp(job->tools[i].name, json_object_get_string(name)) == 0;
            found = same ? i : found;
        }
    }
    json_object_put(value);
    if (tokener) {
        json_tokener_free(tokener);
    }
    return found;
}

static enum fm_reason choose_tool(struct fm_apple_run *run, size_t *index) {
    size_t allowed = 0;
    for (size_t i = 0; i < run->job->tool_count; i++) {
        allowed += run->job->tools[i].allowed;
        *index = run->job->tools[i].allowed ? i : *index;
    }
    if (allowed == 1) {
        return FM_REASON_NONE;
    }
    struct json_object *schema = name_schema(run->job);
    enum fm_reason reason = fm_apple_ask(run, schema, true);
    *index = reason ? NO_TOOL : tool_in(run->job, &run->answer);
    json_object_put(schema);
    return !reason && *index == NO_TOOL
               ? fm_apple_failed(run, "Apple's model named no tool that may be called; try again")
               : reason;
}

enum fm_reason fm_apple_call_tool(struct fm_apple_run *run) {
    size_t index = NO_TOOL;
    struct fm_apple_schema schema = {0};
    enum fm_reason reason = choose_tool(run, &index);
    if (reason) {
        return reason;
    }
    if (fm_apple_tool_schema(run->job, index, &schema, run->error) != FM_OK) {
        return FM_REASON_ERROR;
    }
    if (schema.root) {
        fm_buf_reset(&run->instructions);
        fm_buf_append_str(&run->instructions, "Write the arguments for a call of the tool ");
        fm_buf_append_str(&run->instructions, run->job->tools[index].name);
        fm_buf_append_str(&run->instructions, run->job->tools[index].description ? ": " : "");
        fm_buf_append_str(&run->instructions,
                          run->job->tools[index].description ? run->job->tools[index].description : "");
        fm_buf_append_char(&run->instructions, '\0');
        run->extras.instructions = run->instructions.failed ? NULL : run->instructions.data;
        reason = fm_apple_ask(run, schema.root, true);
    }
    if (!reason) {
        struct fm_buf json = run->answer;
        fm_buf_init(&run->answer, FM_APPLE_TEXT_MAX);
        fm_buf_append_char(&json, '\0');
        reason = json.failed ? fm_apple_no_memory(run) : tell_call(run, index, &schema, json.data);
        fm_buf_free(&json);
        run->complete = true;
    }
    if (!run->apple->stuck) {
        fm_apple_schema_free(&schema);
    }
    return reason ? reason : FM_REASON_STOP;
}
