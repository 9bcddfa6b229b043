#include "engine/llama/gbnf_tree.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROUPS_MAX 16u /* groups within each other in a definition; llguidance 1.9 bears 29 */
#define PIECE_MAX  64u /* no piece of text that is appended at once is longer */

/* What is to be written yet: a rule's definition, or a part that was cut out of one. */
struct definition {
    uint32_t rule;
    uint32_t part; /* 0: the rule itself */
    uint32_t node;
    bool terminal;
};

struct writer {
    struct fm_gbnf *grammar;
    struct fm_buf *lark;
    struct definition *queue;
    size_t queued;
    const struct definition *current;
};

static void write_body(struct writer *out, uint32_t at, unsigned groups);

static bool is_upper(char c) {
    return c >= 'A' && c <= 'Z';
}

static bool is_lower(char c) {
    return c >= 'a' && c <= 'z';
}

/*
 * A definition's name: lower case for a rule, upper case for a terminal. A letter that was upper case has "_" before
 * it, a name that begins with no letter begins with "r_", what is a part ends with "__" and a number. "start" is
 * "start_", because Lark's first rule has that name. GBNF has no "_" in names, so no two become one.
 */
static void write_name(struct writer *out, const struct definition *definition) {
    const struct fm_gbnf_rule *rule = &out->grammar->rules[definition->rule];
    const char *name = out->grammar->text + rule->name;
    bool terminal = definition->terminal;
    if (!is_upper(name[0]) && !is_lower(name[0])) {
        fm_buf_append_str(out->lark, terminal ? "R_" : "r_");
    }
    for (uint32_t i = 0; i < rule->name_len; i++) {
        char c = name[i];
        if (is_upper(c)) {
            fm_buf_append_char(out->lark, '_');
        }
        bool swap = terminal ? is_lower(c) : is_upper(c);
        fm_buf_append_char(out->lark, swap ? (char)(c ^ 0x20) : c);
    }
    if (rule->name_len == 5 && memcmp(name, "start", 5) == 0) {
        fm_buf_append_char(out->lark, '_');
    }
    if (definition->part) {
        char number[16];
        snprintf(number, sizeof number, "__%" PRIu32, definition->part);
        fm_buf_append_str(out->lark, number);
    }
}

/* Names a definition that will be written. There is room: each node is cut out once in each form at most. */
static void write_later(struct writer *out, const struct definition *definition) {
    out->queue[out->queued++] = *definition;
    write_name(out, definition);
}

static void write_reference(struct writer *out, uint32_t rule, bool terminal) {
    struct definition definition = {.rule = rule, .node = out->grammar->rules[rule].body, .terminal = terminal};
    if (out->grammar->rules[rule].seen[terminal]) {
        write_name(out, &definition);
        return;
    }
    out->grammar->rules[rule].seen[terminal] = true;
    write_later(out, &definition);
}

/* Cuts a node out of the current definition. */
static void write_part(struct writer *out, uint32_t at, bool terminal) {
    uint32_t rule = out->current->rule;
    struct definition definition = {rule, ++out->grammar->rules[rule].parts, at, terminal};
    write_later(out, &definition);
}

/* ---- characters ---- */

/* A UTF-16 unit, as JSON's strings escape it. */
static void write_unit(struct fm_buf *lark, uint32_t unit) {
    char escape[16];
    snprintf(escape, sizeof escape, "\\u%04" PRIx32, unit);
    fm_buf_append_str(lark, escape);
}

/* A character of a string, whose escapes are JSON's (llguidance's lexer). */
static void write_string_char(struct fm_buf *lark, uint32_t code_point) {
    if (code_point == '"' || code_point == '\\') {
        fm_buf_append_char(lark, '\\');
    }
    if (code_point == '\n') {
        fm_buf_append_str(lark, "\\n");
    } else if (code_point >= 0x20 && code_point < 0x7F) {
        fm_buf_append_char(lark, (char)code_point);
    } else if (code_point < 0x10000) {
        write_unit(lark, code_point);
    } else {
        write_unit(lark, 0xD800 + ((code_point - 0x10000) >> 10));
        write_unit(lark, 0xDC00 + (code_point & 0x3FF));
    }
}

/* A character within a class of the crate regex-syntax. */
static void write_class_char(struct fm_buf *lark, uint32_t code_point) {
    if (code_point == '\n') {
        fm_buf_append_str(lark, "\\n");
    } else if (code_point < 0x20 || code_point >= 0x7F) {
        char escape[16];
        snprintf(escape, sizeof escape, "\\u{%" PRIx32 "}", code_point);
        fm_buf_append_str(lark, escape);
    } else {
        if (strchr("\\]^-[&~/", (int)code_point)) {
            fm_buf_append_char(lark, '\\');
        }
        fm_buf_append_char(lark, (char)code_point);
    }
}

static void write_string(struct writer *out, const struct fm_code_range *chars, uint32_t count) {
    fm_buf_append_char(out->lark, '"');
    for (uint32_t i = 0; i < count; i++) {
        write_string_char(out->lark, chars[i].low);
    }
    fm_buf_append_char(out->lark, '"');
}

static void write_class(struct writer *out, const struct fm_gbnf_node *node) {
    if (node->chars.count == 0) {
        fm_buf_append_str(out->lark, "/./s"); /* a line end too */
        return;
    }
    fm_buf_append_str(out->lark, node->negated ? "/[^" : "/[");
    for (uint32_t i = 0; i < node->chars.count; i++) {
        struct fm_code_range range = out->grammar->ranges[node->chars.first + i];
        write_class_char(out->lark, range.low);
        if (range.high > range.low + 1) {
            fm_buf_append_char(out->lark, '-');
        }
        if (range.high > range.low) {
            write_class_char(out->lark, range.high);
        }
    }
    fm_buf_append_str(out->lark, "]/");
}

static void write_literal(struct writer *out, const struct fm_gbnf_node *node) {
    const struct fm_code_range *chars = out->grammar->ranges + node->chars.first;
    if (out->current->terminal || fm_gbnf_is_lexeme(out->grammar, node)) {
        write_string(out, chars, node->chars.count);
        return;
    }
    fm_buf_append_char(out->lark, '(');
    for (uint32_t i = 0; i < node->chars.count; i++) {
        fm_buf_append_str(out->lark, i ? " " : "");
        write_string(out, chars + i, 1);
    }
    fm_buf_append_char(out->lark, ')');
}

/* ---- definitions ---- */

/* True for a node that becomes a terminal of its own here. */
static bool is_own_terminal(const struct writer *out, const struct fm_gbnf_node *node) {
    return !out->current->terminal && node->kind >= FM_GBNF_SEQUENCE && fm_gbnf_is_lexeme(out->grammar, node);
}

/* What an operator may stand behind. */
static void write_item(struct writer *out, uint32_t at, unsigned groups) {
    const struct fm_gbnf_node *node = &out->grammar->nodes[at];
    bool terminal = out->current->terminal;
    if (fm_gbnf_is_empty(node)) {
        fm_buf_append_str(out->lark, "\"\"");
    } else if (node->kind == FM_GBNF_LITERAL) {
        write_literal(out, node);
    } else if (node->kind == FM_GBNF_CLASS) {
        write_class(out, node);
    } else if (node->kind == FM_GBNF_RULE) {
        write_reference(out, node->rule, terminal || fm_gbnf_is_lexeme(out->grammar, node));
    } else if (is_own_terminal(out, node) || groups == GROUPS_MAX) {
        write_part(out, at, terminal || fm_gbnf_is_lexeme(out->grammar, node));
    } else {
        fm_buf_append_char(out->lark, '(');
        write_body(out, at, groups + 1);
        fm_buf_append_char(out->lark, ')');
    }
}

static void write_times(struct writer *out, uint32_t min, uint32_t max) {
    char counts[32];
    if (max == FM_GBNF_UNBOUNDED) {
        snprintf(counts, sizeof counts, "{%" PRIu32 ",}", min);
    } else if (min == max) {
        snprintf(counts, sizeof counts, "{%" PRIu32 "}", min);
    } else {
        snprintf(counts, sizeof counts, "{%" PRIu32 ",%" PRIu32 "}", min, max);
    }
    bool optional = min == 0 && max == 1;
    bool sign = optional || (max == FM_GBNF_UNBOUNDED && min < 2);
    fm_buf_append_str(out->lark, !sign ? counts : optional ? "?" : min ? "+" : "*");
}

/* Without parentheses around it. */
static void write_body(struct writer *out, uint32_t at, unsigned groups) {
    const struct fm_gbnf *grammar = out->grammar;
    const struct fm_gbnf_node *node = &grammar->nodes[at];
    if (node->kind < FM_GBNF_SEQUENCE || is_own_terminal(out, node) || fm_gbnf_is_empty(node)) {
        write_item(out, at, groups);
        return;
    }
    if (node->kind == FM_GBNF_REPEAT) {
        write_item(out, node->child, groups);
        write_times(out, node->times.min, node->times.max);
        return;
    }
    for (uint32_t i = node->child; i != FM_GBNF_NONE; i = grammar->nodes[i].next) {
        if (i != node->child) {
            fm_buf_append_str(out->lark, node->kind == FM_GBNF_SEQUENCE ? " " : " | ");
        }
        if (node->kind == FM_GBNF_SEQUENCE && grammar->nodes[i].kind == FM_GBNF_ALTERNATIVES) {
            write_item(out, i, groups);
        } else {
            write_body(out, i, groups);
        }
    }
}

static void write_definition(struct writer *out, const struct definition *definition) {
    out->current = definition;
    write_name(out, definition);
    fm_buf_append_str(out->lark, ": ");
    write_body(out, definition->node, 0);
    fm_buf_append_char(out->lark, '\n');
}

static void write_all(struct writer *out) {
    const struct fm_gbnf_node *root = &out->grammar->nodes[out->grammar->root];
    for (uint32_t i = 0; i < out->grammar->rule_count; i++) {
        memset(out->grammar->rules[i].seen, 0, sizeof out->grammar->rules[i].seen);
    }
    fm_buf_append_str(out->lark, "start: ");
    write_reference(out, root->rule, fm_gbnf_is_lexeme(out->grammar, root));
    fm_buf_append_char(out->lark, '\n');
    for (size_t i = 0; i < out->queued && !out->lark->failed; i++) {
        write_definition(out, &out->queue[i]);
    }
    fm_buf_append_char(out->lark, '\0');
}

enum fm_code fm_gbnf_write(struct fm_gbnf *grammar, struct fm_buf *lark, struct fm_error *error) {
    struct writer out = {.grammar = grammar, .lark = lark};
    out.queue = calloc(2 * ((size_t)grammar->node_count + grammar->rule_count), sizeof *out.queue);
    if (!out.queue) {
        return fm_fail_no_memory(error);
    }
    write_all(&out);
    free(out.queue);
    if (!lark->failed) {
        lark->len--;
        return FM_OK;
    }
    return lark->max - lark->len < PIECE_MAX
               ? fm_gbnf_fail(grammar, grammar->len, "expected a grammar whose Lark text is shorter", error)
               : fm_fail_no_memory(error);
}
