/*
 * A sequence of the KV memory, and all of them: what cache.h, swap.h and checkpoints.h share. Engine thread only.
 */
#ifndef FM_ENGINE_LLAMA_CACHED_H
#define FM_ENGINE_LLAMA_CACHED_H

#include "engine/llama/model.h"

/* Of a sequence. Where there would be more, those that are closest to others go. */
#define FM_CHECKPOINTS_MAX 8

struct fm_checkpoint;

struct fm_checkpoints {
    struct fm_checkpoint *list[FM_CHECKPOINTS_MAX]; /* from the first to the last; sequences that share a beginning share them */
    size_t count;
    size_t places[2]; /* tokens after which one is to be made; 0: none */
};

/* One sequence of the memory: of an answer that is being made, or kept after one. */
struct fm_cached {
    struct fm_cache *cache;
    llama_seq_id id;
    llama_token *tokens; /* room for a whole context; FM_VISION_TOKEN in the places of images */
    size_t count;
    struct fm_span *spans; /* of images among the tokens; room for a whole context's */
    size_t span_count;
    size_t exact;         /* of count: computed as in a fresh run, up to a chunk's end */
    size_t shared;        /* of count, from the first on: in cells that others of its family have or had too */
    unsigned family;      /* of sequences that share cells; 0: it has never shared any */
    bool busy;            /* an answer is being made with it */
    int64_t used_ms;      /* when it was last busy */
    unsigned char *state; /* all its cells, while it is outside of the KV memory; NULL: it is inside */
    size_t state_bytes;
    bool stays; /* it could not be moved out */
    struct fm_checkpoints checkpoints;
};

struct fm_cache {
    struct fm_llama_model *model; /* borrowed */
    struct fm_cached *list;
    size_t count;
    bool states;             /* of recurrent layers, after the last token alone: back goes only to a checkpoint */
    llama_pos window;        /* some layers may have no more than so many tokens before the last one; 0: all have all */
    bool pure;               /* exact sequences alone have used it since it was empty */
    size_t swapped;          /* bytes of sequences outside of the KV memory */
    size_t checkpoint_bytes; /* of all sequences' checkpoints */
    unsigned families;
};

/* What a kept sequence is worth: what it would cost to compute it again, less and less as the minutes pass. */
static inline double fm_cached_worth(const struct fm_cached *cached, int64_t now_ms) {
    return (double)cached->count / (1 + (double)(now_ms - cached->used_ms) / 60000);
}

#endif
