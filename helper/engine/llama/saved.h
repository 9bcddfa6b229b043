/*
 * The KV memory that outlives the engine: at its end what is worth most of the kept sequences is saved to a file, and
 * the next engine with the same model takes from there what a prompt begins with. The front opens the files (ENGINE.md,
 * Saved state). What is restored counts as computed, but never as exact (cache.h). Engine thread only.
 */
#ifndef FM_ENGINE_LLAMA_SAVED_H
#define FM_ENGINE_LLAMA_SAVED_H

#include "engine/kit/kit.h"
#include "engine/llama/cache.h"
#include "engine/llama/saved_file.h"

struct fm_saved {
    struct fm_llama_model *model; /* borrowed, as is the kit */
    struct fm_kit *kit;
    int read;  /* the file of an earlier engine; -1: none, or it can't be used */
    int write; /* the file to save to; -1: none */
    uint64_t max_bytes;
    uint64_t identity;
    struct fm_saved_index index; /* of `read` */
};

/*
 * For `model`, which outlives it. Reads the index of what was saved; the front is told of a file that can't be used.
 * There is nothing to read and to save where the model embeds, has a window that is shorter than a
 * block, or its answers are to be repeatable. Free it with fm_saved_free.
 */
void fm_saved_init(struct fm_saved *saved, struct fm_llama_model *model, const struct fm_model_files *files,
                   struct fm_kit *kit);
void fm_saved_free(struct fm_saved *saved);

/*
 * Adds to `cached`, which has the beginning of `prompt` or nothing, what was saved of the tokens that follow; always
 * less than the prompt. Stops where reading takes longer than computing would. Blocks on the disk.
 */
void fm_saved_restore(struct fm_saved *saved, struct fm_cached *cached, const struct fm_prompt *prompt);

/*
 * At the end, when no sequence is busy: saves as much as there is time and room for, what is worth most first, and
 * tells the front. Nothing is saved where there is nothing new. `token_us`: what a token of a prompt takes; 0: not
 * known. Blocks on the disk.
 */
void fm_saved_write(struct fm_saved *saved, struct fm_cache *cache, double token_us);

#endif
