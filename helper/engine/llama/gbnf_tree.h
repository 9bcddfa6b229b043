/* A GBNF grammar as a tree, between the steps of fm_gbnf_to_lark. Nobody else includes this. */
#ifndef FM_ENGINE_LLAMA_GBNF_TREE_H
#define FM_ENGINE_LLAMA_GBNF_TREE_H

#include "engine/llama/gbnf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FM_GBNF_NONE      UINT32_MAX
#define FM_GBNF_UNBOUNDED UINT32_MAX
#define FM_CODE_POINT_MAX 0x10FFFFu

enum fm_gbnf_kind {
    FM_GBNF_LITERAL,      /* its code points, one range each */
    FM_GBNF_CLASS,        /* one code point in its ranges, which are sorted and apart, or out of them */
    FM_GBNF_RULE,         /* a reference */
    FM_GBNF_SEQUENCE,     /* its children one after the other; none: the empty text */
    FM_GBNF_ALTERNATIVES, /* one of its children, 2 or more */
    FM_GBNF_REPEAT,       /* its one child, `min` to `max` times */
};

struct fm_code_range { /* both inclusive */
    uint32_t low;
    uint32_t high;
};

/* A set of first bytes of characters. */
struct fm_byte_set {
    uint64_t words[4];
};

struct fm_gbnf_node {
    enum fm_gbnf_kind kind;
    uint32_t at;    /* offset in the text */
    uint32_t child; /* the first */
    uint32_t next;  /* of the same parent */
    union {
        struct {
            uint32_t first; /* in `ranges` */
            uint32_t count;
        } chars;
        uint32_t rule; /* in `rules` */
        struct {
            uint32_t min;
            uint32_t max;
        } times;
    };
    bool negated; /* a class */

    /* gbnf_lexemes.c finds these */
    bool nullable;             /* the empty text is one of its texts */
    bool productive;           /* it has a text */
    bool leading;              /* its rule may begin with it */
    bool regular;              /* no recursion below it */
    bool single;               /* each of its texts is one character */
    bool deterministic;        /* the next byte always tells how it goes on */
    bool split;                /* no lexeme, though it is regular */
    struct fm_byte_set first;  /* what its texts begin with */
    struct fm_byte_set more;   /* what a text of it can go on with to become a longer one; of a deterministic one */
    struct fm_byte_set follow; /* what may stand behind it */
};

struct fm_gbnf_rule {
    uint32_t name; /* offset in the text */
    uint32_t name_len;
    uint32_t at;          /* of the definition; FM_GBNF_NONE: there is none */
    uint32_t body;        /* node */
    uint32_t nodes_begin; /* its nodes, each behind its children, the body the last */
    uint32_t nodes_end;
    bool reached;   /* from the root */
    bool irregular; /* recursive, or uses a recursive one */
    bool split;     /* no lexeme, where it is one of its own */
    bool seen[2];   /* as a rule, as a terminal */
    uint32_t parts; /* definitions that were cut out of it */
};

struct fm_gbnf {
    const char *text;
    size_t len;
    struct fm_gbnf_node *nodes;
    uint32_t node_count;
    struct fm_code_range *ranges;
    uint32_t range_count;
    struct fm_gbnf_rule *rules;
    uint32_t rule_count;
    uint32_t root; /* a reference to the rule root, the last node */
};

/* Fills `error` with where `offset` lies and what was expected there; returns FM_INVALID_REQUEST. */
enum fm_code fm_gbnf_fail(const struct fm_gbnf *grammar, size_t offset, const char *expected, struct fm_error *error);

/* Fills the grammar, whose `text` and `len` are set and whose arrays have room for FM_GBNF_*_MAX. */
FM_MUST_USE enum fm_code fm_gbnf_parse(struct fm_gbnf *grammar, struct fm_error *error);

/* Refuses what has no meaning, and decides which nodes become lexemes. */
FM_MUST_USE enum fm_code fm_gbnf_choose_lexemes(struct fm_gbnf *grammar, struct fm_error *error);

/* True when the node is one lexeme where it does not stand within another. */
bool fm_gbnf_is_lexeme(const struct fm_gbnf *grammar, const struct fm_gbnf_node *node);

/* True when the empty text is the node's only one; of a rule that is reached. */
bool fm_gbnf_is_empty(const struct fm_gbnf_node *node);

/* Appends the Lark text. A failure is the buffer's. */
FM_MUST_USE enum fm_code fm_gbnf_write(struct fm_gbnf *grammar, struct fm_buf *lark, struct fm_error *error);

#endif
