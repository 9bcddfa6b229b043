/*
 * Drafts by lookup: an answer often repeats what its prompt has, or what it has itself. The last tokens are looked for
 * among those before; where they are found, what followed there is the draft. How often that was right is counted by
 * how many tokens agree, whether the drafts were used or not: a count costs nothing. Nothing here needs llama.cpp, or
 * blocks. Owned by one thread at a time.
 */
#ifndef FM_ENGINE_LLAMA_LOOKUP_H
#define FM_ENGINE_LLAMA_LOOKUP_H

#include "base/compiler.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FM_DRAFTS_MAX 31 /* tokens of one draft */

#define FM_LOOKUP_CLASSES 9 /* of how many tokens agree */

/* A text that was put in another's place: a new name. */
#define FM_LOOKUP_CHANGE_MAX 8
struct fm_lookup_change {
    int32_t from[FM_LOOKUP_CHANGE_MAX];
    int32_t to[FM_LOOKUP_CHANGE_MAX];
    size_t from_count; /* 0: there is none */
    size_t to_count;
};

/* Where a text is repeated: what comes next of it. */
struct fm_lookup_place {
    size_t at;      /* of the tokens */
    size_t changed; /* of change->to, which come before it */
};

struct fm_lookup {
    uint32_t *heads; /* by a hash of three tokens: the last place after such, plus 1; 0: none */
    uint32_t *links; /* by place, modulo `room`: the one before with the same hash */
    size_t room;     /* a power of two; older places are forgotten */
    size_t count;    /* tokens read */
    bool found;      /* what follows is at `place` */
    bool resumed;    /* after a difference, not by a search */
    size_t agree;    /* tokens before that agree */
    struct fm_lookup_place place;
    bool lost;         /* a token differed; the text may go on after it */
    size_t lost_at;    /* the repeated token that it was to be */
    size_t lost_since; /* its own place */
    struct fm_lookup_change change;
    struct {
        float tried;
        float right;
    } counts[2][FM_LOOKUP_CLASSES]; /* searched for, and resumed */
};

/* For at most `most` tokens; of more, the oldest are forgotten. FM_INTERNAL: out of memory; nothing is left to free. */
FM_MUST_USE enum fm_code fm_lookup_init(struct fm_lookup *lookup, size_t most, struct fm_error *error);
void fm_lookup_free(struct fm_lookup *lookup);

/*
 * Reads what is new of `tokens`, the same as at the last call and more after them. Those from `answer` on show whether
 * drafts would have been right.
 */
void fm_lookup_read(struct fm_lookup *lookup, const int32_t *tokens, size_t count, size_t answer);

/* How likely the next token of a draft is right, when `ahead` before it were; 0: there is no draft. */
double fm_lookup_chance(const struct fm_lookup *lookup, size_t ahead);

/* At most `most` tokens (FM_DRAFTS_MAX at most) that may follow the last of `tokens`. Returns how many. */
size_t fm_lookup_draft(const struct fm_lookup *lookup, const int32_t *tokens, int32_t *drafts, size_t most);

#endif
