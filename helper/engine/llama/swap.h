/*
 * Kept conversations outside of the KV memory. Each token that is computed goes over all cells of that memory up to the
 * last one in use, of any conversation: a conversation that nobody goes on with makes all others slower. So it is
 * moved to ordinary memory and its cells are given back; when a prompt begins as it does, it comes back, which takes a
 * thousandth of the time of computing it. Engine thread only; nothing here takes longer than copying the bytes.
 */
#ifndef FM_ENGINE_LLAMA_SWAP_H
#define FM_ENGINE_LLAMA_SWAP_H

#include "engine/llama/cached.h"

/* Bytes of conversations outside of the KV memory, all together: 11,000 tokens of a model of 135M parameters. */
#define FM_SWAP_MAX ((size_t)256 << 20)

/*
 * Gives back the cells of `cached`, which is not busy. Where there is no room for it, conversations of less worth that
 * are outside already are forgotten. False: it stays where it is, because it is worth less than those, or has images,
 * or the memory can't be taken apart.
 */
bool fm_swap_out(struct fm_cached *cached);

/*
 * `to` gets the cells of the first `count` tokens of `from`, which is outside; what they are is the caller's to note.
 * `from` stays outside, unless it is `to`. False: there is no room in the KV memory; then `to` has nothing.
 */
bool fm_swap_in(struct fm_cached *to, struct fm_cached *from, size_t count);

/* What is outside of it is forgotten. Harmless where nothing is. */
void fm_swap_drop(struct fm_cached *cached);

#endif
