/*
 * Checkpoints: the states of recurrent layers after some of a sequence's first tokens. Such a layer has one state for
 * all tokens so far, and can't go back. With a checkpoint, a prompt that begins like the sequence but continues
 * differently only computes what comes after the checkpoint. (Layers with attention keep each token separately: cache.c
 * cuts off the tokens that are not needed.) A checkpoint is made where prompts are likely to differ:
 *  - where a conversation goes on: before the last question, which may be asked differently next time;
 *  - shortly before the end of a prompt: the answer may come back changed, without its thoughts;
 *  - where this prompt differs from another one, because the next one may differ there too.
 *
 * Nothing fails without a checkpoint. Engine thread only; no function takes longer than copying the bytes.
 */
#ifndef FM_ENGINE_LLAMA_CHECKPOINTS_H
#define FM_ENGINE_LLAMA_CHECKPOINTS_H

#include "engine/llama/cached.h"

/* Bytes for all sequences together. Above this limit, checkpoints of the sequences with the least worth are dropped. */
#define FM_CHECKPOINTS_BYTES ((size_t)256 << 20)

/*
 * Plans the checkpoints of `cached`, which has the beginning of `prompt` and has to compute the rest. `parting`: how
 * many tokens another sequence shares. None with `prompt` NULL, without recurrent layers, or with images.
 */
void fm_checkpoints_plan(struct fm_cached *cached, const struct fm_prompt *prompt, size_t parting);

/* How many of the next `count` tokens may be computed in one batch. */
size_t fm_checkpoints_limit(const struct fm_cached *cached, size_t count);

/* Makes a checkpoint after the tokens that `cached` has now, unless it has that one, or no layer is recurrent. */
void fm_checkpoints_add(struct fm_cached *cached);

/* The number of tokens before the checkpoint `index`. */
size_t fm_checkpoints_at(const struct fm_cached *cached, size_t index);

/* Call it after tokens were computed: makes a checkpoint if one is planned after the tokens that `cached` has now. */
void fm_checkpoints_make(struct fm_cached *cached);

/* The last checkpoint within the first `count` tokens, as a number of tokens; 0: there is none. */
size_t fm_checkpoints_before(const struct fm_cached *cached, size_t count);

/*
 * Gives the recurrent layers of the sequence `to` the state after `count` tokens. False if there is no checkpoint after
 * `count` tokens.
 */
bool fm_checkpoints_restore(const struct fm_cached *cached, size_t count, llama_seq_id to);

/* Gives `to`, which has no checkpoints, the checkpoints of `from` that are within the tokens of `to`. */
void fm_checkpoints_share(struct fm_cached *to, const struct fm_cached *from);

/* Forgets checkpoints after more than `count` tokens. Harmless if there are none. */
void fm_checkpoints_drop(struct fm_cached *cached, size_t count);

#endif
