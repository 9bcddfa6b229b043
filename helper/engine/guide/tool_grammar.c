/*
 * The grammar of an answer that may call tools, in llguidance's Lark, here with the marks of our own form:
 *
 *     start: TEXT | head calls
 *     TEXT: /(?s:.*)/
 *     head[lazy]: /(?s:.*)/ "<tool_call>"
 *     calls: "\n{\"name\": \"" tool ("}\n</tool_call>\n<tool_call>\n{\"name\": \"" tool){0,127} "}\n</tool_call>"
 *     tool: "get_weather\", \"arguments\": " arguments0
 *     arguments0: %json {"type":"object"}
 *
 * A lazy lexeme ends with its first match: free text ends with the first trigger, and without one it may end anywhere.
 * No text holds a control token (`<[5]>`), so in front of one it is text as any other. Calls as mere JSON
 * (json_call.h) begin with a lexeme for each tool:
 *
 *     start: TEXT | head calls | json
 *     json: (json0 | json1) (NEXT ("f\"" ARGUMENTS arguments0 | "g\"" ARGUMENTS arguments1)){0,127} END
 *     json0: name0 ARGUMENTS arguments0
 *     name0[lazy]: PLACE BEGIN "f\""
 */
#include "engine/guide/tool_grammar.h"
#include "engine/guide/schema.h"
#include "protocol/json_writer.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#define TEXT_MAX (1u << 20) /* bytes of a name in JSON, a line of Lark */

/* A literal of Lark, which is a JSON string. */
static void write_literal(const char *text, size_t len, struct fm_buf *lark) {
    struct fm_json_writer w = fm_json_writer_on(lark);
    fm_json_string(&w, text, len);
}

static void write_control(int32_t token, struct fm_buf *lark) {
    char text[24];
    snprintf(text, sizeof text, " <[%d]>", (int)token);
    fm_buf_append_str(lark, text);
}

/* Writes `text`, if there is any, and empties it. */
static void write_pending(struct fm_buf *text, struct fm_buf *lark) {
    if (text->len > 0) {
        fm_buf_append_char(lark, ' ');
        write_literal(text->data, text->len, lark);
    }
    lark->failed |= text->failed;
    fm_buf_reset(text);
}

/* `mark` after `before` (`len` bytes), in one literal with it as far as no control token and no id comes between. */
static void write_after(const char *before, size_t len, const struct fm_tool_mark *mark, struct fm_buf *lark) {
    struct fm_buf text;
    size_t controls = 0;
    fm_buf_init(&text, TEXT_MAX);
    fm_buf_append(&text, before, len);
    for (size_t at = 0; at < mark->len;) {
        const struct fm_tool_control *control = &mark->controls[controls];
        if (controls < mark->control_count && control->at == at) {
            write_pending(&text, lark);
            write_control(control->token, lark);
            at += control->len;
            controls++;
        } else if (mark->has_id && mark->id_at == at) {
            write_pending(&text, lark);
            fm_buf_append_str(lark, " CALL_ID");
            at += FM_TOOL_ID_LEN;
        } else {
            fm_buf_append_char(&text, mark->text[at++]);
        }
    }
    write_pending(&text, lark);
    fm_buf_free(&text);
}

static void write_mark(const struct fm_tool_mark *mark, struct fm_buf *lark) {
    write_after("", 0, mark, lark);
}

/* `"get_weather\", \"arguments\": " arguments0` */
static void write_choice(const struct fm_tool *tool, size_t index, const struct fm_tool_form *form,
                         struct fm_buf *lark) {
    struct fm_buf name;
    char rule[48];
    fm_buf_init(&name, TEXT_MAX);
    struct fm_json_writer w = fm_json_writer_on(&name);
    fm_json_str(&w, tool->name);
    lark->failed |= name.failed;
    if (name.len >= 2) { /* without its quotes */
        write_after(name.data + 1, name.len - 2, &form->arguments, lark);
    }
    fm_buf_free(&name);
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
        struct json_object_iter member_at;
        json_object_object_foreachC(tool->parameters, member_at) {
            made = made && add_member(schema, member_at.key, member_at.val);
        }
    }
    json_object_put(type);
    if (!made) {
        json_object_put(schema);
        return NULL;
    }
    return schema;
}

/* "format.schema.a" becomes "tools[0].parameters.a". */
static void name_tool(size_t index, struct fm_error *error) {
    static const char prefix[] = "format.schema";
    size_t len = sizeof prefix - 1;
    struct fm_error inner = *error;
    if (strncmp(inner.param, prefix, len) == 0) {
        snprintf(error->param, sizeof error->param, "tools[%zu].parameters%.217s", index, inner.param + len);
    }
}

/* Calls are told apart by the brace that their arguments end with, and clients take nothing else. */
static enum fm_code check_type(const struct fm_tool *tool, size_t index, struct fm_error *error) {
    struct json_object *type = tool->parameters ? json_object_object_get(tool->parameters, "type") : NULL;
    bool object = json_object_is_type(type, json_type_string) && strcmp(json_object_get_string(type), "object") == 0;
    if (object || !tool->parameters || !json_object_object_get_ex(tool->parameters, "type", NULL)) {
        return FM_OK;
    }
    fm_fail(error, FM_INVALID_REQUEST, "the type of a tool's parameters has to be \"object\"");
    snprintf(error->param, sizeof error->param, "tools[%zu].parameters.type", index);
    return error->code;
}

static enum fm_code write_arguments(const struct fm_tool *tool, size_t index, struct fm_buf *lark,
                                    struct fm_error *error) {
    char rule[48];
    struct fm_schema prepared;
    enum fm_code code = check_type(tool, index, error);
    if (code != FM_OK) {
        return code;
    }
    struct json_object *schema = arguments_schema(tool);
    if (!schema) {
        return fm_fail_no_memory(error);
    }
    code = fm_schema_prepare(schema, tool->strict, &prepared, error);
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

/* For each tool that is called by mere JSON, `pattern` with its number in place of each `#`, its name of each `@`. */
static void write_each(const struct fm_kit_job *job, const char *before, const char *pattern, const char *between,
                       struct fm_buf *lark) {
    char number[24];
    for (size_t i = 0; i < job->tool_count; i++) {
        if (!fm_json_call_names(&job->tools[i])) {
            continue;
        }
        snprintf(number, sizeof number, "%zu", i);
        fm_buf_append_str(lark, before);
        for (const char *c = pattern; *c; c++) {
            if (*c == '#' || *c == '@') {
                fm_buf_append_str(lark, *c == '#' ? number : job->tools[i].name);
            } else {
                fm_buf_append_char(lark, *c);
            }
        }
        before = between;
    }
}

static bool any_by_json(const struct fm_kit_job *job) {
    bool any = false;
    for (size_t i = 0; i < job->tool_count; i++) {
        any = any || fm_json_call_names(&job->tools[i]);
    }
    return any;
}

/* Calls as mere JSON. */
static void write_json_calls(const struct fm_kit_job *job, struct fm_buf *lark) {
    char more[32];
    fm_buf_append_str(lark, "\njson: (");
    write_each(job, "", "json#", " | ", lark);
    fm_buf_append_char(lark, ')');
    if (job->parallel_tool_calls) {
        write_each(job, " (NEXT (", "\"@\\\"\" ARGUMENTS arguments#", " | ", lark);
        snprintf(more, sizeof more, ")){0,%d}", FM_TOOL_CALLS_MAX - 1);
        fm_buf_append_str(lark, more);
    }
    fm_buf_append_str(lark, " END\n");
    write_each(job, "", "json#: name# ARGUMENTS arguments#\n", "", lark);
    write_each(job, "", "name#[lazy]: PLACE BEGIN \"@\\\"\"\n", "", lark);
    fm_buf_append_str(lark, "PLACE: /" FM_JSON_CALL_PLACE "/\nBEGIN: /" FM_JSON_CALL_BEGIN
                            "/\nARGUMENTS: /" FM_JSON_CALL_ARGUMENTS "/\nNEXT: /" FM_JSON_CALL_NEXT
                            "/\nEND: /" FM_JSON_CALL_END "/");
}

/* Free text, and how a call begins after it. */
static void write_free_text(const struct fm_kit_job *job, const struct fm_tool_form *form, struct fm_buf *lark) {
    bool control = form->trigger.control_count > 0;
    bool by_json = any_by_json(job);
    fm_buf_append_str(lark, "TEXT: /(?s:.*)/\nstart: TEXT");
    fm_buf_append_str(lark, by_json ? " | json" : "");
    if (form->trigger.len > 0) {
        fm_buf_append_str(lark, control ? " | TEXT head calls\nhead:" : " | head calls\nhead[lazy]: /(?s:.*)/");
        write_mark(&form->trigger, lark);
    }
    if (by_json) {
        write_json_calls(job, lark);
    }
}

/* What the answer may be besides calls. */
static void write_start(const struct fm_kit_job *job, const struct fm_tool_form *form, const char *schema, size_t len,
                        struct fm_buf *lark) {
    if (job->tool_mode == FM_TOOLS_REQUIRED) {
        fm_buf_append_str(lark, "start:");
        write_mark(&form->trigger, lark);
        fm_buf_append_str(lark, " calls");
    } else if (schema) {
        fm_buf_append_str(lark, "start: text |");
        write_mark(&form->trigger, lark);
        fm_buf_append_str(lark, " calls\ntext: %json ");
        fm_buf_append(lark, schema, len);
    } else {
        write_free_text(job, form, lark);
    }
    fm_buf_append_char(lark, '\n');
}

static void write_calls(const struct fm_kit_job *job, const struct fm_tool_form *form, struct fm_buf *lark) {
    char more[32];
    fm_buf_append_str(lark, "calls:");
    write_mark(&form->name, lark);
    fm_buf_append_str(lark, " tool");
    if (job->parallel_tool_calls && form->next.len > 0) {
        fm_buf_append_str(lark, " (");
        write_mark(&form->next, lark);
        snprintf(more, sizeof more, " tool){0,%d}", FM_TOOL_CALLS_MAX - 1);
        fm_buf_append_str(lark, more);
    }
    write_mark(&form->end, lark);
    fm_buf_append_char(lark, '\n');
}

enum fm_code fm_tool_grammar(const struct fm_kit_job *job, const struct fm_tool_form *form, const char *schema,
                             size_t len, struct fm_buf *lark, struct fm_error *error) {
    write_start(job, form, schema, len, lark);
    write_calls(job, form, lark);
    if (form->ids) {
        char id[48];
        snprintf(id, sizeof id, "CALL_ID: /[a-zA-Z0-9]{%d}/\n", FM_TOOL_ID_LEN);
        fm_buf_append_str(lark, id);
    }
    const char *separator = "tool:";
    for (size_t i = 0; i < job->tool_count; i++) {
        if (job->tools[i].allowed) {
            fm_buf_append_str(lark, separator);
            write_choice(&job->tools[i], i, form, lark);
            separator = " |";
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

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* The trigger is no text either where it is a control token. Without what follows its last word, which would be missing
 * alone otherwise: "<tool_call". */
bool fm_tool_grammar_none(const struct fm_tool_form *form, struct fm_buf *lark) {
    const struct fm_tool_mark *trigger = &form->trigger;
    size_t len = trigger->len;
    while (len > 0 && !is_word(trigger->text[len - 1])) {
        len--;
    }
    if (trigger->len == 0) {
        return false;
    }
    fm_buf_append_str(lark, "start: TEXT\nTEXT: /(?s:.*)/ & ~(/(?s:.*)/ ");
    write_literal(trigger->text, len > 0 ? len : trigger->len, lark);
    fm_buf_append_str(lark, " /(?s:.*)/)");
    return true;
}
