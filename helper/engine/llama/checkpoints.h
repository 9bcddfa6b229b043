/*
 * Checkpoints: what recurrent layers had after some of a sequence's first tokens. Such layers have one state of all
 * tokens before, and that can't be taken back; with a checkpoint, a prompt that begins as the sequence does but goes on
 * in another way needs no more than what comes after the checkpoint. (Layers with attention keep each token by itself:
 * what is too much of them is cut off, in cache.c.) One is made where prompts are likely to part:
 *  - where a conversation goes on: before the last question, which may be asked in another way;
 *  - shortly before the end of a prompt: the answer may come back changed, without its thoughts;
 *  - where the prompt itself parted from another one, so that the next can do so for less.
 *
 * Nothing fails for want of a checkpoint. Engine thread only; nothing here takes longer than copying the bytes.
 */
#ifndef FM_ENGINE_LLAMA_CHECKPOINTS_H
#define FM_ENGINE_LLAMA_CHECKPOINTS_H

#include "engine/llama/cached.h"

/* Of all sequences together; then those of what is worth least go. */
#define FM_CHECKPOINTS_BYTES ((size_t)256 << 20)

/*
 * `cached`, which has the beginning of `prompt`, is to compute the rest: where that needs a checkpoint, or more.
 * `parting`: tokens that another sequence has too. NULL: nowhere; nor where no layer is recurrent, or there are images.
 */
void fm_checkpoints_plan(struct fm_cached *cached, const struct fm_prompt *prompt, size_t parting);

/* How many of the next `count` tokens may be computed at once. */
size_t fm_checkpoints_limit(const struct fm_cached *cached, size_t count);

/* Makes one here, unless there is one, or no layer is recurrent. */
void fm_checkpoints_add(struct fm_cached *cached);

/* After how many tokens the checkpoint number `index` is. */
size_t fm_checkpoints_at(const struct fm_cached *cached, size_t index);

/* Tokens were computed: makes a checkpoint where one is to be. */
void fm_checkpoints_make(struct fm_cached *cached);

/* The most of the first `count` tokens after which there is a checkpoint; 0: there is none. */
size_t fm_checkpoints_before(const struct fm_cached *cached, size_t count);

/* The recurrent layers of the sequence `to` have the state after `count` tokens, if there is a checkpoint; or else false. */
bool fm_checkpoints_restore(const struct fm_cached *cached, size_t count, llama_seq_id to);

/* `to` gets those of `from` that are within its tokens. It had none. */
void fm_checkpoints_share(struct fm_cached *to, const struct fm_cached *from);

/* Forgets those after more than `count` tokens. Harmless where there are none. */
void fm_checkpoints_drop(struct fm_cached *cached, size_t count);

#endif
