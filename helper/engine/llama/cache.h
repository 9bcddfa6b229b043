/*
 * The KV memory: which tokens of which sequence are in it, and which prompts may use them again. A conversation stays
 * in the memory after its answer, so that the next turn only computes new tokens. A prompt that begins like another
 * sequence shares the cells of that beginning. While a conversation is not continued, it may be kept outside of the KV
 * memory (swap.h). Engine thread only.
 *
 * Exact sequences: the last bits of an entry depend on the batch in which it was computed, and on the other contents of
 * the memory. Such a bit changes a drawn text every few hundred tokens. A sequence that must be repeatable to the bit
 * runs alone, in a memory that only has such sequences, and in chunks that begin at multiples of model->chunk. It only
 * reuses whole chunks, which a fresh run would compute in exactly the same way. A span of an image ends the chunk
 * before it, and is only reused as a whole, by the same image in the same place.
 */
#ifndef FM_ENGINE_LLAMA_CACHE_H
#define FM_ENGINE_LLAMA_CACHE_H

#include "engine/llama/cached.h"

/* With `count` sequences. On failure nothing is left to free. */
FM_MUST_USE enum fm_code fm_cache_init(struct fm_cache *cache, struct fm_llama_model *model, size_t count,
                                       struct fm_error *error);
void fm_cache_free(struct fm_cache *cache);

/*
 * Returns a sequence for `prompt`, with as much of its beginning as the memory has. ->count is the number of these
 * tokens, less than the prompt has. Call it only if a sequence is not busy. `exact`: no other sequence is busy, and
 * none will be before fm_cache_end.
 */
struct fm_cached *fm_cache_begin(struct fm_cache *cache, const struct fm_prompt *prompt, bool exact);

/* How many of the tokens of `prompt`, which is not exact, fm_cache_begin would find in cells of busy sequences. */
size_t fm_cache_common(struct fm_cache *cache, const struct fm_prompt *prompt);

/*
 * The number of cells that busy sequences share, each counted once. All other cells of a busy sequence come after its
 * first ->shared tokens.
 */
size_t fm_cache_shared(const struct fm_cache *cache);

/* Call it when the answer of `cached` is over. The sequence is kept as long as there is room for it. */
void fm_cache_end(struct fm_cached *cached);

/*
 * Frees the cells of the kept sequence with the least worth: few tokens, not used for a long time. The sequence is
 * moved out or forgotten. False when no sequence is kept.
 */
bool fm_cache_make_room(struct fm_cache *cache);

/*
 * Moves kept sequences out of the KV memory, because in it they slow down all computing. The sequence that was used
 * last stays, unless it is short, because it is likely to be continued. No sequence may be busy.
 */
void fm_cache_move_out(struct fm_cache *cache);

/*
 * The position after the first `count` tokens. It may be less than `count`, because an image's span may have fewer
 * positions than places.
 */
llama_pos fm_cached_position(const struct fm_cached *cached, size_t count);

/*
 * Call it when `count` more tokens were computed. `exact`: they were computed as in a fresh run, up to a place where
 * every prompt with this beginning ends a chunk.
 */
void fm_cached_add(struct fm_cached *cached, const llama_token *tokens, size_t count, bool exact);

/* Call it when the tokens of a span were computed, like fm_cached_add; a span ends a chunk. */
void fm_cached_add_span(struct fm_cached *cached, const struct fm_span *span, bool exact);

/*
 * Forgets all tokens except the first `count`. Keeps fewer or no tokens if the memory can't go back to exactly this
 * place.
 */
void fm_cached_cut(struct fm_cached *cached, size_t count);

#endif
