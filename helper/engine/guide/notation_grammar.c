/*
 * The grammar of arguments in a notation other than JSON, in llguidance's Lark. Each schema inside a tool's schema gets
 * a rule, unless it is short; equal schemas share one rule.
 * Example: each string stands between two control tokens with the id 7. The keys are `color` (required) and `levels`
 * (optional):
 *
 *     notation0: "{" f0_0_0 "}"
 *     f0_0_0: p0_2 r0_0_1                    the first member
 *     r0_0_1: ("," p0_5)?                    the other members
 *     p0_2: "color:" (<[7]> QUOTED <[7]>)
 *     p0_5: "levels:" n0_3
 *     n0_3: "[" ((j0_4) ("," (j0_4))*)? "]"
 *     j0_4: %json {"type":"integer"}
 */
#include "engine/guide/notation_grammar.h"
#include "engine/chat/value_schema.h"
#include "engine/guide/text_grammar.h"
#include "engine/guide/tool_grammar.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define RULE_MAX  (1u << 20) /* bytes */
#define SHORT_MAX 40u        /* bytes: a shorter text gets no rule of its own */

/* A tool's rules as they are written. */
struct writing {
    const struct fm_notation *notation;
    const struct fm_tool *tool;
    size_t index; /* index of the tool */
    size_t count; /* how many rules were written */
    /* names of rules by their text, so that equal parts, which many tools have, are compiled once */
    struct json_object *known;
    struct fm_buf *lark;
    struct fm_error *error;
    enum fm_code code;
};

/* A property of an object's schema. */
struct member {
    const char *key;
    struct json_object *schema;
    bool required;
};

static void write_value(struct writing *writing, struct json_object *schema, struct fm_buf *rule);

/* A rule's name is made of `letter`, the tool's number and `number`. */
static void write_name(const struct writing *writing, char letter, size_t number, struct fm_buf *rule) {
    char name[64];
    snprintf(name, sizeof name, "%c%zu_%zu", letter, writing->index, number);
    fm_buf_append_str(rule, name);
}

/*
 * Appends to `rule` the name of the rule or terminal with the body `text`. If there is no such rule yet, writes it
 * first.
 */
static void write_known(struct writing *writing, char letter, size_t number, struct fm_buf *text,
                        struct fm_buf *rule) {
    struct json_object *name = NULL;
    struct fm_buf made;
    fm_buf_append_char(text, '\0');
    rule->failed |= text->failed;
    if (text->failed) {
        return;
    }
    if (json_object_object_get_ex(writing->known, text->data, &name)) {
        fm_buf_append_str(rule, json_object_get_string(name));
        return;
    }
    fm_buf_init(&made, RULE_MAX);
    write_name(writing, letter, number, &made);
    fm_buf_append(rule, made.data, made.len);
    fm_buf_append(writing->lark, made.data, made.len);
    fm_buf_append_str(writing->lark, ": ");
    fm_buf_append_str(writing->lark, text->data);
    fm_buf_append_char(writing->lark, '\n');
    name = made.failed ? NULL : json_object_new_string_len(made.data, (int)made.len);
    if (!name || json_object_object_add(writing->known, text->data, name) != 0) {
        json_object_put(name);
        rule->failed = true;
    }
    fm_buf_free(&made);
}

static void write_char(char c, struct fm_buf *rule) {
    fm_text_literal(&c, 1, rule);
}

/* A mark that is a control token is in rules, any other mark is in terminals. */
static bool is_control(const struct fm_notation *notation) {
    return notation->quote_len > 0 && notation->quote_token >= 0;
}

static void write_control(const struct fm_notation *notation, struct fm_buf *rule) {
    if (is_control(notation)) {
        fm_text_control(notation->quote_token, rule);
        fm_buf_append_char(rule, ' ');
    }
}

static void write_mark(const struct fm_notation *notation, struct fm_buf *rule) {
    fm_buf_append_char(rule, ' ');
    fm_text_literal(notation->quote, notation->quote_len, rule);
    fm_buf_append_char(rule, ' ');
}

/* The text between two members or elements. */
static const char *separator(const struct fm_notation *notation) {
    return notation->quote_len > 0 ? "\",\" " : "COMMA ";
}

/* ---- strings and choices ---- */

static const char quotes[] = "\"'";

/*
 * Writes a terminal: text between quotes, except quotes that are control tokens. The text follows `limits`, if there
 * are any; otherwise `count` ("*", "{1,5}") is the number of characters, and characters may be escaped.
 */
static void write_text_terminal(const struct fm_notation *notation, const char *limits, const char *count,
                                struct fm_buf *lark) {
    char text[128];
    if (notation->quote_len > 0) {
        if (!is_control(notation)) {
            write_mark(notation, lark);
        }
        fm_buf_append_char(lark, '(');
        fm_text_without(notation->quote, notation->quote_len, lark);
        fm_buf_append_str(lark, limits);
        fm_buf_append_char(lark, ')');
        if (!is_control(notation)) {
            write_mark(notation, lark);
        }
    }
    for (size_t i = 0; notation->quote_len == 0 && quotes[i]; i++) {
        fm_buf_append_str(lark, i == 0 ? "" : " | ");
        snprintf(text, sizeof text, limits[0] ? "(/%c/ (/[^\\\\%c]*/" : "/%c([^\\\\%c]|\\\\[\"'\\\\\\/bfnrt])", quotes[i],
                 quotes[i]);
        fm_buf_append_str(lark, text);
        fm_buf_append_str(lark, limits[0] ? limits : count);
        snprintf(text, sizeof text, limits[0] ? ") /%c/)" : "%c/", quotes[i]);
        fm_buf_append_str(lark, text);
    }
}

/* The number of characters: "{1,5}"; "": the schema limits the text in other ways too. */
static void write_count(const struct fm_value_schema *schema, char *count, size_t size) {
    const size_t least = fm_value_schema_count(schema, "minLength", 0);
    const size_t most = fm_value_schema_count(schema, "maxLength", FM_VALUE_LENGTH_MAX + 1);
    bool more = json_object_object_get_ex(schema->schema, "format", NULL) ||
                json_object_object_get_ex(schema->schema, "pattern", NULL);
    snprintf(count, size, most <= FM_VALUE_LENGTH_MAX ? "{%zu,%zu}" : "{%zu,}", least, most);
    if (more) {
        count[0] = '\0';
    }
}

static void write_string(struct writing *writing, const struct fm_value_schema *schema, size_t number,
                         struct fm_buf *rule) {
    const struct fm_notation *notation = writing->notation;
    const bool limited = fm_value_schema_limits_text(schema);
    char count[64];
    struct fm_buf limits;
    struct fm_buf text;
    fm_buf_init(&limits, RULE_MAX);
    fm_buf_init(&text, RULE_MAX);
    write_control(notation, rule);
    if (limited) {
        write_count(schema, count, sizeof count);
        if (notation->quote_len > 0 || !count[0]) {
            fm_text_grammar(schema, &limits);
        }
        fm_buf_append_char(&limits, '\0');
        write_text_terminal(notation, limits.failed ? "" : limits.data, count[0] ? count : "*", &text);
        write_known(writing, 'T', number, &text, rule);
    } else {
        fm_buf_append_str(rule, "QUOTED");
    }
    write_control(notation, rule);
    rule->failed |= limits.failed;
    fm_buf_free(&limits);
    fm_buf_free(&text);
}

/* Writes a fixed string, between marks or in each kind of quotes that the string can have. */
static void write_given_string(const struct fm_notation *notation, const char *text, size_t len, struct fm_buf *rule) {
    const size_t mark_len = is_control(notation) ? 0 : notation->quote_len;
    struct fm_buf quoted;
    fm_buf_init(&quoted, RULE_MAX);
    write_control(notation, rule);
    if (notation->quote_len > 0) {
        fm_buf_append(&quoted, notation->quote, mark_len);
        fm_buf_append(&quoted, text, len);
        fm_buf_append(&quoted, notation->quote, mark_len);
        if (quoted.len > 0) {
            fm_text_literal(quoted.data, quoted.len, rule);
        }
    } else {
        fm_text_literal(text, len, &quoted);
        fm_buf_append_char(rule, '(');
        fm_text_literal(quoted.data, quoted.len, rule);
        if (!quoted.failed && quoted.len == len + 2 && !memchr(text, '\'', len)) { /* nothing is escaped */
            quoted.data[0] = quoted.data[len + 1] = '\'';
            fm_buf_append_str(rule, " | ");
            fm_text_literal(quoted.data, quoted.len, rule);
        }
        fm_buf_append_char(rule, ')');
    }
    write_control(notation, rule);
    rule->failed |= quoted.failed;
    fm_buf_free(&quoted);
}

static void write_choice(const struct fm_notation *notation, struct json_object *choice, struct fm_buf *rule) {
    struct fm_buf text;
    if (json_object_is_type(choice, json_type_string)) {
        write_given_string(notation, json_object_get_string(choice), (size_t)json_object_get_string_len(choice), rule);
        return;
    }
    fm_buf_init(&text, RULE_MAX);
    struct fm_json_writer w = fm_json_writer_on(&text);
    fm_json_value(&w, choice);
    fm_text_literal(text.data, text.len, rule);
    if (notation->python && !choice) {
        fm_buf_append_str(rule, " | \"None\"");
    } else if (notation->python && json_object_is_type(choice, json_type_boolean)) {
        fm_buf_append_str(rule, json_object_get_boolean(choice) ? " | \"True\"" : " | \"False\"");
    }
    rule->failed |= text.failed;
    fm_buf_free(&text);
}

/* ---- numbers and literals ---- */

/* The part of `schema` about scalars, which are written as JSON. Returns a new reference; NULL: out of memory. */
static struct json_object *scalar_schema(const struct fm_value_schema *schema) {
    static const char *const limits[] = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"};
    static const struct {
        unsigned type;
        const char *name;
    } names[] = {{FM_VALUE_NUMBER, "number"},
                 {FM_VALUE_INTEGER, "integer"},
                 {FM_VALUE_BOOLEAN, "boolean"},
                 {FM_VALUE_NULL, "null"}};
    struct json_object *made = json_object_new_object();
    struct json_object *types = json_object_new_array();
    bool whole = made && types && json_object_object_add(made, "type", types) == 0;
    if (!whole) {
        json_object_put(types);
    }
    for (size_t i = 0; whole && i < sizeof names / sizeof *names; i++) {
        struct json_object *name = schema->types & names[i].type ? json_object_new_string(names[i].name) : NULL;
        if ((schema->types & names[i].type) && (!name || json_object_array_add(types, name) != 0)) {
            json_object_put(name);
            whole = false;
        }
    }
    for (size_t i = 0; whole && i < sizeof limits / sizeof *limits; i++) {
        struct json_object *limit = json_object_object_get(schema->schema, limits[i]);
        if (limit && json_object_object_add(made, limits[i], json_object_get(limit)) != 0) {
            json_object_put(limit);
            whole = false;
        }
    }
    if (!whole) {
        json_object_put(made);
        return NULL;
    }
    return made;
}

static void write_scalar(struct writing *writing, const struct fm_value_schema *schema, size_t number,
                         struct fm_buf *rule) {
    struct json_object *made = scalar_schema(schema);
    struct fm_buf text;
    fm_buf_init(&text, RULE_MAX);
    if (writing->code == FM_OK) {
        writing->code = fm_tool_grammar_schema("", made, writing->tool, &text, writing->error);
    } else {
        json_object_put(made);
    }
    if (writing->code == FM_OK && text.len > 2 && !text.failed) { /* cuts the colon in front and the line end */
        text.len--;
        memmove(text.data, text.data + 2, text.len -= 2);
        write_known(writing, 'j', number, &text, rule);
    }
    rule->failed |= text.failed;
    fm_buf_free(&text);
    if (writing->notation->python) {
        fm_buf_append_str(rule, schema->types & FM_VALUE_BOOLEAN ? " | \"True\" | \"False\"" : "");
        fm_buf_append_str(rule, schema->types & FM_VALUE_NULL ? " | \"None\"" : "");
    }
}

/* ---- arrays and objects ---- */

/* Writes a value of `schema`, or of any kind if `schema` is not an object. */
static void write_part(struct writing *writing, struct json_object *schema, struct fm_buf *rule) {
    if (json_object_is_type(schema, json_type_object)) {
        write_value(writing, schema, rule);
    } else {
        fm_buf_append_str(rule, "any");
    }
}

static void write_array(struct writing *writing, const struct fm_value_schema *schema, struct fm_buf *rule) {
    struct json_object *items = json_object_object_get(schema->schema, "items");
    const bool none = json_object_is_type(items, json_type_boolean) && !json_object_get_boolean(items);
    const size_t least = fm_value_schema_count(schema, "minItems", 0);
    const size_t most = none ? 0 : fm_value_schema_count(schema, "maxItems", FM_VALUE_ITEMS_MAX + 1);
    struct fm_buf item;
    char count[64];
    fm_buf_init(&item, RULE_MAX);
    if (most == 0) {
        fm_buf_append_str(rule, "\"[\" \"]\"");
        return;
    }
    write_part(writing, items, &item);
    fm_buf_append_str(rule, least == 0 ? "\"[\" (" : "\"[\" ");
    fm_buf_append(rule, item.data, item.len);
    if (most > 1) {
        snprintf(count, sizeof count, most <= FM_VALUE_ITEMS_MAX ? "){%zu,%zu}" : "){%zu,}",
                 least > 0 ? least - 1 : 0, most - 1);
        fm_buf_append_str(rule, " (");
        fm_buf_append_str(rule, separator(writing->notation));
        fm_buf_append(rule, item.data, item.len);
        fm_buf_append_str(rule, count);
    }
    fm_buf_append_str(rule, least == 0 ? ")? \"]\"" : " \"]\"");
    rule->failed |= item.failed;
    fm_buf_free(&item);
}

static int compare_keys(const void *a, const void *b) {
    const struct member *one = a;
    const struct member *other = b;
    int order = strcasecmp(one->key, other->key);
    return order ? order : strcmp(one->key, other->key);
}

/* `"color:" n0_1` */
static void write_member(struct writing *writing, const struct member *member, bool outermost, struct fm_buf *rule) {
    const struct fm_notation *notation = writing->notation;
    struct fm_buf key;
    fm_buf_init(&key, RULE_MAX);
    if (notation->quote_len > 0 || outermost) {
        fm_buf_append_str(&key, member->key);
        fm_buf_append_char(&key, outermost ? notation->assign : ':');
        fm_text_literal(key.data, key.len, rule);
    } else {
        write_given_string(notation, member->key, strlen(member->key), rule);
        fm_buf_append_str(rule, " COLON");
    }
    fm_buf_append_char(rule, ' ');
    write_part(writing, member->schema, rule);
    rule->failed |= key.failed;
    fm_buf_free(&key);
}

/* Writes `rule` as the rule `letter` for the member `number` of the object `object`, and empties it. */
static void write_member_rule(struct writing *writing, char letter, size_t object, size_t number, struct fm_buf *rule) {
    char end[32];
    write_name(writing, letter, object, writing->lark);
    snprintf(end, sizeof end, "_%zu: ", number);
    fm_buf_append_str(writing->lark, end);
    fm_buf_append(writing->lark, rule->data, rule->len);
    fm_buf_append_char(writing->lark, '\n');
    writing->lark->failed |= rule->failed;
    fm_buf_reset(rule);
}

/* Appends the name of a member's rule, such as `p0_0_1`, with a space before it. */
static void name_member(const struct writing *writing, char letter, size_t object, size_t number, struct fm_buf *rule) {
    char end[32];
    snprintf(end, sizeof end, "_%zu", number);
    fm_buf_append_char(rule, ' ');
    write_name(writing, letter, object, rule);
    fm_buf_append_str(rule, end);
}

static void write_members(struct writing *writing, const struct member *members, size_t count, size_t object,
                          bool outermost) {
    struct fm_buf rule;
    struct fm_buf member;
    struct fm_buf name; /* the name of its rule */
    fm_buf_init(&rule, RULE_MAX);
    fm_buf_init(&member, RULE_MAX);
    fm_buf_init(&name, RULE_MAX);
    for (size_t i = 0; i < count; i++) {
        const bool last = i + 1 == count;
        fm_buf_reset(&member);
        fm_buf_reset(&name);
        write_member(writing, &members[i], outermost, &member);
        write_known(writing, 'p', writing->count++, &member, &name);
        writing->lark->failed |= name.failed;
        fm_buf_append(&rule, name.data, name.len);
        if (!last) {
            name_member(writing, 'r', object, i + 1, &rule);
        }
        if (!members[i].required && !last) {
            fm_buf_append_str(&rule, " |");
            name_member(writing, 'f', object, i + 1, &rule);
        }
        write_member_rule(writing, 'f', object, i, &rule);
        if (i == 0) {
            continue;
        }
        fm_buf_append_str(&rule, members[i].required ? "" : "(");
        fm_buf_append_str(&rule, separator(writing->notation));
        fm_buf_append(&rule, name.data, name.len);
        fm_buf_append_str(&rule, members[i].required ? "" : ")?");
        if (!last) {
            name_member(writing, 'r', object, i + 1, &rule);
        }
        write_member_rule(writing, 'r', object, i, &rule);
    }
    fm_buf_free(&rule);
    fm_buf_free(&member);
    fm_buf_free(&name);
}

/* Writes keys that no schema names, each with a value of `schema`. */
static void write_map(struct writing *writing, struct json_object *schema, bool outermost, struct fm_buf *rule) {
    const struct fm_notation *notation = writing->notation;
    struct fm_buf member;
    fm_buf_init(&member, RULE_MAX);
    if (notation->quote_len > 0 || outermost) {
        fm_buf_append_str(&member, "KEY ");
        write_char(outermost ? notation->assign : ':', &member);
        fm_buf_append_char(&member, ' ');
    } else {
        fm_buf_append_str(&member, "QUOTED COLON ");
    }
    write_part(writing, schema, &member);
    fm_buf_append_str(rule, " (");
    fm_buf_append(rule, member.data, member.len);
    fm_buf_append_str(rule, " (");
    fm_buf_append_str(rule, separator(notation));
    fm_buf_append(rule, member.data, member.len);
    fm_buf_append_str(rule, ")*)? ");
    rule->failed |= member.failed;
    fm_buf_free(&member);
}

static void write_object(struct writing *writing, struct json_object *schema, size_t object, bool outermost,
                         struct fm_buf *rule) {
    struct json_object *properties = json_object_object_get(schema, "properties");
    struct json_object *more = json_object_object_get(schema, "additionalProperties");
    const size_t count = properties ? (size_t)json_object_object_length(properties) : 0;
    struct member *members = count > 0 ? calloc(count, sizeof *members) : NULL;
    const bool none = json_object_is_type(more, json_type_boolean) && !json_object_get_boolean(more);
    write_char(outermost ? writing->notation->open : '{', rule);
    fm_buf_append_char(rule, ' ');
    if (members) {
        struct json_object_iter at;
        struct member *next = members;
        bool any_required = false;
        json_object_object_foreachC(properties, at) {
            *next = (struct member){at.key, at.val, fm_value_is_required(schema, at.key)};
            any_required = any_required || next->required;
            next++;
        }
        if (writing->notation->sorted) {
            qsort(members, count, sizeof *members, compare_keys);
        }
        write_members(writing, members, count, object, outermost);
        name_member(writing, 'f', object, 0, rule);
        fm_buf_append_str(rule, any_required ? " " : "? ");
    } else if (!properties && !none) {
        write_map(writing, more, outermost, rule);
    }
    rule->failed |= count > 0 && !members;
    free(members);
    write_char(outermost ? fm_notation_close(writing->notation) : '}', rule);
}

/* ---- all ---- */

/* Writes the alternatives for the types of `schema`, with ` | ` between them. */
static void write_types(struct writing *writing, const struct fm_value_schema *schema, size_t number,
                        struct fm_buf *rule) {
    static const unsigned kinds[] = {FM_VALUE_STRING, FM_VALUE_SCALARS, FM_VALUE_ARRAY, FM_VALUE_OBJECT};
    const char *before = "";
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (!(schema->types & kinds[i])) {
            continue;
        }
        fm_buf_append_str(rule, before);
        before = " | ";
        if (kinds[i] == FM_VALUE_STRING) {
            write_string(writing, schema, number, rule);
        } else if (kinds[i] == FM_VALUE_SCALARS) {
            write_scalar(writing, schema, number, rule);
        } else if (kinds[i] == FM_VALUE_ARRAY) {
            write_array(writing, schema, rule);
        } else {
            write_object(writing, schema->schema, number, false, rule);
        }
    }
}

/* Writes a value, and the rules that it needs. */
static void write_value(struct writing *writing, struct json_object *schema, struct fm_buf *to) {
    const size_t number = writing->count++;
    struct fm_value_schema read;
    struct fm_buf rule;
    fm_buf_init(&rule, RULE_MAX);
    bool fits = fm_value_schema_read(writing->tool->parameters, schema, &read);
    for (size_t i = 0; fits && read.any_of && i < json_object_array_length(read.any_of); i++) {
        fm_buf_append_str(&rule, i ? " | " : "");
        write_part(writing, json_object_array_get_idx(read.any_of, i), &rule);
    }
    for (size_t i = 0; fits && i < read.choice_count; i++) {
        fm_buf_append_str(&rule, i ? " | " : "");
        write_choice(writing->notation, fm_value_schema_choice(&read, i), &rule);
    }
    if (fits && !read.any_of && read.choice_count == 0) {
        write_types(writing, &read, number, &rule);
    }
    if (rule.len > SHORT_MAX) {
        write_known(writing, 'n', number, &rule, to);
    } else {
        fm_buf_append_char(to, '(');
        fm_buf_append(to, rule.data, rule.len);
        fm_buf_append_char(to, ')');
    }
    to->failed |= rule.failed;
    fm_buf_free(&rule);
}

enum fm_code fm_notation_grammar(const struct fm_notation *notation, const struct fm_tool *tool, size_t index,
                                 struct json_object *known, struct fm_buf *lark, struct fm_error *error) {
    struct writing writing = {.notation = notation,
                              .tool = tool,
                              .index = index,
                              .count = 1,
                              .known = known,
                              .lark = lark,
                              .error = error};
    struct fm_value_schema read = {.schema = NULL};
    struct fm_buf rule;
    char name[48];
    fm_buf_init(&rule, RULE_MAX);
    if (tool->parameters) {
        (void)fm_value_schema_read(tool->parameters, tool->parameters, &read);
    }
    write_object(&writing, read.schema, 0, true, &rule);
    snprintf(name, sizeof name, "notation%zu: ", index);
    fm_buf_append_str(lark, name);
    fm_buf_append(lark, rule.data, rule.len);
    fm_buf_append_char(lark, '\n');
    lark->failed |= rule.failed;
    fm_buf_free(&rule);
    return writing.code;
}

void fm_notation_grammar_shared(const struct fm_notation *notation, struct fm_buf *lark) {
    fm_buf_append_str(lark, "QUOTED: ");
    write_text_terminal(notation, "", "*", lark);
    fm_buf_append_char(lark, '\n');
    fm_buf_append_str(lark, "any: ");
    write_control(notation, lark);
    fm_buf_append_str(lark, "QUOTED");
    write_control(notation, lark);
    fm_buf_append_str(lark, notation->quote_len > 0
                                ? " | \"[\" (any (\",\" any)*)? \"]\""
                                  " | \"{\" (KEY \":\" any (\",\" KEY \":\" any)*)? \"}\""
                                : " | \"[\" (any (COMMA any)*)? \"]\""
                                  " | \"{\" (QUOTED COLON any (COMMA QUOTED COLON any)*)? \"}\"");
    fm_buf_append_str(lark, notation->python ? " | \"True\" | \"False\" | \"None\"" : "");
    fm_buf_append_str(lark, " | %json {\"type\":[\"number\",\"boolean\",\"null\"]}\n"
                            "KEY: /[a-zA-Z_][a-zA-Z0-9_-]{0,63}/\n");
    fm_buf_append_str(lark, notation->quote_len > 0 ? "" : "COMMA: /, ?/\nCOLON: /: ?/\n");
}
