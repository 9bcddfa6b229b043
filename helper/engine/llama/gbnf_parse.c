#include "base/utf8.h"
#include "engine/llama/gbnf_tree.h"

#include <stdlib.h>
#include <string.h>

struct parser {
    struct fm_gbnf *grammar;
    const char *at;
    unsigned groups; /* around `at` */
    struct fm_error *error;
};

/* The nodes of a sequence so far. */
struct items {
    uint32_t first;
    uint32_t last;
    uint32_t before_last;
};

static enum fm_code parse_alternatives(struct parser *in, uint32_t *node);

static uint32_t offset_of(const struct parser *in) {
    return (uint32_t)(in->at - in->grammar->text);
}

static enum fm_code fail(const struct parser *in, const char *expected) {
    return fm_gbnf_fail(in->grammar, offset_of(in), expected, in->error);
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_name_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '-';
}

/* Blanks and comments; line ends too where `lines`. */
static void skip_space(struct parser *in, bool lines) {
    for (;;) {
        in->at += strspn(in->at, lines ? " \t\r\n" : " \t");
        if (*in->at != '#') {
            return;
        }
        in->at += strcspn(in->at, "\r\n");
    }
}

/* Behind an item: within a group a line end is a blank. */
static void skip_after_item(struct parser *in) {
    skip_space(in, in->groups > 0);
}

/* A new node without children. There is room: each takes a byte of text at least. */
static uint32_t add_node(struct parser *in, enum fm_gbnf_kind kind, uint32_t at) {
    uint32_t index = in->grammar->node_count++;
    in->grammar->nodes[index] =
        (struct fm_gbnf_node){.kind = kind, .at = at, .child = FM_GBNF_NONE, .next = FM_GBNF_NONE};
    return index;
}

/* ---- characters ---- */

static enum fm_code parse_hex(struct parser *in, unsigned digits, uint32_t *code_point) {
    uint32_t value = 0;
    const char *end = in->at + digits;
    for (; in->at < end; in->at++) {
        char c = *in->at;
        char lower = (char)(c | 0x20);
        if (!is_digit(c) && (lower < 'a' || lower > 'f')) {
            return fail(in, "expected a hexadecimal digit");
        }
        value = value << 4 | (uint32_t)(is_digit(c) ? c - '0' : lower - 'a' + 10);
    }
    *code_point = value;
    return FM_OK;
}

/* `at` is at the backslash. */
static enum fm_code parse_escape(struct parser *in, uint32_t *code_point) {
    static const struct {
        char name;
        char stands_for;
        unsigned digits;
    } escapes[] = {
        {'n', '\n', 0}, {'t', '\t', 0}, {'r', '\r', 0}, {'\\', '\\', 0}, {'"', '"', 0}, {'[', '[', 0},
        {']', ']', 0},  {'-', '-', 0},  {'x', 0, 2},    {'u', 0, 4},     {'U', 0, 8},
    };
    for (size_t i = 0; i < sizeof escapes / sizeof escapes[0]; i++) {
        if (in->at[1] == escapes[i].name) {
            in->at += 2;
            *code_point = (uint32_t)escapes[i].stands_for;
            return escapes[i].digits ? parse_hex(in, escapes[i].digits, code_point) : FM_OK;
        }
    }
    return fail(in, "expected one of the escapes \\n \\t \\r \\\\ \\\" \\[ \\] \\- \\xHH \\uHHHH \\UHHHHHHHH");
}

/* The text is valid UTF-8. */
static uint32_t decode(struct parser *in) {
    static const unsigned char masks[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    int len = fm_utf8_sequence(in->at, 4);
    uint32_t value = (unsigned char)in->at[0] & masks[len];
    for (int i = 1; i < len; i++) {
        value = value << 6 | ((unsigned char)in->at[i] & 0x3F);
    }
    in->at += len;
    return value;
}

/* One character of a literal or a class that `closing` ends. */
static enum fm_code parse_char(struct parser *in, const char *closing, uint32_t *code_point) {
    const char *start = in->at;
    if (!*start) {
        return fail(in, closing);
    }
    enum fm_code code = FM_OK;
    if (*start == '\\') {
        code = parse_escape(in, code_point);
    } else {
        *code_point = decode(in);
    }
    if (code == FM_OK && (*code_point > FM_CODE_POINT_MAX || (*code_point >= 0xD800 && *code_point <= 0xDFFF))) {
        in->at = start;
        return fail(in, "expected a Unicode character; surrogates and numbers above 10FFFF are none");
    }
    return code;
}

static void add_range(struct parser *in, struct fm_gbnf_node *node, uint32_t low, uint32_t high) {
    in->grammar->ranges[in->grammar->range_count++] = (struct fm_code_range){low, high};
    node->chars.count++;
}

static enum fm_code parse_literal(struct parser *in, uint32_t *index) {
    *index = add_node(in, FM_GBNF_LITERAL, offset_of(in));
    struct fm_gbnf_node *node = &in->grammar->nodes[*index];
    node->chars.first = in->grammar->range_count;
    in->at++;
    while (*in->at != '"') {
        uint32_t code_point = 0;
        enum fm_code code = parse_char(in, "expected '\"' at the literal's end", &code_point);
        if (code != FM_OK) {
            return code;
        }
        add_range(in, node, code_point, code_point);
    }
    in->at++;
    return FM_OK;
}

/* A character, or a range of them. */
static enum fm_code parse_class_range(struct parser *in, struct fm_gbnf_node *node) {
    static const char closing[] = "expected ']' at the class's end";
    const char *start = in->at;
    uint32_t low = 0;
    enum fm_code code = parse_char(in, closing, &low);
    uint32_t high = low;
    if (code == FM_OK && in->at[0] == '-' && in->at[1] != ']') {
        in->at++;
        code = parse_char(in, closing, &high);
    }
    if (code != FM_OK) {
        return code;
    }
    if (high < low) {
        in->at = start;
        return fail(in, "expected a range whose end does not come before its start");
    }
    add_range(in, node, low, high);
    return FM_OK;
}

static int compare_ranges(const void *left, const void *right) {
    const struct fm_code_range *a = left;
    const struct fm_code_range *b = right;
    return (a->low > b->low) - (a->low < b->low);
}

static uint32_t next_character(uint32_t code_point) {
    return code_point == 0xD7FF ? 0xE000 : code_point + 1;
}

/* Sorts a class's ranges and joins those that touch. */
static void tidy_class(struct fm_gbnf *grammar, struct fm_gbnf_node *node) {
    struct fm_code_range *ranges = grammar->ranges + node->chars.first;
    uint32_t kept = 0;
    qsort(ranges, node->chars.count, sizeof *ranges, compare_ranges);
    for (uint32_t i = 1; i < node->chars.count; i++) {
        if (ranges[i].low > next_character(ranges[kept].high)) {
            ranges[++kept] = ranges[i];
        } else if (ranges[i].high > ranges[kept].high) {
            ranges[kept].high = ranges[i].high;
        }
    }
    node->chars.count = kept + 1;
    grammar->range_count = node->chars.first + node->chars.count;
}

static enum fm_code parse_class(struct parser *in, uint32_t *index) {
    *index = add_node(in, FM_GBNF_CLASS, offset_of(in));
    struct fm_gbnf *grammar = in->grammar;
    struct fm_gbnf_node *node = &grammar->nodes[*index];
    node->chars.first = grammar->range_count;
    in->at++;
    node->negated = *in->at == '^';
    in->at += node->negated;
    if (*in->at == ']') {
        return fail(in, "expected a character in the class; write \\] for a bracket");
    }
    while (*in->at != ']') {
        enum fm_code code = parse_class_range(in, node);
        if (code != FM_OK) {
            return code;
        }
    }
    in->at++;
    tidy_class(grammar, node);
    const struct fm_code_range *range = &grammar->ranges[node->chars.first];
    if (node->negated && range->low == 0 && range->high == FM_CODE_POINT_MAX) {
        return fm_gbnf_fail(grammar, node->at, "expected a class that leaves a character", in->error);
    }
    return FM_OK;
}

/* ---- items ---- */

static enum fm_code parse_any(struct parser *in, uint32_t *index) {
    *index = add_node(in, FM_GBNF_CLASS, offset_of(in));
    in->grammar->nodes[*index].negated = true;
    in->at++;
    return FM_OK;
}

static enum fm_code parse_group(struct parser *in, uint32_t *index) {
    if (in->groups == FM_GBNF_GROUPS_MAX) {
        return fail(in, "expected no more than 32 groups within each other");
    }
    in->at++;
    in->groups++;
    enum fm_code code = parse_alternatives(in, index);
    in->groups--;
    if (code == FM_OK && *in->at != ')') {
        code = fail(in, "expected ')' or another item of the group");
    }
    in->at += code == FM_OK;
    return code;
}

static enum fm_code refuse_token(struct parser *in, uint32_t *index) {
    (void)index;
    return fail(in, "expected text; tokens, such as <token> and !<[1000]>, are not supported");
}

/* Finds the rule of the name at `at`, or adds it; `at` is behind the name then. */
static enum fm_code parse_name(struct parser *in, uint32_t *rule) {
    struct fm_gbnf *grammar = in->grammar;
    uint32_t len = 0;
    while (is_name_char(in->at[len])) {
        len++;
    }
    if (len == 0) {
        return fail(in, "expected a rule's name, of letters, digits and '-'");
    }
    if (len > FM_GBNF_NAME_MAX) {
        return fail(in, "expected a name of no more than 128 characters");
    }
    for (*rule = 0; *rule < grammar->rule_count; ++*rule) {
        const struct fm_gbnf_rule *known = &grammar->rules[*rule];
        if (known->name_len == len && memcmp(grammar->text + known->name, in->at, len) == 0) {
            in->at += len;
            return FM_OK;
        }
    }
    if (grammar->rule_count == FM_GBNF_RULES_MAX) {
        return fail(in, "expected no more than 1,000 rules");
    }
    grammar->rules[grammar->rule_count++] =
        (struct fm_gbnf_rule){.name = offset_of(in), .name_len = len, .at = FM_GBNF_NONE};
    in->at += len;
    return FM_OK;
}

static enum fm_code parse_reference(struct parser *in, uint32_t *index) {
    uint32_t rule;
    *index = add_node(in, FM_GBNF_RULE, offset_of(in));
    enum fm_code code = parse_name(in, &rule);
    if (code == FM_OK) {
        in->grammar->nodes[*index].rule = rule;
    }
    return code;
}

/* ---- repetitions ---- */

static enum fm_code parse_count(struct parser *in, uint32_t *count) {
    const char *start = in->at;
    if (!is_digit(*start)) {
        return fail(in, "expected a number");
    }
    *count = 0;
    for (; is_digit(*in->at); in->at++) {
        *count = *count * 10 + (uint32_t)(*in->at - '0');
        if (*count > FM_GBNF_REPEAT_MAX) {
            in->at = start;
            return fail(in, "expected a count of no more than 100,000");
        }
    }
    skip_after_item(in);
    return FM_OK;
}

/* Behind "{": `m}`, `m,}` or `m,n}`. */
static enum fm_code parse_counts(struct parser *in, uint32_t *min, uint32_t *max) {
    skip_after_item(in);
    const char *start = in->at;
    enum fm_code code = parse_count(in, min);
    *max = *min;
    if (code == FM_OK && *in->at == ',') {
        *max = FM_GBNF_UNBOUNDED;
        in->at++;
        skip_after_item(in);
        code = is_digit(*in->at) ? parse_count(in, max) : FM_OK;
    }
    if (code == FM_OK && *in->at != '}') {
        code = fail(in, "expected '}' or ','");
    }
    if (code == FM_OK && *max < *min) {
        in->at = start;
        code = fail(in, "expected counts whose second is not below the first");
    }
    in->at += code == FM_OK;
    return code;
}

/* Wraps the last item. */
static enum fm_code parse_repetition(struct parser *in, struct items *items) {
    uint32_t at = offset_of(in);
    char sign = *in->at;
    uint32_t min = sign == '+';
    uint32_t max = sign == '?' ? 1 : FM_GBNF_UNBOUNDED;
    if (items->last == FM_GBNF_NONE) {
        return fail(in, "expected an item before the repetition");
    }
    in->at++;
    enum fm_code code = sign == '{' ? parse_counts(in, &min, &max) : FM_OK;
    if (code != FM_OK) {
        return code;
    }
    uint32_t index = add_node(in, FM_GBNF_REPEAT, at);
    struct fm_gbnf_node *nodes = in->grammar->nodes;
    nodes[index].child = items->last;
    nodes[index].times.min = min;
    nodes[index].times.max = max;
    if (items->before_last == FM_GBNF_NONE) {
        items->first = index;
    } else {
        nodes[items->before_last].next = index;
    }
    items->last = index;
    return FM_OK;
}

/* ---- rules ---- */

typedef enum fm_code (*item_parser)(struct parser *in, uint32_t *index);

/* What parses the item that begins with `c`; NULL: none does. */
static item_parser parser_of(char c) {
    static const struct {
        char first;
        item_parser parse;
    } parsers[] = {{'"', parse_literal}, {'[', parse_class},  {'.', parse_any},
                   {'(', parse_group},   {'<', refuse_token}, {'!', refuse_token}};
    for (size_t i = 0; i < sizeof parsers / sizeof parsers[0]; i++) {
        if (c == parsers[i].first) {
            return parsers[i].parse;
        }
    }
    return is_name_char(c) ? parse_reference : NULL;
}

static void add_item(struct fm_gbnf *grammar, struct items *items, uint32_t index) {
    if (items->last == FM_GBNF_NONE) {
        items->first = index;
    } else {
        grammar->nodes[items->last].next = index;
    }
    items->before_last = items->last;
    items->last = index;
}

/* The node of the list: its one item itself, or a new one. */
static uint32_t join(struct parser *in, const struct items *items, enum fm_gbnf_kind kind, uint32_t at) {
    if (items->first != FM_GBNF_NONE && items->first == items->last) {
        return items->first;
    }
    uint32_t index = add_node(in, kind, at);
    in->grammar->nodes[index].child = items->first;
    return index;
}

static enum fm_code parse_sequence(struct parser *in, uint32_t *node) {
    struct items items = {FM_GBNF_NONE, FM_GBNF_NONE, FM_GBNF_NONE};
    uint32_t at = offset_of(in);
    while (*in->at) {
        enum fm_code code;
        if (strchr("*+?{", *in->at)) {
            code = parse_repetition(in, &items);
        } else {
            item_parser parse = parser_of(*in->at);
            if (!parse) {
                break;
            }
            uint32_t index;
            code = parse(in, &index);
            if (code == FM_OK) {
                add_item(in->grammar, &items, index);
            }
        }
        if (code != FM_OK) {
            return code;
        }
        skip_after_item(in);
    }
    *node = join(in, &items, FM_GBNF_SEQUENCE, at);
    return FM_OK;
}

/* Behind "::=", "(": line ends are blanks there, and behind "|". */
static enum fm_code parse_alternatives(struct parser *in, uint32_t *node) {
    struct items items = {FM_GBNF_NONE, FM_GBNF_NONE, FM_GBNF_NONE};
    uint32_t at = offset_of(in);
    for (;;) {
        uint32_t index;
        skip_space(in, true);
        enum fm_code code = parse_sequence(in, &index);
        if (code != FM_OK) {
            return code;
        }
        add_item(in->grammar, &items, index);
        if (*in->at != '|') {
            break;
        }
        in->at++;
    }
    *node = join(in, &items, FM_GBNF_ALTERNATIVES, at);
    return FM_OK;
}

static enum fm_code parse_rule(struct parser *in) {
    uint32_t at = offset_of(in);
    uint32_t index;
    enum fm_code code = parse_name(in, &index);
    if (code != FM_OK) {
        return code;
    }
    struct fm_gbnf_rule *rule = &in->grammar->rules[index];
    if (rule->at != FM_GBNF_NONE) {
        return fm_gbnf_fail(in->grammar, at, "expected a new name; the rule is defined above", in->error);
    }
    rule->at = at;
    skip_space(in, false);
    if (strncmp(in->at, "::=", 3) != 0) {
        return fail(in, "expected '::='");
    }
    in->at += 3;
    rule->nodes_begin = in->grammar->node_count;
    code = parse_alternatives(in, &rule->body);
    rule->nodes_end = in->grammar->node_count;
    if (code == FM_OK && *in->at && *in->at != '\n' && *in->at != '\r') {
        code = fail(in, "expected an item, '|' or the line's end");
    }
    return code;
}

/* Every reference is to a rule that is defined. */
static enum fm_code check_references(struct parser *in) {
    const struct fm_gbnf *grammar = in->grammar;
    for (uint32_t i = 0; i < grammar->node_count; i++) {
        const struct fm_gbnf_node *node = &grammar->nodes[i];
        if (node->kind == FM_GBNF_RULE && grammar->rules[node->rule].at == FM_GBNF_NONE) {
            return fm_gbnf_fail(grammar, node->at, "expected the name of a rule", in->error);
        }
    }
    return FM_OK;
}

static enum fm_code check_text(struct parser *in) {
    if (in->grammar->len > FM_GBNF_MAX) {
        in->at += fm_utf8_whole_prefix(in->at, FM_GBNF_MAX);
        return fail(in, "expected no more than 65,536 bytes");
    }
    const char *end = in->at + in->grammar->len;
    while (in->at < end) {
        int len = fm_utf8_sequence(in->at, (size_t)(end - in->at));
        if (len <= 0) {
            return fail(in, "expected UTF-8");
        }
        in->at += len;
    }
    in->at = in->grammar->text;
    return FM_OK;
}

enum fm_code fm_gbnf_parse(struct fm_gbnf *grammar, struct fm_error *error) {
    struct parser in = {.grammar = grammar, .at = grammar->text, .error = error};
    enum fm_code code = check_text(&in);
    while (code == FM_OK) {
        skip_space(&in, true);
        if (!*in.at) {
            break;
        }
        code = parse_rule(&in);
    }
    if (code != FM_OK) {
        return code;
    }
    grammar->root = add_node(&in, FM_GBNF_RULE, (uint32_t)grammar->len);
    static const char root[] = "root";
    uint32_t rule = 0;
    while (rule < grammar->rule_count &&
           (grammar->rules[rule].name_len != sizeof root - 1 ||
            memcmp(grammar->text + grammar->rules[rule].name, root, sizeof root - 1) != 0)) {
        rule++;
    }
    if (rule == grammar->rule_count) {
        return fail(&in, "expected a rule named root");
    }
    grammar->nodes[grammar->root].rule = rule;
    return check_references(&in);
}
