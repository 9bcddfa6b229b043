/*
 * Drafts by lookup: an answer often repeats parts of its prompt, or of itself. The last tokens are searched in the text
 * before them; where they are found, the tokens that followed there are the draft. For each number of agreeing tokens,
 * this code counts how often drafts were right, even if they were not used: counting costs almost nothing. Nothing here
 * needs llama.cpp, or blocks. Owned by one thread at a time.
 */
#ifndef FM_ENGINE_LLAMA_LOOKUP_H
#define FM_ENGINE_LLAMA_LOOKUP_H

#include "base/compiler.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FM_DRAFTS_MAX 31 /* tokens of one draft */

#define FM_LOOKUP_CLASSES 9 /* classes, by how many tokens agree */

/* A text that replaces another one, such as a new name. */
#define FM_LOOKUP_CHANGE_MAX 8
struct fm_lookup_change {
    int32_t from[FM_LOOKUP_CHANGE_MAX];
    int32_t to[FM_LOOKUP_CHANGE_MAX];
    size_t from_count; /* 0: no text was replaced */
    size_t to_count;
};

/* A place where a text is repeated, and what comes next there. */
struct fm_lookup_place {
    size_t at;      /* index of the token */
    size_t changed; /* tokens of change->to that were used before `at` */
};

struct fm_lookup {
    uint32_t *heads; /* by a hash of three tokens: the last place after three tokens with that hash, plus 1; 0: none */
    uint32_t *links; /* by place, modulo `room`: the place before with the same hash */
    size_t room;     /* a power of two; older places are forgotten */
    size_t count;    /* tokens read */
    bool found;      /* `place` says what follows */
    bool resumed;    /* found after a difference, not by a search */
    size_t agree;    /* how many tokens before agree */
    struct fm_lookup_place place;
    bool lost;         /* a token differed; the text may continue after it */
    size_t lost_at;    /* the index of the repeated token that was expected */
    size_t lost_since; /* the index of the token that differed */
    struct fm_lookup_change change;
    struct {
        float tried;
        float right;
    } counts[2][FM_LOOKUP_CLASSES]; /* searched for, and resumed */
};

/*
 * Makes a lookup of at most `most` tokens; if there are more, the oldest are forgotten. FM_INTERNAL: out of memory;
 * nothing is left to free.
 */
FM_MUST_USE enum fm_code fm_lookup_init(struct fm_lookup *lookup, size_t most, struct fm_error *error);
void fm_lookup_free(struct fm_lookup *lookup);

/*
 * Reads the new tokens of `tokens`, which begin as at the last call. Tokens from `answer` on show whether drafts would
 * have been right.
 */
void fm_lookup_read(struct fm_lookup *lookup, const int32_t *tokens, size_t count, size_t answer);

/* How likely the next token of a draft is right if `ahead` tokens before it were right; 0: there is no draft. */
double fm_lookup_chance(const struct fm_lookup *lookup, size_t ahead);

/* Writes at most `most` tokens (and at most FM_DRAFTS_MAX) that may follow the last of `tokens`. Returns how many. */
size_t fm_lookup_draft(const struct fm_lookup *lookup, const int32_t *tokens, int32_t *drafts, size_t most);

#endif
