/*
 * The grammar of an answer that may call tools, in llguidance's Lark, here with the marks of our own form:
 *
 *     start: TEXT | head calls
 *     TEXT: /(?s:.*)/
 *     head[lazy]: /(?s:.*)/ "<tool_call>"
 *     calls: "\n{\"name\": \"" tool ("}\n</tool_call>\n<tool_call>\n{\"name\": \"" tool){0,127} LAST
 *     LAST: "}\n</tool_call>" "\n"?
 *     tool: "get_weather\", \"arguments\": " arguments0
 *     arguments0: %json {"type":"object"}
 *
 * A lazy lexeme ends with its first match: free text ends with the first trigger, and without a trigger it may end
 * anywhere. No text contains a control token (`<[5]>`), so the text before a control token needs no lazy lexeme. Calls
 * as plain JSON (json_call.h) begin with a lexeme for each tool:
 *
 *     start: TEXT | head calls | json
 *     json: (json0 | json1) (NEXT ("f\"" ARGUMENTS arguments0 | "g\"" ARGUMENTS arguments1)){0,127} END
 *     json0: name0 ARGUMENTS arguments0
 *     name0[lazy]: PLACE BEGIN "f\""
 *
 * If the vocabulary has a token for a tag, a tag after a call must be this token, because a model may recognise the end
 * of its call only by the token. The model may write the first tag of a call in any tokens:
 *
 *     calls: "\n{\"name\": \"" tool ("}\n" <[8]> "\n" <[7]> "\n{\"name\": \"" tool){0,127} "}\n" <[8]> "\n"?
 *
 * Calls whose message has a header have several ways to begin and to continue:
 *
 *     start: TEXT | head calls | TEXT <[7]> "assistant" head calls
 *     calls: tool
 *     tool: "get_weather" rest arguments0
 *     head: head0 | head1
 *     head0[lazy]: " to=functions."
 *     head1: <[5]> "commentary to=functions."
 *     rest: rest0 | rest1
 *     rest0: <[5]> "commentary json" <[6]>
 *     rest1: " json" <[6]>
 *
 * Calls that the prompt has opened begin with a lexeme for each tool, too (here with the marks of Functionary):
 *
 *     start: TEXT | opened more
 *     opened: (opened0 arguments0 | opened1 arguments1)
 *     opened0[lazy]: (/(?s:.*)/ ">>>")? "f\n"
 *     calls: tool more
 *     more: "" (">>>" tool){0,127}
 *     tool: "f\n" arguments0 | "g\n" arguments1
 *
 * A call of a tool that does not exist is text, and so is everything after it (fm_tool_form_has_unknown):
 *
 *     start: TEXT | head calls | head unknown
 *     unknown: "\n{\"name\": \"" UNKNOWN "\"" start
 *     UNKNOWN: /[a-zA-Z0-9_.:\/-]{1,64}/ & ~("f" | "g")
 *
 * If control tokens or ids are around its parts, or if it comes after another call, it is read as a call
 * (fm_tool_form_retells_unknown):
 *
 *     calls: any_tool (<[5]> any_tool){0,127}
 *     any_tool: tool | UNKNOWN <[6]> any
 *     any: %json {"type":"object"}
 *
 * If arguments are not JSON, such a call and everything after it is left out of the answer:
 *
 *     start: ... | TEXT head left
 *     left: (tool <[5]>){0,127} UNKNOWN TEXT left_rest*
 *     left_rest: "" | <[5]> TEXT | <[6]> TEXT
 *
 * Each argument in tags has a rule. Arguments that are not required may be left out:
 *
 *     tool: "f>\n" tag0_0 tag0_1?
 *     tag0_0: "<parameter=" "a>\n" raw
 *     tag0_1: "<parameter=" "b>\n" value0_1 "\n</parameter>" "\n"
 *     value0_1: %json {"type":"integer"}
 *     raw: raw_text "\n"
 *     raw_text[lazy]: /(?s:.*)/ "\n</parameter>"
 */
#include "engine/guide/tool_grammar.h"
#include "engine/chat/value_schema.h"
#include "engine/guide/notation_grammar.h"
#include "engine/guide/schema.h"
#include "engine/guide/text_grammar.h"
#include "protocol/json_writer.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#define BARRED_MIN 4u /* bytes of a text in which no call begins */

#define TEXT_MAX (1u << 20) /* bytes of a name in JSON, a line of Lark */

/* Writes `text` as a string, if it is not empty, and empties it. */
static void write_pending(struct fm_buf *text, struct fm_buf *lark) {
    if (text->len > 0) {
        fm_buf_append_char(lark, ' ');
        fm_text_literal(text->data, text->len, lark);
    }
    lark->failed |= text->failed;
    fm_buf_reset(text);
}

/*
 * Writes `before` (`len` bytes) and then `mark`. Both are one literal, up to the first control token or place of the
 * mark.
 */
static void write_after(const char *before, size_t len, const struct fm_tool_mark *mark, struct fm_buf *lark) {
    struct fm_buf text;
    size_t controls = 0;
    fm_buf_init(&text, TEXT_MAX);
    fm_buf_append(&text, before, len);
    for (size_t at = 0; at < mark->len;) {
        const struct fm_tool_control *control = &mark->controls[controls];
        if (controls < mark->control_count && control->at == at) {
            write_pending(&text, lark);
            fm_text_control(control->token, lark);
            at += control->len;
            controls++;
        } else if (mark->place && mark->place_at == at) {
            write_pending(&text, lark);
            fm_buf_append_str(lark, mark->place == FM_TOOL_ID_PLACE ? " CALL_ID" : " CALL_NUMBER");
            at += fm_tool_place_len(mark);
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

/*
 * Writes `rule: rule0 | rule1`, and the rules rule0, rule1 and so on. A rule that is only text ends with its first
 * match.
 */
static void write_ways(const char *rule, const struct fm_tool_mark *ways, size_t count, struct fm_buf *lark) {
    char name[32];
    fm_buf_append_str(lark, rule);
    for (size_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "%s%s%zu", i == 0 ? ": " : " | ", rule, i);
        fm_buf_append_str(lark, name);
    }
    for (size_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "\n%s%zu%s:", rule, i, ways[i].control_count > 0 ? "" : "[lazy]");
        fm_buf_append_str(lark, name);
        write_mark(&ways[i], lark);
    }
    fm_buf_append_char(lark, '\n');
}

static struct json_object *properties_of(const struct fm_tool *tool) {
    return tool->parameters ? json_object_object_get(tool->parameters, "properties") : NULL;
}

/* Writes ` tag0_0 tag0_1?`, or the mark of a call without arguments. */
static void write_tags(const struct fm_tool_tags *tags, const struct fm_tool *tool, size_t index, struct fm_buf *lark) {
    struct json_object *properties = properties_of(tool);
    struct json_object_iter at;
    struct fm_buf rules;
    char rule[64];
    size_t number = 0;
    bool any_required = false;
    fm_buf_init(&rules, TEXT_MAX);
    if (properties) {
        json_object_object_foreachC(properties, at) {
            bool required = fm_value_is_required(tool->parameters, at.key);
            snprintf(rule, sizeof rule, " tag%zu_%zu%s", index, number++, required ? "" : "?");
            fm_buf_append_str(&rules, rule);
            any_required = any_required || required;
        }
    }
    bool optional = tags->none.len > 0 && !any_required;
    fm_buf_append_str(lark, optional && number > 0 ? " (" : "");
    fm_buf_append(lark, rules.data, rules.len);
    fm_buf_append_str(lark, optional && number > 0 ? " |" : "");
    if (optional) {
        write_mark(&tags->none, lark);
    }
    fm_buf_append_str(lark, optional && number > 0 ? ")" : "");
    lark->failed |= rules.failed;
    fm_buf_free(&rules);
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
        static const struct fm_tool_mark none = {.len = 0};
        write_after(name.data + 1, name.len - 2, form->header.recipient ? &none : &form->arguments, lark);
        fm_buf_append_str(lark, form->header.recipient ? " rest" : "");
    }
    fm_buf_free(&name);
    if (form->tags.key.len > 0) {
        write_tags(&form->tags, tool, index, lark);
        return;
    }
    snprintf(rule, sizeof rule, form->notation.open ? " notation%zu" : " arguments%zu", index);
    fm_buf_append_str(lark, rule);
}

/* The caller keeps `value`. False: out of memory. */
static bool add_member(struct json_object *object, const char *key, struct json_object *value) {
    if (json_object_object_add(object, key, json_object_get(value)) == 0) {
        return true;
    }
    json_object_put(value);
    return false;
}

/*
 * The schema of a tool's arguments, a new reference. If the schema has no `type`, the arguments must be an object too,
 * as hosts expect. NULL: out of memory.
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

/* Arguments must be an object: its last brace shows where a call ends, and clients take nothing else. */
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

/* `value0_1: %json {"type":"integer"}` */
enum fm_code fm_tool_grammar_schema(const char *rule, struct json_object *schema, const struct fm_tool *tool,
                                    struct fm_buf *lark, struct fm_error *error) {
    struct fm_schema prepared;
    struct json_object *closed = schema ? fm_schema_closed(schema) : NULL;
    json_object_put(schema);
    if (!closed) {
        return fm_fail_no_memory(error);
    }
    enum fm_code code = fm_schema_prepare(closed, tool->strict, &prepared, error);
    json_object_put(closed);
    if (code != FM_OK) {
        return code;
    }
    fm_buf_append_str(lark, rule);
    fm_buf_append_str(lark, ": %json ");
    fm_buf_append(lark, prepared.guide.data, prepared.guide.len);
    fm_buf_append_char(lark, '\n');
    fm_schema_free(&prepared);
    return FM_OK;
}

static enum fm_code write_arguments(const struct fm_tool *tool, size_t index, struct fm_buf *lark,
                                    struct fm_error *error) {
    char rule[48];
    enum fm_code code = check_type(tool, index, error);
    if (code != FM_OK) {
        return code;
    }
    snprintf(rule, sizeof rule, "arguments%zu", index);
    code = fm_tool_grammar_schema(rule, arguments_schema(tool), tool, lark, error);
    if (code != FM_OK) {
        name_tool(index, error);
    }
    return code;
}

/*
 * Writes the fixed texts that `property` may have, as ` ("a" | "b"`. If `property` may be any other text, `*any` gets
 * the schema of that text.
 */
static void write_choices(struct json_object *root, struct json_object *property, const char **separator,
                          struct fm_value_schema *any, struct fm_buf *lark) {
    struct fm_value_schema read;
    if (!fm_value_schema_read(root, property, &read)) {
        return;
    }
    for (size_t i = 0; read.any_of && i < json_object_array_length(read.any_of); i++) {
        write_choices(root, json_object_array_get_idx(read.any_of, i), separator, any, lark);
    }
    for (size_t i = 0; i < read.choice_count; i++) {
        struct json_object *choice = fm_value_schema_choice(&read, i);
        if (choice) {
            fm_buf_append_str(lark, *separator);
            fm_text_literal(json_object_get_string(choice), (size_t)json_object_get_string_len(choice), lark);
            *separator = " | ";
        }
    }
    if (!read.any_of && read.choice_count == 0 && (read.types & FM_VALUE_STRING)) {
        *any = read;
    }
}

/*
 * Writes ` TEXT0_1`, and its rule to `rules`: a text that `schema` limits further, up to the mark that closes the text.
 * Text and mark are one lexeme, unless the mark has a control token: a lexeme of the text alone would continue into the
 * mark.
 */
static void write_limited(const struct fm_tool_tags *tags, const struct fm_value_schema *schema, bool or_null,
                          const char *number, struct fm_buf *lark, struct fm_buf *rules) {
    const bool control = tags->close.control_count > 0;
    fm_buf_append_str(lark, " TEXT");
    fm_buf_append_str(lark, number);
    fm_buf_append_str(rules, "TEXT");
    fm_buf_append_str(rules, number);
    fm_buf_append_str(rules, ": ((");
    fm_text_without(tags->close.text, tags->close.len, rules);
    fm_text_grammar(schema, rules);
    fm_buf_append_char(rules, ')');
    fm_buf_append_str(rules, or_null ? " | \"null\"" : "");
    fm_buf_append_str(rules, or_null && tags->python ? " | \"None\"" : "");
    fm_buf_append_char(rules, ')');
    write_mark(&tags->close, control ? lark : rules);
    write_mark(&tags->after, lark);
    fm_buf_append_char(lark, '\n');
    fm_buf_append_char(rules, '\n');
}

/* Appends ` | "True"` and so on: Python's words for the values that `property` allows, in addition to JSON's words. */
static void write_words(struct json_object *root, struct json_object *property, struct fm_buf *lark) {
    struct fm_value_schema read;
    if (!fm_value_schema_read(root, property, &read)) {
        return;
    }
    for (size_t i = 0; read.any_of && i < json_object_array_length(read.any_of); i++) {
        write_words(root, json_object_array_get_idx(read.any_of, i), lark);
    }
    bool free = !read.any_of && read.choice_count == 0;
    fm_buf_append_str(lark, free && (read.types & FM_VALUE_BOOLEAN) ? " | \"True\" | \"False\"" : "");
    fm_buf_append_str(lark, free && (read.types & FM_VALUE_NULL) ? " | \"None\"" : "");
    for (size_t i = 0; i < read.choice_count; i++) {
        struct json_object *choice = fm_value_schema_choice(&read, i);
        bool is_bool = json_object_is_type(choice, json_type_boolean);
        fm_buf_append_str(lark, !choice ? " | \"None\"" : "");
        fm_buf_append_str(lark, !is_bool ? "" : json_object_get_boolean(choice) ? " | \"True\"" : " | \"False\"");
    }
}

/*
 * Writes the text after the name of a value's rule: the value's schema, with the draft of the tool's schema and the
 * schemas that the value's schema may refer to.
 */
static enum fm_code write_value(const struct fm_tool *tool, struct json_object *property, struct fm_buf *rule,
                                struct fm_error *error) {
    static const char *const keys[] = {"$schema", "$defs", "definitions"};
    struct json_object *schema = json_object_get(property);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct json_object *value = json_object_object_get(tool->parameters, keys[i]);
        struct json_object *copy = schema == property ? NULL : schema;
        if (!value || json_object_object_get_ex(property, keys[i], NULL)) {
            continue;
        }
        if ((!copy && json_object_deep_copy(property, &copy, NULL) != 0) || !add_member(copy, keys[i], value)) {
            json_object_put(copy);
            json_object_put(schema == property ? schema : NULL);
            return fm_fail_no_memory(error);
        }
        json_object_put(schema == property ? schema : NULL); /* the new reference from above */
        schema = copy;
    }
    return fm_tool_grammar_schema("", schema, tool, rule, error);
}

/*
 * The number of the rule with the text `rule`: `number`, or the number of an equal rule, because equal rules need to be
 * compiled only once. NULL: out of memory.
 */
static const char *rule_number(struct json_object *known, const char *rule, const char *number) {
    struct json_object *found = json_object_object_get(known, rule);
    if (!found) {
        found = json_object_new_string(number);
        if (!found || json_object_object_add(known, rule, found) != 0) {
            json_object_put(found);
            return NULL;
        }
    }
    return json_object_get_string(found);
}

/* Writes the rules of an argument that is a string, or null, after its key. */
static void write_text(const struct fm_tool_tags *tags, const struct fm_tool *tool, struct json_object *property,
                       const char *number, struct fm_buf *lark) {
    const bool or_null = fm_tool_value_of(tags, tool->parameters, property) == FM_TOOL_RAW_OR_NULL;
    const char *separator = " (";
    struct fm_value_schema any = {.schema = NULL};
    struct fm_buf more;
    fm_buf_init(&more, TEXT_MAX);
    write_choices(tool->parameters, property, &separator, &any, &more);
    if (any.schema && !fm_value_schema_limits_text(&any)) {
        fm_buf_append_str(lark, " raw\n");
        fm_buf_free(&more);
        return;
    }
    if (any.schema) {
        fm_buf_reset(&more);
        write_limited(tags, &any, or_null, number, lark, &more);
        fm_buf_append(lark, more.data, more.len);
    } else {
        fm_buf_append(lark, more.data, more.len);
        fm_buf_append_str(lark, or_null ? " | \"null\"" : "");
        fm_buf_append_str(lark, or_null && tags->python ? " | \"None\")" : ")");
        write_mark(&tags->close, lark);
        write_mark(&tags->after, lark);
        fm_buf_append_char(lark, '\n');
    }
    lark->failed |= more.failed;
    fm_buf_free(&more);
}

/*
 * Writes the rules of an argument that is JSON, after its key. `known` has, for the text of each value's rule, the
 * number of the argument with that rule. So equal rules are written once.
 */
static enum fm_code write_json(const struct fm_tool_tags *tags, const struct fm_tool *tool, struct json_object *property,
                               const char *number, struct json_object *known, struct fm_buf *lark,
                               struct fm_error *error) {
    struct fm_buf rule;
    fm_buf_init(&rule, TEXT_MAX);
    enum fm_code code = write_value(tool, property, &rule, error);
    fm_buf_append(&rule, "", 1);
    const char *value = code == FM_OK && !rule.failed ? rule_number(known, rule.data, number) : NULL;
    if (value) {
        fm_buf_append_str(lark, " (value");
        fm_buf_append_str(lark, value);
        if (tags->python) {
            write_words(tool->parameters, property, lark);
        }
        fm_buf_append_char(lark, ')');
        write_mark(&tags->close, lark);
        write_mark(&tags->after, lark);
        fm_buf_append_char(lark, '\n');
        if (strcmp(value, number) == 0) {
            fm_buf_append_str(lark, "value");
            fm_buf_append_str(lark, number);
            fm_buf_append_str(lark, rule.data);
        }
    } else if (code == FM_OK) {
        code = fm_fail_no_memory(error);
    }
    fm_buf_free(&rule);
    return code;
}

/* Writes the rules of one argument. */
static enum fm_code write_tag(const struct fm_tool_tags *tags, const struct fm_tool *tool, const char *key,
                              struct json_object *property, const char *number, struct json_object *known,
                              struct fm_buf *lark, struct fm_error *error) {
    const bool json = fm_tool_value_of(tags, tool->parameters, property) == FM_TOOL_JSON_VALUE;
    fm_buf_append_str(lark, "tag");
    fm_buf_append_str(lark, number);
    fm_buf_append_char(lark, ':');
    write_mark(&tags->key, lark);
    write_after(key, strlen(key), json ? &tags->json : &tags->raw, lark);
    if (json) {
        return write_json(tags, tool, property, number, known, lark, error);
    }
    write_text(tags, tool, property, number, lark);
    return FM_OK;
}

/*
 * Writes the rules of a raw text, up to the mark that closes it. No text contains a control token, but a text could
 * contain the characters of one.
 */
static void write_raw(const struct fm_tool_tags *tags, struct fm_buf *lark) {
    fm_buf_append_str(lark, "raw: raw_text");
    write_mark(&tags->after, lark);
    if (tags->close.control_count > 0) {
        fm_buf_append_str(lark, "\nraw_text: RAW_TEXT");
        write_mark(&tags->close, lark);
        fm_buf_append_str(lark, "\nRAW_TEXT: ");
        fm_text_without(tags->close.text, tags->close.len, lark);
        fm_buf_append_char(lark, '\n');
    } else {
        fm_buf_append_str(lark, "\nraw_text[lazy]: /(?s:.*)/");
        write_mark(&tags->close, lark);
        fm_buf_append_char(lark, '\n');
    }
}

/* Writes the rules of all arguments in tags. */
static enum fm_code write_all_tags(const struct fm_kit_job *job, const struct fm_tool_tags *tags, struct fm_buf *lark,
                                   struct fm_error *error) {
    struct json_object *known = json_object_new_object();
    enum fm_code code = known ? FM_OK : fm_fail_no_memory(error);
    for (size_t i = 0; i < job->tool_count; i++) {
        struct json_object *properties = job->tools[i].allowed ? properties_of(&job->tools[i]) : NULL;
        struct json_object_iter at;
        char number[48];
        size_t count = 0;
        if (!properties) {
            continue;
        }
        json_object_object_foreachC(properties, at) {
            snprintf(number, sizeof number, "%zu_%zu", i, count++);
            code = code ? code : write_tag(tags, &job->tools[i], at.key, at.val, number, known, lark, error);
        }
    }
    json_object_put(known);
    write_raw(tags, lark);
    return code;
}

/* Writes the rules of all arguments in a notation other than JSON. */
static enum fm_code write_all_notations(const struct fm_kit_job *job, const struct fm_notation *notation,
                                        struct fm_buf *lark, struct fm_error *error) {
    struct json_object *known = json_object_new_object();
    enum fm_code code = known ? FM_OK : fm_fail_no_memory(error);
    for (size_t i = 0; i < job->tool_count && code == FM_OK; i++) {
        code = job->tools[i].allowed ? fm_notation_grammar(notation, &job->tools[i], i, known, lark, error) : FM_OK;
    }
    json_object_put(known);
    fm_notation_grammar_shared(notation, lark);
    return code;
}

/*
 * Writes `pattern` for each tool that plain JSON can call. The tool's number replaces each `#`, and its name each `@`.
 */
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

/* Writes calls as plain JSON. */
static void write_json_calls(const struct fm_kit_job *job, struct fm_buf *lark) {
    char more[32];
    fm_buf_append_str(lark, "\njson: (");
    write_each(job, "", "json#", " | ", lark);
    fm_buf_append_char(lark, ')');
    if (job->parallel_tool_calls) {
        write_each(job, " (NEXT (", "\"@\\\"\" ARGUMENTS arguments#", " | ", lark);
        snprintf(more, sizeof more, ")){0,%d}", FM_CALLS_MAX - 1);
        fm_buf_append_str(lark, more);
    }
    fm_buf_append_str(lark, " END\n");
    write_each(job, "", "json#: name# ARGUMENTS arguments#\n", "", lark);
    write_each(job, "", "name#[lazy]: PLACE BEGIN \"@\\\"\"\n", "", lark);
    fm_buf_append_str(lark, "PLACE: /" FM_JSON_CALL_PLACE "/\nBEGIN: /" FM_JSON_CALL_BEGIN
                            "/\nARGUMENTS: /" FM_JSON_CALL_ARGUMENTS "/\nNEXT: /" FM_JSON_CALL_NEXT
                            "/\nEND: /" FM_JSON_CALL_END "/");
}

/* Writes for each tool the beginning of a call that the prompt may have opened. */
static void write_opened(const struct fm_kit_job *job, const struct fm_tool_form *form, struct fm_buf *lark) {
    char rule[64];
    const char *before = "";
    fm_buf_append_str(lark, "\nopened: (");
    for (size_t i = 0; i < job->tool_count; i++) {
        if (job->tools[i].allowed) {
            snprintf(rule, sizeof rule, "%sopened%zu arguments%zu", before, i, i);
            fm_buf_append_str(lark, rule);
            before = " | ";
        }
    }
    fm_buf_append_char(lark, ')');
    for (size_t i = 0; i < job->tool_count; i++) {
        const char *name = job->tools[i].name;
        if (job->tools[i].allowed) {
            snprintf(rule, sizeof rule, "\nopened%zu[lazy]: (/(?s:.*)/ ", i);
            fm_buf_append_str(lark, rule);
            fm_text_literal(form->next.text, form->next.len, lark);
            fm_buf_append_str(lark, ")?");
            write_after(name, strlen(name), &form->arguments, lark);
        }
    }
}

/* Writes the beginning of a call: the rule `head` if the form has headers, otherwise the trigger. */
static void write_trigger(const struct fm_tool_form *form, struct fm_buf *lark) {
    if (form->header.recipient) {
        fm_buf_append_str(lark, " head");
    } else {
        write_mark(&form->trigger, lark);
    }
}

/* Writes the terminal of names that are not those of an allowed tool. */
static void write_unknown_name(const struct fm_kit_job *job, const struct fm_tool_form *form, struct fm_buf *lark) {
    const char *before = "(";
    fm_buf_append_str(lark, "UNKNOWN: /");
    fm_buf_append_str(lark, strchr(".:/", form->arguments.text[0]) ? FM_TOOL_PLAIN_NAME : FM_TOOL_UNKNOWN_NAME);
    fm_buf_append_str(lark, "/ & ~");
    for (size_t i = 0; i < job->tool_count; i++) {
        if (job->tools[i].allowed) {
            fm_buf_append_str(lark, before);
            fm_text_literal(job->tools[i].name, strlen(job->tools[i].name), lark);
            before = " | ";
        }
    }
    fm_buf_append_char(lark, ')');
}

/* Writes the rule of a call that names an allowed tool, or any other tool. */
static void write_any_tool(const struct fm_kit_job *job, const struct fm_tool_form *form, struct fm_buf *lark) {
    fm_buf_append_str(lark, "any_tool: tool | UNKNOWN");
    if (form->header.recipient) {
        fm_buf_append_str(lark, " rest");
    } else {
        write_mark(&form->arguments, lark);
    }
    fm_buf_append_str(lark, " any\nany: %json {\"type\":\"object\"}\n");
    if (!fm_tool_form_has_unknown(form)) {
        write_unknown_name(job, form, lark);
        fm_buf_append_char(lark, '\n');
    }
}

/*
 * Writes the rule of a call of another tool, up to the byte after its name. The call is text, and so is everything
 * after it.
 */
static void write_unknown(const struct fm_kit_job *job, const struct fm_tool_form *form, struct fm_buf *lark) {
    fm_buf_append_str(lark, "\nunknown:");
    write_mark(&form->name, lark);
    fm_buf_append_str(lark, " UNKNOWN ");
    fm_text_literal(form->arguments.text, 1, lark);
    fm_buf_append_str(lark, " start\n");
    write_unknown_name(job, form, lark);
}

/*
 * Whether a call of another tool, and everything after it, is left out of the answer. This is so if arguments are not
 * JSON or the prompt opens calls, and the call comes after another call or can't be text.
 */
static bool leaves_unknown(const struct fm_kit_job *job, const struct fm_tool_form *form) {
    bool json = fm_tool_form_has_json(form);
    bool many = job->parallel_tool_calls && form->next.len > 0;
    bool left = form->opened ? many : !json && form->trigger.len > 0 && (many || !fm_tool_form_has_unknown(form));
    return left && fm_tools_allow_text(job);
}

/* Writes the rules of free text, and of the beginning of a call after it. */
static void write_free_text(const struct fm_kit_job *job, const struct fm_tool_form *form, struct fm_buf *lark) {
    bool control = form->trigger.control_count > 0;
    bool by_json = any_by_json(job);
    fm_buf_append_str(lark, "TEXT: /(?s:.*)/\nstart: TEXT");
    fm_buf_append_str(lark, by_json ? " | json" : "");
    fm_buf_append_str(lark, fm_tool_form_has_unknown(form) ? " | head unknown" : "");
    if (leaves_unknown(job, form)) {
        fm_buf_append_str(lark, form->opened ? " | left" : control ? " | TEXT head left" : " | head left");
    }
    fm_buf_append_str(lark, form->opened ? " | opened more" : "");
    if (form->text_end.len > 0) {
        fm_buf_append_str(lark, " | TEXT");
        write_mark(&form->text_end, lark);
    }
    if (form->header.recipient) {
        fm_buf_append_str(lark, " | head calls");
        if (form->header.between.len > 0) {
            fm_buf_append_str(lark, " | TEXT");
            write_mark(&form->header.between, lark);
            fm_buf_append_str(lark, " head calls");
        }
    } else if (form->trigger.len > 0) {
        fm_buf_append_str(lark, control ? " | TEXT head calls\nhead:" : " | head calls\nhead[lazy]: /(?s:.*)/");
        write_mark(&form->trigger, lark);
    }
    if (by_json) {
        write_json_calls(job, lark);
    }
    if (form->opened) {
        write_opened(job, form, lark);
    }
    if (fm_tool_form_has_unknown(form)) {
        write_unknown(job, form, lark);
    }
}

/* Writes the start rule: the answers that are allowed besides calls. */
static void write_start(const struct fm_kit_job *job, const struct fm_tool_form *form, const char *schema, size_t len,
                        struct fm_buf *lark) {
    if (job->tool_mode == FM_TOOLS_REQUIRED) {
        fm_buf_append_str(lark, "start:");
        write_trigger(form, lark);
        fm_buf_append_str(lark, " calls");
    } else if (schema) {
        fm_buf_append_str(lark, "start: text |");
        write_trigger(form, lark);
        fm_buf_append_str(lark, " calls\ntext: %json ");
        fm_buf_append(lark, schema, len);
    } else {
        write_free_text(job, form, lark);
    }
    fm_buf_append_char(lark, '\n');
}

/* Returns `mark` with the tokens of its tags added to its controls, if there is room for all of them. */
static struct fm_tool_mark with_tags(const struct fm_tool_mark *mark, const struct fm_vocabulary *vocabulary) {
    const struct fm_tool_control *next = mark->controls;
    const struct fm_tool_control *last = mark->controls + mark->control_count;
    struct fm_tool_mark found = *mark;
    if (!vocabulary || !vocabulary->tag) {
        return found;
    }
    found.control_count = 0;
    for (size_t at = 0; at < mark->len;) {
        const size_t end = next < last ? next->at : mark->len;
        struct fm_tool_control control = {.at = at};
        if (at < end) {
            control.len = vocabulary->tag(vocabulary->argument, mark->text + at, end - at, &control.token);
        } else {
            control = *next++;
        }
        if (control.len > 0 && found.control_count == FM_TOOL_MARK_CONTROLS) {
            return *mark;
        }
        if (control.len > 0) {
            found.controls[found.control_count++] = control;
        }
        at += control.len > 0 ? control.len : 1;
    }
    return found;
}

/*
 * Writes the end of the last call if white space comes before further calls: the white space may then come without a
 * further call. Many models write it before they decide whether to call again. The white space is one lexeme with the
 * text before it.
 */
static void write_end(const struct fm_tool_mark *end, const struct fm_tool_mark *next, struct fm_buf *lark) {
    const struct fm_tool_control *last = end->control_count > 0 ? &end->controls[end->control_count - 1] : NULL;
    bool alone = fm_tool_place_len(end) == 0 && (!last || last->at + last->len == end->len);
    bool begins = alone && next->len > end->len && memcmp(next->text, end->text, end->len) == 0;
    size_t len = end->len;
    while (begins && len < next->len && fm_tool_is_space(next->text[len])) {
        len++;
    }
    fm_buf_append_str(lark, len > end->len && !last ? " LAST\nLAST:" : "");
    write_mark(end, lark);
    if (len > end->len) {
        fm_buf_append_char(lark, ' ');
        fm_text_literal(next->text + end->len, len - end->len, lark);
        fm_buf_append_char(lark, '?');
    }
}

/* Writes ` | <[5]> TEXT` for each control token of `mark`. */
static void write_controls(const struct fm_tool_mark *mark, struct fm_buf *lark) {
    for (size_t i = 0; i < mark->control_count; i++) {
        fm_buf_append_str(lark, " |");
        fm_text_control(mark->controls[i].token, lark);
        fm_buf_append_str(lark, " TEXT");
    }
}

static void write_left(const struct fm_kit_job *job, const struct fm_tool_form *form, const struct fm_tool_mark *next,
                       struct fm_buf *lark) {
    const struct fm_tool_mark *marks[] = {&form->trigger,  &form->name,     &form->arguments,  &form->next,      &form->end,
                                          &form->tags.key, &form->tags.raw, &form->tags.close, &form->tags.after};
    const bool is_text = fm_tool_form_has_unknown(form);
    char more[32];
    fm_buf_append_str(lark, "left:");
    write_mark(&form->name, lark);
    if (form->opened) {
        fm_buf_append_str(lark, " opened");
        write_mark(next, lark);
    }
    if (job->parallel_tool_calls && form->next.len > 0) {
        fm_buf_append_str(lark, " (tool");
        write_mark(next, lark);
        snprintf(more, sizeof more, "){%d,%d}", is_text, FM_CALLS_MAX - 1);
        fm_buf_append_str(lark, more);
    }
    fm_buf_append_str(lark, " UNKNOWN TEXT left_rest*\nleft_rest: \"\"");
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        write_controls(marks[i], lark);
    }
    if (form->notation.open && form->notation.quote && form->notation.quote_token >= 0) {
        fm_buf_append_str(lark, " |");
        fm_text_control(form->notation.quote_token, lark);
        fm_buf_append_str(lark, " TEXT");
    }
    fm_buf_append_char(lark, '\n');
    if (!is_text) {
        write_unknown_name(job, form, lark);
        fm_buf_append_char(lark, '\n');
    }
}

static void write_calls(const struct fm_kit_job *job, const struct fm_tool_form *form,
                        const struct fm_vocabulary *vocabulary, struct fm_buf *lark) {
    const struct fm_tool_mark next = with_tags(&form->next, vocabulary);
    const struct fm_tool_mark end = with_tags(&form->end, vocabulary);
    char more[32];
    const bool many = job->parallel_tool_calls && form->next.len > 0;
    const bool retells = fm_tool_form_retells_unknown(form, job);
    const bool any_first = retells && !fm_tool_form_has_unknown(form);
    fm_buf_append_str(lark, "calls:");
    write_mark(&form->name, lark);
    fm_buf_append_str(lark, form->opened ? " tool more\nmore: \"\"" : any_first ? " any_tool" : " tool");
    if (many) {
        fm_buf_append_str(lark, " (");
        write_mark(&next, lark);
        snprintf(more, sizeof more, " %s){0,%d}", retells ? "any_tool" : "tool", FM_CALLS_MAX - 1);
        fm_buf_append_str(lark, more);
        write_end(&end, &next, lark);
    } else {
        write_mark(&end, lark);
    }
    fm_buf_append_char(lark, '\n');
    if (any_first || (retells && many)) {
        write_any_tool(job, form, lark);
    }
    if (leaves_unknown(job, form)) {
        write_left(job, form, &next, lark);
    }
}

/* Writes the lexemes of ids and numbers, which differ from call to call, if a mark has a place for them. */
static void write_places(const struct fm_tool_form *form, struct fm_buf *lark) {
    const struct fm_tool_mark *marks[] = {&form->name, &form->arguments, &form->next, &form->end};
    bool has[3] = {false};
    char id[48] = "CALL_ID: /[a-zA-Z0-9_-]{1,32}/\n";
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        has[marks[i]->place] = true;
    }
    if (form->ids == FM_TOOL_IDS_OF_LEN) {
        snprintf(id, sizeof id, "CALL_ID: /[a-zA-Z0-9]{%u}/\n", FM_TOOL_ID_LEN);
    }
    fm_buf_append_str(lark, has[FM_TOOL_ID_PLACE] ? id : "");
    fm_buf_append_str(lark, has[FM_TOOL_NUMBER_PLACE] ? "CALL_NUMBER: /[0-9]{1,4}/\n" : "");
}

enum fm_code fm_tool_grammar(const struct fm_kit_job *job, const struct fm_tool_form *form,
                             const struct fm_vocabulary *vocabulary, const char *schema, size_t len,
                             struct fm_buf *lark, struct fm_error *error) {
    write_start(job, form, schema, len, lark);
    write_calls(job, form, vocabulary, lark);
    write_places(form, lark);
    if (form->header.recipient) {
        write_ways("head", form->header.heads, form->header.head_count, lark);
        write_ways("rest", form->header.rests, form->header.rest_count, lark);
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
    enum fm_code code = form->tags.key.len > 0 ? write_all_tags(job, &form->tags, lark, error) : FM_OK;
    code = code == FM_OK && form->notation.open ? write_all_notations(job, &form->notation, lark, error) : code;
    return code == FM_OK && lark->failed ? fm_fail_no_memory(error) : code;
}

static bool is_word(char c) {
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/*
 * A trigger that is a control token is not allowed as text either. Only its beginning up to the first word is
 * forbidden, such as "<tool_call" or "<seed": otherwise the rest of the trigger would be text.
 */
bool fm_tool_grammar_none(const struct fm_tool_form *form, struct fm_buf *lark) {
    const struct fm_tool_mark *trigger = &form->trigger;
    size_t len = 0;
    while (len < trigger->len && (len < BARRED_MIN || is_word(trigger->text[len]) || !is_word(trigger->text[len - 1]))) {
        len++;
    }
    while (len > 0 && !is_word(trigger->text[len - 1])) {
        len--;
    }
    if (trigger->len == 0) {
        return false;
    }
    fm_buf_append_str(lark, "start: TEXT\nTEXT: /(?s:.*)/ & ~(/(?s:.*)/ ");
    fm_text_literal(trigger->text, len > 0 ? len : trigger->len, lark);
    fm_buf_append_str(lark, " /(?s:.*)/)");
    return true;
}
