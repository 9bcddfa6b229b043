/*
 * The grammar of an answer that may call tools, in llguidance's Lark:
 *
 *     start: TEXT | head calls
 *     TEXT: /(?s:.*)/
 *     head[lazy]: /(?s:.*)/ "<tool_call>"
 *     calls: call ("\n<tool_call>" call){0,127}
 *     call: "\n{\"name\": " tool "}\n</tool_call>"
 *     tool: "\"get_weather\", \"arguments\": " arguments0
 *     arguments0: %json {"type":"object"}
 *
 * A lazy lexeme ends with its first match: free text ends with the first mark, and without one it may end anywhere.
 */
#include "engine/kit/schema.h"
#include "engine/llama/tools.h"
#include "protocol/json_writer.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#define TEXT_MAX (1u << 20) /* bytes of a name in JSON, a line of Lark */

bool fm_tools_callable(const struct fm_job *job) {
    return job->tool_count > 0 && job->tool_mode != FM_TOOLS_NONE;
}

/* A literal of Lark, which is a JSON string. */
static void write_literal(const char *text, size_t len, struct fm_buf *lark) {
    struct fm_json_writer w = fm_json_writer_on(lark);
    fm_json_string(&w, text, len);
}

/* `"\"get_weather\", \"arguments\": " arguments0` */
static void write_choice(const struct fm_tool *tool, size_t index, struct fm_buf *lark) {
    struct fm_buf mark;
    char rule[48];
    fm_buf_init(&mark, TEXT_MAX);
    struct fm_json_writer w = fm_json_writer_on(&mark);
    fm_json_str(&w, tool->name);
    fm_buf_append_str(&mark, FM_TOOL_ARGUMENTS);
    write_literal(mark.data, mark.len, lark);
    lark->failed |= mark.failed;
    fm_buf_free(&mark);
    snprintf(rule, sizeof rule, " arguments%zu", index);
    fm_buf_append_str(lark, rule);
}

/* `value` stays the caller's. False: out of memory. */
static bool add_member(struct json_object *object, const char *key, struct json_object *value) {
    if (json_object_object_add(object, key, json_object_get(value)) == 0) {
        return true;
    }
    json_object_put(value);
    return false;
}

/*
 * The schema of a tool's arguments, a reference of its own: where it says nothing of types, they are an object all the
 * same, as hosts expect. NULL: out of memory.
 */
static struct json_object *arguments_schema(const struct fm_tool *tool) {
    if (tool->parameters && json_object_object_get_ex(tool->parameters, "type", NULL)) {
        return json_object_get(tool->parameters);
    }
    struct json_object *schema = json_object_new_object();
    struct json_object *type = json_object_new_string("object");
    bool made = schema && type && add_member(schema, "type", type);
    if (tool->parameters) {
        json_object_object_foreach(tool->parameters, key, value) {
            made = made && add_member(schema, key, value);
        }
    }
    json_object_put(type);
    if (!made) {
        json_object_put(schema);
        return NULL;
    }
    return schema;
}

/* "format.schema.a" becomes "tools[0].parameters.a", also where the detail begins so. */
static void name_tool(size_t index, struct fm_error *error) {
    static const char prefix[] = "format.schema";
    size_t len = sizeof prefix - 1;
    struct fm_error inner = *error;
    if (strncmp(inner.detail, prefix, len) == 0) {
        fm_fail(error, inner.code, "tools[%zu].parameters%s", index, inner.detail + len);
    }
    if (strncmp(inner.param, prefix, len) == 0) {
        snprintf(error->param, sizeof error->param, "tools[%zu].parameters%.217s", index, inner.param + len);
    }
}

static enum fm_code write_arguments(const struct fm_tool *tool, size_t index, struct fm_buf *lark,
                                    struct fm_error *error) {
    char rule[48];
    struct fm_schema prepared;
    struct json_object *schema = arguments_schema(tool);
    if (!schema) {
        return fm_fail_no_memory(error);
    }
    enum fm_code code = fm_schema_prepare(schema, tool->strict, &prepared, error);
    json_object_put(schema);
    if (code != FM_OK) {
        name_tool(index, error);
        return code;
    }
    snprintf(rule, sizeof rule, "arguments%zu: %%json ", index);
    fm_buf_append_str(lark, rule);
    fm_buf_append(lark, prepared.guide.data, prepared.guide.len);
    fm_buf_append_char(lark, '\n');
    fm_schema_free(&prepared);
    return FM_OK;
}

/* What the answer may be besides calls. */
static void write_start(const struct fm_job *job, const char *schema, size_t len, struct fm_buf *lark) {
    if (job->tool_mode == FM_TOOLS_REQUIRED) {
        fm_buf_append_str(lark, "start: \"" FM_TOOL_BEGIN "\" calls\n");
    } else if (schema) {
        fm_buf_append_str(lark, "start: text | \"" FM_TOOL_BEGIN "\" calls\ntext: %json ");
        fm_buf_append(lark, schema, len);
        fm_buf_append_char(lark, '\n');
    } else {
        fm_buf_append_str(lark, "start: TEXT | head calls\nTEXT: /(?s:.*)/\n"
                                "head[lazy]: /(?s:.*)/ \"" FM_TOOL_BEGIN "\"\n");
    }
}

static void write_calls(const struct fm_job *job, struct fm_buf *lark) {
    char more[32];
    fm_buf_append_str(lark, "calls: call");
    if (job->parallel_tool_calls) {
        snprintf(more, sizeof more, " call){0,%d}", FM_TOOL_CALLS_MAX - 1);
        fm_buf_append_str(lark, " (");
        write_literal(FM_TOOL_NEXT, strlen(FM_TOOL_NEXT), lark);
        fm_buf_append_str(lark, more);
    }
    fm_buf_append_str(lark, "\ncall: ");
    write_literal(FM_TOOL_NAME, strlen(FM_TOOL_NAME), lark);
    fm_buf_append_str(lark, " tool ");
    write_literal(FM_TOOL_END, strlen(FM_TOOL_END), lark);
    fm_buf_append_char(lark, '\n');
}

enum fm_code fm_tool_grammar(const struct fm_job *job, const char *schema, size_t len, struct fm_buf *lark,
                             struct fm_error *error) {
    write_start(job, schema, len, lark);
    write_calls(job, lark);
    const char *separator = "tool: ";
    for (size_t i = 0; i < job->tool_count; i++) {
        if (job->tools[i].allowed) {
            fm_buf_append_str(lark, separator);
            write_choice(&job->tools[i], i, lark);
            separator = " | ";
        }
    }
    fm_buf_append_char(lark, '\n');
    for (size_t i = 0; i < job->tool_count; i++) {
        enum fm_code code = job->tools[i].allowed ? write_arguments(&job->tools[i], i, lark, error) : FM_OK;
        if (code != FM_OK) {
            return code;
        }
    }
    return lark->failed ? fm_fail_no_memory(error) : FM_OK;
}
