/*
 * A slot: one sequence of the KV memory and the tokens that are in it, so that the next job reuses the prefix that it
 * has in common with the last. Engine thread only.
 *
 * Reuse and repeatability: an entry's last bits depend on the batch that it was computed in, and a sampled text turns
 * on such a bit every few hundred tokens. So prompts are decoded in chunks that begin at multiples of model->chunk,
 * and a job that must be repeatable reuses none but what a fresh run would compute in just the same way: the whole
 * chunks, and all of a prompt that comes again, with the logits at its end. A span of an image ends the chunk before
 * it, and is reused as a whole, by the same image in the same place alone.
 */
#ifndef FM_ENGINE_LLAMA_SLOT_H
#define FM_ENGINE_LLAMA_SLOT_H

#include "engine/llama/model.h"

struct fm_slot {
    struct fm_llama_model *model; /* borrowed */
    llama_seq_id sequence;
    llama_token *tokens; /* room for a whole context */
    size_t count;
    struct fm_span *spans; /* of images among the tokens; room for a whole context's */
    size_t span_count;
    size_t exact;             /* of count: computed as in a fresh run, up to a chunk's end */
    float *logits;            /* at the end of the last prompt; one for each token of the vocabulary */
    size_t logits_count;      /* its length; 0: that is no longer in the slot */
    bool logits_exact;        /* it was computed as in a fresh run */
    struct llama_batch batch; /* model->chunk tokens */
};

enum fm_decode { FM_DECODE_OK, FM_DECODE_ABORTED, FM_DECODE_FAILED };

/* On failure nothing is left to free. */
FM_MUST_USE enum fm_code fm_slot_init(struct fm_slot *slot, struct fm_llama_model *model, llama_seq_id sequence,
                                      struct fm_error *error);
void fm_slot_free(struct fm_slot *slot);

/*
 * Keeps what the slot's tokens have in common with the beginning of `prompt`, and forgets the rest. slot->count tells
 * how many are kept; all of them only where there are logits for the last. `repeatable`: see above.
 */
void fm_slot_reuse(struct fm_slot *slot, const struct fm_prompt *prompt, bool repeatable);

/* The span that is next in `prompt`, which has more tokens than are in the slot; NULL: a token is. */
const struct fm_span *fm_slot_next_span(const struct fm_slot *slot, const struct fm_prompt *prompt);

/*
 * Decodes the next chunk of `prompt`, which begins with a token. With the last chunk the logits of the last token are
 * ready. When it does not return FM_DECODE_OK the slot is as it was before, or empty. Blocks; the context's abort
 * callback ends it early.
 */
FM_MUST_USE enum fm_decode fm_slot_prefill(struct fm_slot *slot, const struct fm_prompt *prompt);

/* The same for the span that is next, whose `states` are those that fm_picture_encode has made. */
FM_MUST_USE enum fm_decode fm_slot_prefill_span(struct fm_slot *slot, const struct fm_prompt *prompt,
                                                const struct fm_picture *picture, const struct fm_span *span,
                                                float *states);

/* The same for generated tokens: at most model->chunk, for which there must be room. */
FM_MUST_USE enum fm_decode fm_slot_append(struct fm_slot *slot, const llama_token *tokens, size_t count);

/* What may come after the slot's last token: a logit for each token of the vocabulary, valid until the next decode. */
const float *fm_slot_logits(const struct fm_slot *slot);

#endif
