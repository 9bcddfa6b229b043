/*
 * The KV memory: which tokens of which sequence are in it, and which prompts may use them again. A conversation stays
 * in it after its answer, so that the next turn only computes what is new. A prompt that begins like another sequence
 * shares the cells of that beginning. While a conversation is not continued, it may be kept outside of the KV memory
 * (swap.h). Engine thread only.
 *
 * Exact sequences: an entry's last bits depend on the batch that it was computed in and on what else is in the memory,
 * and a drawn text turns on such a bit every few hundred tokens. A sequence that must be repeatable to the bit runs
 * alone, in a memory that has nothing but such sequences, and in chunks that begin at multiples of model->chunk. It
 * only reuses what a fresh run would compute in exactly the same way: whole chunks. A span of an image ends the chunk
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
 * A sequence for `prompt`, with as much of its beginning as the memory has; ->count says how much, which is less than
 * the prompt. There must be a sequence that is not busy. `exact`: no other sequence is busy, and none will be before
 * fm_cache_end.
 */
struct fm_cached *fm_cache_begin(struct fm_cache *cache, const struct fm_prompt *prompt, bool exact);

/* How many of the tokens of `prompt`, which is not exact, fm_cache_begin would find in cells of busy sequences. */
size_t fm_cache_common(struct fm_cache *cache, const struct fm_prompt *prompt);

/*
 * Cells that busy sequences share, each counted once. All cells of busy sequences are these, and each one's cells
 * beyond ->shared.
 */
size_t fm_cache_shared(const struct fm_cache *cache);

/* The answer of `cached` is over. The sequence is kept as long as there is room for it. */
void fm_cache_end(struct fm_cached *cached);

/*
 * Gives back the cells of the kept sequence with the least worth: few tokens, not used for long. It is moved out or
 * forgotten. False when none is kept.
 */
bool fm_cache_make_room(struct fm_cache *cache);

/*
 * Moves kept sequences out of the KV memory, because in it they slow down all computing. The sequence that was used
 * last stays, unless it is short, because it is likely to be continued. No sequence may be busy.
 */
void fm_cache_move_out(struct fm_cache *cache);

/* The position of what comes after the first `count` tokens: an image's span may have fewer positions than places. */
llama_pos fm_cached_position(const struct fm_cached *cached, size_t count);

/* `count` more tokens were computed. `exact`: as in a fresh run, up to where each prompt that begins so ends a chunk.
 */
void fm_cached_add(struct fm_cached *cached, const llama_token *tokens, size_t count, bool exact);

/* The tokens of a span were computed, as in fm_cached_add; a span ends a chunk. */
void fm_cached_add_span(struct fm_cached *cached, const struct fm_span *span, bool exact);

/* Forgets all tokens except the first `count`, or keeps even fewer, or none, if the memory can't go back to exactly
 * this place. */
void fm_cached_cut(struct fm_cached *cached, size_t count);

#endif
