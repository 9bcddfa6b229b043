/*
 * Kept conversations outside of the KV memory. Computing a token reads all cells of that memory up to the last one in
 * use, of any conversation: so a conversation that is not continued makes all others slower. Therefore it is moved to
 * ordinary memory, and its cells are given back. When a prompt begins like it, it is moved back, which takes a
 * thousandth of the time to compute it. Engine thread only; nothing here takes longer than copying the bytes.
 */
#ifndef FM_ENGINE_LLAMA_SWAP_H
#define FM_ENGINE_LLAMA_SWAP_H

#include "engine/llama/cached.h"

/* Bytes of conversations outside of the KV memory, all together: 11,000 tokens of a model of 135M parameters. */
#define FM_SWAP_MAX ((size_t)256 << 20)

/*
 * Gives back the cells of `cached`, which is not busy. Its data are kept outside of the KV memory; if there is no room
 * for them, other conversations outside that are worth less are forgotten. False: `cached` stays in the KV memory,
 * because it is worth less than those, or has images, or the memory can't be split.
 */
bool fm_swap_out(struct fm_cached *cached);

/*
 * `to` gets the cells of the first `count` tokens of `from`, which is outside; the caller notes which tokens these are.
 * `from` stays outside, unless it is `to`. False: there is no room in the KV memory; then `to` has nothing.
 */
bool fm_swap_in(struct fm_cached *to, struct fm_cached *from, size_t count);

/* Forgets the copy of `cached` outside of the KV memory. Harmless if it has none. */
void fm_swap_drop(struct fm_cached *cached);

#endif
