/* A sequence of the KV memory, and the list of all: shared by cache.h, swap.h and checkpoints.h. Engine thread only. */
#ifndef FM_ENGINE_LLAMA_CACHED_H
#define FM_ENGINE_LLAMA_CACHED_H

#include "engine/llama/model.h"

/* The limit for each sequence. If there are more, checkpoints that are closest to others are dropped. */
#define FM_CHECKPOINTS_MAX 8

struct fm_checkpoint;

struct fm_checkpoints {
    /* in order; sequences with the same beginning share the checkpoints in it */
    struct fm_checkpoint *list[FM_CHECKPOINTS_MAX];
    size_t count;
    size_t places[2]; /* after how many tokens checkpoints must be made; 0: none */
};

/* One sequence of the memory. It belongs to an answer that is being made, or is kept after its answer. */
struct fm_cached {
    struct fm_cache *cache;
    llama_seq_id id;
    llama_token *tokens; /* room for a whole context; FM_VISION_TOKEN at the places of images */
    size_t count;
    struct fm_span *spans; /* the spans of images among the tokens; room for all spans of a context */
    size_t span_count;
    size_t exact; /* how many of `count` were computed as in a fresh run, up to the end of a chunk */
    /* how many of `count`, from the first on, are in cells that others of its family share or shared */
    size_t shared;
    unsigned family;      /* all sequences that share cells have the same number; 0: it has never shared any */
    bool busy;            /* an answer is being made with it */
    int64_t used_ms;      /* when it was last busy */
    unsigned char *state; /* all its cells, while it is outside of the KV memory; NULL: it is not outside */
    size_t state_bytes;
    bool stays; /* the sequence could not be moved out */
    struct fm_checkpoints checkpoints;
};

struct fm_cache {
    struct fm_llama_model *model; /* borrowed */
    struct fm_cached *list;
    size_t count;
    /* has recurrent layers, which only have the last state, so going back needs a checkpoint */
    bool states;
    /* some layers may only have this many tokens before the last one; 0: all layers have all tokens */
    llama_pos window;
    bool pure;               /* only exact sequences have used the memory since it was empty */
    size_t swapped;          /* bytes of all sequences outside of the KV memory */
    size_t checkpoint_bytes; /* bytes of all sequences' checkpoints */
    unsigned families;
};

/* What a kept sequence is worth: the cost of computing it again, which counts less and less as the minutes pass. */
static inline double fm_cached_worth(const struct fm_cached *cached, int64_t now_ms) {
    return (double)cached->count / (1 + (double)(now_ms - cached->used_ms) / 60000);
}

#endif
