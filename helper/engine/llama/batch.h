/*
 * Tokens of several sequences that are computed together, and the places of an image, which get a separate batch.
 * Engine thread only.
 */
#ifndef FM_ENGINE_LLAMA_BATCH_H
#define FM_ENGINE_LLAMA_BATCH_H

#include "engine/llama/model.h"

struct fm_batch {
    struct fm_llama_model *model; /* borrowed */
    struct llama_batch tokens;    /* room for model->batch_size */
};

/* How a batch went. FM_DECODE_FULL: the KV memory has no room for it; nothing was computed. */
enum fm_decode { FM_DECODE_OK, FM_DECODE_ABORTED, FM_DECODE_FULL, FM_DECODE_FAILED };

/* On failure nothing is left to free. */
FM_MUST_USE enum fm_code fm_batch_init(struct fm_batch *batch, struct fm_llama_model *model, struct fm_error *error);
void fm_batch_free(struct fm_batch *batch);

/* Empties the batch. */
void fm_batch_clear(struct fm_batch *batch);

/* How many more tokens the batch has room for. */
size_t fm_batch_room(const struct fm_batch *batch);

/* Adds a token, for which there must be room, and returns its index. `logits`: the logits after it are wanted. */
int32_t fm_batch_add(struct fm_batch *batch, llama_seq_id id, llama_token token, llama_pos position, bool logits);

/*
 * Computes the batch. Blocks; model->stop ends it early. When it is aborted or fails, some of the tokens may be in the
 * KV memory: the owner of the sequence (cache.h) must remove them.
 */
FM_MUST_USE enum fm_decode fm_batch_decode(struct fm_batch *batch);

/* The logits after the token with this index, one for each token of the vocabulary; valid until the next decode. */
const float *fm_batch_logits(const struct fm_batch *batch, int32_t index);

/* A span of an image, at its place in a sequence. */
struct fm_span_place {
    llama_seq_id id;
    llama_pos position; /* position of its first place */
    bool last;          /* the logits after it are wanted; their index is -1 */
};

/*
 * Computes a span in a batch of its own; fm_picture_encode has made its `states`. Otherwise as fm_batch_decode.
 */
FM_MUST_USE enum fm_decode fm_batch_decode_span(const struct fm_batch *batch, const struct fm_picture *picture,
                                                const struct fm_span *span, const struct fm_span_place *place,
                                                float *states);

#endif
