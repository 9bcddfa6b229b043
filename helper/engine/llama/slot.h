/*
 * A slot: one sequence of the KV memory and the tokens that are in it, so that the next job reuses the prefix that it
 * has in common with the last. Engine thread only.
 *
 * Reuse and repeatability: an entry's last bits depend on the batch that it was computed in, and a sampled text turns
 * on such a bit every few hundred tokens. So prompts are decoded in chunks that begin at multiples of model->chunk,
 * and a job that must be repeatable reuses none but the whole chunks that a fresh run would compute in just the same
 * way.
 */
#ifndef FM_ENGINE_LLAMA_SLOT_H
#define FM_ENGINE_LLAMA_SLOT_H

#include "engine/llama/model.h"

struct fm_slot {
    struct fm_model *model; /* borrowed */
    llama_seq_id sequence;
    llama_token *tokens; /* room for a whole context; entry i is at position i */
    size_t count;
    size_t exact;             /* of count: computed as in a fresh run, whole chunks */
    struct llama_batch batch; /* model->chunk tokens */
};

enum fm_decode { FM_DECODE_OK, FM_DECODE_ABORTED, FM_DECODE_FAILED };

/* On failure nothing is left to free. */
FM_MUST_USE enum fm_code fm_slot_init(struct fm_slot *slot, struct fm_model *model, llama_seq_id sequence,
                                      struct fm_error *error);
void fm_slot_free(struct fm_slot *slot);

/*
 * Keeps what the slot's tokens have in common with the beginning of `prompt`, but never all of it: its last token must
 * be decoded for there to be logits. Forgets the rest. slot->count tells how many are kept. `repeatable`: see above.
 */
void fm_slot_reuse(struct fm_slot *slot, const llama_token *prompt, size_t count, bool repeatable);

/*
 * Decodes the next chunk of `prompt` (`count` tokens, more than are in the slot). With the last chunk the logits of the
 * last token are ready. When it does not return FM_DECODE_OK the slot is as it was before, or empty. Blocks; the
 * context's abort callback ends it early.
 */
FM_MUST_USE enum fm_decode fm_slot_prefill(struct fm_slot *slot, const llama_token *prompt, size_t count);

/* The same for generated tokens: at most model->chunk, for which there must be room. */
FM_MUST_USE enum fm_decode fm_slot_append(struct fm_slot *slot, const llama_token *tokens, size_t count);

#endif
