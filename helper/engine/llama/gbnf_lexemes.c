#include "engine/llama/gbnf_tree.h"

#include <stdlib.h>
#include <string.h>

#define ROUNDS_MAX 32u /* of splitting what is in conflict; then everything is split */

/* ---- sets of first bytes ---- */

static bool set_has(const struct fm_byte_set *set, unsigned byte) {
    return set->words[byte / 64] >> byte % 64 & 1;
}

static bool set_is_empty(const struct fm_byte_set *set) {
    return (set->words[0] | set->words[1] | set->words[2] | set->words[3]) == 0;
}

/* Adds `low` to `high`. */
static void set_add(struct fm_byte_set *set, unsigned low, unsigned high) {
    for (unsigned byte = low; byte <= high; byte++) {
        set->words[byte / 64] |= UINT64_C(1) << byte % 64;
    }
}

/* True when `set` grew. */
static bool set_join(struct fm_byte_set *set, const struct fm_byte_set *other) {
    bool grew = false;
    for (size_t i = 0; i < 4; i++) {
        grew |= (other->words[i] & ~set->words[i]) != 0;
        set->words[i] |= other->words[i];
    }
    return grew;
}

static bool set_meets(const struct fm_byte_set *set, const struct fm_byte_set *other) {
    uint64_t both = 0;
    for (size_t i = 0; i < 4; i++) {
        both |= set->words[i] & other->words[i];
    }
    return both != 0;
}

static unsigned first_byte(uint32_t code_point) {
    return code_point < 0x80      ? code_point
           : code_point < 0x800   ? 0xC0 | code_point >> 6
           : code_point < 0x10000 ? 0xE0 | code_point >> 12
                                  : 0xF0 | code_point >> 18;
}

static void set_add_range(struct fm_byte_set *set, uint32_t low, uint32_t high) {
    set_add(set, first_byte(low), first_byte(high));
}

static struct fm_byte_set class_first(const struct fm_gbnf *grammar, const struct fm_gbnf_node *node) {
    struct fm_byte_set set = {{0}};
    const struct fm_code_range *ranges = grammar->ranges + node->chars.first;
    uint32_t outside = 0; /* the first code point behind the ranges so far */
    for (uint32_t i = 0; i < node->chars.count; i++) {
        if (!node->negated) {
            set_add_range(&set, ranges[i].low, ranges[i].high);
        } else if (ranges[i].low > outside) {
            set_add_range(&set, outside, ranges[i].low - 1);
        }
        outside = ranges[i].high + 1;
    }
    if (node->negated && outside <= FM_CODE_POINT_MAX) {
        set_add_range(&set, outside, FM_CODE_POINT_MAX);
    }
    return set;
}

/* ---- relations between rules ---- */

/* A square of bits: which rule leads to which. */
struct relation {
    uint64_t *bits;
    size_t words; /* of a row */
    uint32_t count;
};

static bool relation_init(struct relation *relation, uint32_t count) {
    relation->count = count;
    relation->words = (count + 63) / 64;
    relation->bits = calloc((size_t)count * relation->words, sizeof *relation->bits);
    return relation->bits != NULL;
}

static bool related(const struct relation *relation, uint32_t from, uint32_t to) {
    return relation->bits[from * relation->words + to / 64] >> to % 64 & 1;
}

static void relate(struct relation *relation, uint32_t from, uint32_t to) {
    relation->bits[from * relation->words + to / 64] |= UINT64_C(1) << to % 64;
}

/* From one step to any number of them (Warshall). */
static void relation_close(struct relation *relation) {
    for (uint32_t middle = 0; middle < relation->count; middle++) {
        for (uint32_t from = 0; from < relation->count; from++) {
            if (related(relation, from, middle)) {
                for (size_t i = 0; i < relation->words; i++) {
                    relation->bits[from * relation->words + i] |= relation->bits[middle * relation->words + i];
                }
            }
        }
    }
}

/* How many rules `from` leads to. */
static uint32_t related_count(const struct relation *relation, uint32_t from) {
    uint32_t count = 0;
    for (uint32_t to = 0; to < relation->count; to++) {
        count += related(relation, from, to);
    }
    return count;
}

/* Which rules use which, through others too; or only those that a rule may begin with. */
static bool find_uses(const struct fm_gbnf *grammar, bool leading_only, struct relation *uses) {
    if (!relation_init(uses, grammar->rule_count)) {
        return false;
    }
    for (uint32_t rule = 0; rule < grammar->rule_count; rule++) {
        for (uint32_t i = grammar->rules[rule].nodes_begin; i < grammar->rules[rule].nodes_end; i++) {
            const struct fm_gbnf_node *node = &grammar->nodes[i];
            if (node->kind == FM_GBNF_RULE && (node->leading || !leading_only)) {
                relate(uses, rule, node->rule);
            }
        }
    }
    relation_close(uses);
    return true;
}

static void find_irregular(struct fm_gbnf *grammar, const struct relation *uses) {
    uint32_t root = grammar->nodes[grammar->root].rule;
    for (uint32_t rule = 0; rule < grammar->rule_count; rule++) {
        grammar->rules[rule].reached = rule == root || related(uses, root, rule);
        for (uint32_t other = 0; other < grammar->rule_count; other++) {
            bool used = other == rule || related(uses, rule, other);
            grammar->rules[rule].irregular |= used && related(uses, other, other);
        }
    }
}

/* The rules in an order that has a rule behind those that it uses, but for recursion. */
static void order_rules(const struct fm_gbnf *grammar, const struct relation *uses, uint32_t *order) {
    uint32_t starts[FM_GBNF_RULES_MAX + 2] = {0};
    for (uint32_t rule = 0; rule < grammar->rule_count; rule++) {
        starts[related_count(uses, rule) + 1]++;
    }
    for (uint32_t i = 1; i <= grammar->rule_count; i++) {
        starts[i] += starts[i - 1];
    }
    for (uint32_t rule = 0; rule < grammar->rule_count; rule++) {
        order[starts[related_count(uses, rule)]++] = rule;
    }
}

/* ---- what a node's texts are like ---- */

static struct fm_gbnf_node *body_of(const struct fm_gbnf *grammar, const struct fm_gbnf_node *reference) {
    return &grammar->nodes[grammar->rules[reference->rule].body];
}

static struct fm_gbnf_node *child_of(const struct fm_gbnf *grammar, const struct fm_gbnf_node *node) {
    return &grammar->nodes[node->child];
}

/* Whether a repetition's child may stand behind itself. */
static bool repeats(const struct fm_gbnf_node *repeat) {
    return repeat->times.max > 1;
}

static void begin_sequence(const struct fm_gbnf *grammar, struct fm_gbnf_node *node) {
    node->nullable = true;
    node->productive = true;
    for (uint32_t i = node->child; i != FM_GBNF_NONE; i = grammar->nodes[i].next) {
        const struct fm_gbnf_node *child = &grammar->nodes[i];
        if (node->nullable) {
            set_join(&node->first, &child->first);
        }
        node->nullable &= child->nullable;
        node->productive &= child->productive;
    }
}

static void begin_alternatives(const struct fm_gbnf *grammar, struct fm_gbnf_node *node) {
    for (uint32_t i = node->child; i != FM_GBNF_NONE; i = grammar->nodes[i].next) {
        const struct fm_gbnf_node *child = &grammar->nodes[i];
        set_join(&node->first, &child->first);
        node->nullable |= child->nullable;
        node->productive |= child->productive;
    }
}

static void begin_repeat(const struct fm_gbnf *grammar, struct fm_gbnf_node *node) {
    const struct fm_gbnf_node *child = child_of(grammar, node);
    node->nullable = node->times.min == 0 || child->nullable;
    node->productive = node->times.min == 0 || child->productive;
    if (node->times.max > 0) {
        set_join(&node->first, &child->first);
    }
}

/* `first`, `nullable` and `productive` from those of the children. True when there is more in them. */
static bool find_beginning(const struct fm_gbnf *grammar, struct fm_gbnf_node *node) {
    struct fm_gbnf_node before = *node;
    switch (node->kind) {
    case FM_GBNF_LITERAL:
        node->nullable = node->chars.count == 0;
        node->productive = true;
        if (node->chars.count) {
            uint32_t code_point = grammar->ranges[node->chars.first].low;
            set_add_range(&node->first, code_point, code_point);
        }
        break;
    case FM_GBNF_CLASS:
        node->first = class_first(grammar, node);
        node->productive = true;
        break;
    case FM_GBNF_RULE:
        node->first = body_of(grammar, node)->first;
        node->nullable = body_of(grammar, node)->nullable;
        node->productive = body_of(grammar, node)->productive;
        break;
    case FM_GBNF_SEQUENCE: begin_sequence(grammar, node); break;
    case FM_GBNF_ALTERNATIVES: begin_alternatives(grammar, node); break;
    case FM_GBNF_REPEAT: begin_repeat(grammar, node); break;
    }
    return node->nullable != before.nullable || node->productive != before.productive ||
           set_join(&before.first, &node->first);
}

/* `leading` of the children. */
static void find_leading(const struct fm_gbnf *grammar, const struct fm_gbnf_node *node) {
    bool leading = node->leading;
    for (uint32_t i = node->child; i != FM_GBNF_NONE; i = grammar->nodes[i].next) {
        grammar->nodes[i].leading = leading;
        leading &= node->kind == FM_GBNF_ALTERNATIVES || grammar->nodes[i].nullable;
    }
}

/* ---- how a regular node's texts go on ---- */

/* The next byte tells of each child whether it goes on, ends or is left out. */
static void go_on_sequence(const struct fm_gbnf *grammar, struct fm_gbnf_node *node) {
    node->deterministic = true;
    for (uint32_t i = node->child; i != FM_GBNF_NONE; i = grammar->nodes[i].next) {
        const struct fm_gbnf_node *child = &grammar->nodes[i];
        node->deterministic &= child->deterministic && !set_meets(&node->more, &child->first);
        if (child->nullable) { /* what stands before it may end the sequence, or go on itself */
            set_join(&node->more, &child->more);
            set_join(&node->more, &child->first);
        } else {
            node->more = child->more;
        }
    }
}

static void go_on_alternatives(const struct fm_gbnf *grammar, struct fm_gbnf_node *node) {
    struct fm_byte_set first = {{0}};
    node->deterministic = true;
    node->single = true;
    for (uint32_t i = node->child; i != FM_GBNF_NONE; i = grammar->nodes[i].next) {
        const struct fm_gbnf_node *child = &grammar->nodes[i];
        node->deterministic &= child->deterministic && !set_meets(&first, &child->first);
        node->single &= child->single;
        set_join(&first, &child->first);
        set_join(&node->more, &child->more);
    }
    node->deterministic |= node->single;
}

static void go_on_repeat(const struct fm_gbnf *grammar, struct fm_gbnf_node *node) {
    const struct fm_gbnf_node *child = child_of(grammar, node);
    node->deterministic = child->deterministic;
    node->single = child->single && node->times.min == 1 && node->times.max == 1;
    node->more = child->more;
    if (repeats(node)) {
        node->deterministic &= !set_meets(&child->more, &child->first);
        if (node->times.max != node->times.min || child->nullable) { /* what is complete may be repeated still */
            set_join(&node->more, &child->first);
        }
    }
}

/* `regular`, `single`, `deterministic` and `more` from those of the children. */
static void find_going_on(const struct fm_gbnf *grammar, struct fm_gbnf_node *node) {
    node->regular = true;
    for (uint32_t i = node->child; i != FM_GBNF_NONE; i = grammar->nodes[i].next) {
        node->regular &= grammar->nodes[i].regular;
    }
    switch (node->kind) {
    case FM_GBNF_LITERAL:
        node->deterministic = true;
        node->single = node->chars.count == 1;
        break;
    case FM_GBNF_CLASS:
        node->deterministic = true;
        node->single = true;
        break;
    case FM_GBNF_RULE:
        node->regular = !grammar->rules[node->rule].irregular;
        node->single = body_of(grammar, node)->single;
        node->deterministic = body_of(grammar, node)->deterministic;
        node->more = body_of(grammar, node)->more;
        break;
    case FM_GBNF_SEQUENCE: go_on_sequence(grammar, node); break;
    case FM_GBNF_ALTERNATIVES: go_on_alternatives(grammar, node); break;
    case FM_GBNF_REPEAT: go_on_repeat(grammar, node); break;
    }
}

/* ---- what stands behind a node ---- */

static void follow_in_sequence(const struct fm_gbnf *grammar, const struct fm_gbnf_node *node, uint32_t at) {
    struct fm_gbnf_node *child = &grammar->nodes[at];
    uint32_t next = child->next;
    while (next != FM_GBNF_NONE) {
        set_join(&child->follow, &grammar->nodes[next].first);
        if (!grammar->nodes[next].nullable) {
            return;
        }
        next = grammar->nodes[next].next;
    }
    set_join(&child->follow, &node->follow);
}

/* `follow` of the children, or of the rule that is named. True when a rule's grew. */
static bool find_follow(const struct fm_gbnf *grammar, const struct fm_gbnf_node *node) {
    if (node->kind == FM_GBNF_RULE) {
        return set_join(&body_of(grammar, node)->follow, &node->follow);
    }
    for (uint32_t i = node->child; i != FM_GBNF_NONE; i = grammar->nodes[i].next) {
        struct fm_gbnf_node *child = &grammar->nodes[i];
        if (node->kind == FM_GBNF_SEQUENCE) {
            follow_in_sequence(grammar, node, i);
            continue;
        }
        set_join(&child->follow, &node->follow);
        if (node->kind == FM_GBNF_REPEAT && repeats(node)) {
            set_join(&child->follow, &child->first);
        }
    }
    return false;
}

/* ---- the whole grammar ---- */

static void find_attributes(struct fm_gbnf *grammar, const uint32_t *order) {
    bool changed = true;
    while (changed) {
        changed = false;
        for (uint32_t i = 0; i < grammar->rule_count; i++) {
            const struct fm_gbnf_rule *rule = &grammar->rules[order[i]];
            for (uint32_t at = rule->nodes_begin; at < rule->nodes_end; at++) {
                changed |= find_beginning(grammar, &grammar->nodes[at]);
            }
        }
    }
    for (uint32_t i = 0; i < grammar->rule_count; i++) {
        const struct fm_gbnf_rule *rule = &grammar->rules[order[i]];
        for (uint32_t at = rule->nodes_begin; at < rule->nodes_end; at++) {
            find_going_on(grammar, &grammar->nodes[at]);
        }
        grammar->nodes[rule->body].leading = true;
        for (uint32_t at = rule->nodes_end; at > rule->nodes_begin; at--) {
            find_leading(grammar, &grammar->nodes[at - 1]);
        }
    }
    struct fm_gbnf_node *root = &grammar->nodes[grammar->root];
    (void)find_beginning(grammar, root);
    find_going_on(grammar, root);
}

static void find_follows(struct fm_gbnf *grammar, const uint32_t *order) {
    bool changed = true;
    while (changed) {
        changed = false;
        for (uint32_t i = grammar->rule_count; i > 0; i--) {
            const struct fm_gbnf_rule *rule = &grammar->rules[order[i - 1]];
            for (uint32_t at = rule->nodes_end; rule->reached && at > rule->nodes_begin; at--) {
                changed |= find_follow(grammar, &grammar->nodes[at - 1]);
            }
        }
    }
}

/* No rule begins with itself, and each that is used has an end. */
static enum fm_code check_rules(const struct fm_gbnf *grammar, struct fm_error *error) {
    struct relation begins;
    enum fm_code code = FM_OK;
    if (!find_uses(grammar, true, &begins)) {
        return fm_fail_no_memory(error);
    }
    for (uint32_t i = 0; i < grammar->rule_count && code == FM_OK; i++) {
        const struct fm_gbnf_rule *rule = &grammar->rules[i];
        if (related(&begins, i, i)) {
            code = fm_gbnf_fail(grammar, rule->at, "expected a rule that does not begin with itself", error);
        } else if (rule->reached && !grammar->nodes[rule->body].productive) {
            code = fm_gbnf_fail(grammar, rule->at, "expected a rule that can end without itself", error);
        }
    }
    free(begins.bits);
    return code;
}

static enum fm_code analyze(struct fm_gbnf *grammar, struct fm_error *error) {
    uint32_t order[FM_GBNF_RULES_MAX];
    struct relation uses;
    if (!find_uses(grammar, false, &uses)) {
        return fm_fail_no_memory(error);
    }
    find_irregular(grammar, &uses);
    order_rules(grammar, &uses, order);
    free(uses.bits);
    find_attributes(grammar, order);
    find_follows(grammar, order);
    return check_rules(grammar, error);
}

/* ---- which nodes are lexemes ---- */

struct lexemes {
    struct fm_gbnf *grammar;
    uint32_t *nodes;
    size_t count;
    struct fm_error *error;
};

bool fm_gbnf_is_lexeme(const struct fm_gbnf *grammar, const struct fm_gbnf_node *node) {
    return node->regular && !node->split && !(node->kind == FM_GBNF_RULE && grammar->rules[node->rule].split);
}

bool fm_gbnf_is_empty(const struct fm_gbnf_node *node) {
    return set_is_empty(&node->first);
}

/*
 * Goes through the grammar as llguidance does, which recurses into each definition where it is named first, and
 * collects the lexemes. `terminal`: within a lexeme.
 */
static enum fm_code collect(struct lexemes *lexemes, uint32_t at, bool terminal, unsigned depth) {
    struct fm_gbnf *grammar = lexemes->grammar;
    const struct fm_gbnf_node *node = &grammar->nodes[at];
    if (depth > FM_GBNF_NESTING_MAX) {
        return fm_gbnf_fail(grammar, node->at, "expected rules, groups and repetitions that nest no more than 512 deep",
                            lexemes->error);
    }
    if (!terminal && fm_gbnf_is_lexeme(grammar, node)) {
        if (!fm_gbnf_is_empty(node)) {
            lexemes->nodes[lexemes->count++] = at;
        }
        terminal = true;
    } else if (!terminal && node->kind == FM_GBNF_LITERAL) {
        lexemes->nodes[lexemes->count++] = at;
    }
    if (node->kind == FM_GBNF_RULE) {
        struct fm_gbnf_rule *rule = &grammar->rules[node->rule];
        if (rule->seen[terminal]) {
            return FM_OK;
        }
        rule->seen[terminal] = true;
        return collect(lexemes, rule->body, terminal, depth + 1);
    }
    enum fm_code code = FM_OK;
    for (uint32_t i = node->child; i != FM_GBNF_NONE; i = grammar->nodes[i].next) {
        code = code ? code : collect(lexemes, i, terminal, depth + 1);
    }
    return code;
}

/* The bytes that a lexeme begins with; of a literal that is split, each of its characters is one. */
static struct fm_byte_set lexeme_first(const struct fm_gbnf *grammar, const struct fm_gbnf_node *node) {
    struct fm_byte_set first = node->first;
    for (uint32_t i = 0; node->split && i < node->chars.count; i++) {
        uint32_t code_point = grammar->ranges[node->chars.first + i].low;
        set_add_range(&first, code_point, code_point);
    }
    return first;
}

/* True when the two have the same texts for certain: they are written alike. */
static bool alike(const struct fm_gbnf *grammar, uint32_t left, uint32_t right) {
    const struct fm_gbnf_node *a = &grammar->nodes[left];
    const struct fm_gbnf_node *b = &grammar->nodes[right];
    if (left == right || a->kind != b->kind) {
        return left == right;
    }
    if (a->kind == FM_GBNF_RULE) {
        return a->rule == b->rule;
    }
    if (a->kind == FM_GBNF_LITERAL || a->kind == FM_GBNF_CLASS) {
        return a->negated == b->negated && a->split == b->split && a->chars.count == b->chars.count &&
               memcmp(grammar->ranges + a->chars.first, grammar->ranges + b->chars.first,
                      a->chars.count * sizeof *grammar->ranges) == 0;
    }
    if (a->kind == FM_GBNF_REPEAT && (a->times.min != b->times.min || a->times.max != b->times.max)) {
        return false;
    }
    uint32_t i = a->child;
    uint32_t j = b->child;
    while (i != FM_GBNF_NONE && j != FM_GBNF_NONE && alike(grammar, i, j)) {
        i = grammar->nodes[i].next;
        j = grammar->nodes[j].next;
    }
    return i == j; /* FM_GBNF_NONE, both */
}

/* The bytes that lexemes of more than one kind begin with. */
static struct fm_byte_set shared_bytes(const struct lexemes *lexemes) {
    const struct fm_gbnf *grammar = lexemes->grammar;
    struct fm_byte_set shared = {{0}};
    uint32_t owners[256];
    memset(owners, 0xFF, sizeof owners); /* FM_GBNF_NONE */
    for (size_t i = 0; i < lexemes->count; i++) {
        uint32_t node = lexemes->nodes[i];
        struct fm_byte_set first = lexeme_first(grammar, &grammar->nodes[node]);
        for (unsigned byte = 0; byte < 256; byte++) {
            if (!set_has(&first, byte) || set_has(&shared, byte)) {
                continue;
            }
            if (owners[byte] == FM_GBNF_NONE) {
                owners[byte] = node;
            } else if (!alike(grammar, owners[byte], node)) {
                set_add(&shared, byte, byte);
            }
        }
    }
    return shared;
}

/* Splits what does not stand by itself; all that can be split where `all`. True when there was something. */
static bool split_conflicts(const struct lexemes *lexemes, bool all) {
    struct fm_gbnf *grammar = lexemes->grammar;
    struct fm_byte_set shared = shared_bytes(lexemes);
    bool split = false;
    for (size_t i = 0; i < lexemes->count; i++) {
        struct fm_gbnf_node *node = &grammar->nodes[lexemes->nodes[i]];
        bool ends_clearly = node->deterministic ? !set_meets(&node->more, &node->follow) : set_is_empty(&node->follow);
        if (node->single || node->split || (!all && ends_clearly && !set_meets(&node->first, &shared))) {
            continue;
        }
        bool *flag = node->kind == FM_GBNF_RULE ? &grammar->rules[node->rule].split : &node->split;
        *flag = true;
        split = true;
    }
    return split;
}

enum fm_code fm_gbnf_choose_lexemes(struct fm_gbnf *grammar, struct fm_error *error) {
    enum fm_code code = analyze(grammar, error);
    if (code != FM_OK) {
        return code;
    }
    struct lexemes lexemes = {.grammar = grammar, .error = error};
    lexemes.nodes = calloc(grammar->node_count, sizeof *lexemes.nodes);
    if (!lexemes.nodes) {
        return fm_fail_no_memory(error);
    }
    unsigned round = 0;
    do {
        lexemes.count = 0;
        for (uint32_t i = 0; i < grammar->rule_count; i++) {
            memset(grammar->rules[i].seen, 0, sizeof grammar->rules[i].seen);
        }
        code = collect(&lexemes, grammar->root, false, 0);
    } while (code == FM_OK && split_conflicts(&lexemes, ++round > ROUNDS_MAX));
    free(lexemes.nodes);
    return code;
}
