/*
 * Saves the KV memory beyond the engine's life: at its end the most valuable parts of the kept sequences are saved to a
 * file, and the next engine with the same model reads the beginnings of prompts from there. The front opens the files
 * (ENGINE.md, Saved state). Restored tokens count as computed, but never as exact (cache.h). Engine thread only.
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
    struct fm_saved_index index; /* the index of the file `read` */
};

/*
 * Makes `saved` for `model`, which must outlive it. Reads the index of the saved file; a file that can't be used is
 * reported to the front. Nothing is read or saved if the model embeds, has a window shorter than a block, or if its
 * answers must be repeatable. Free it with fm_saved_free.
 */
void fm_saved_init(struct fm_saved *saved, struct fm_llama_model *model, const struct fm_model_files *files,
                   struct fm_kit *kit);
void fm_saved_free(struct fm_saved *saved);

/*
 * Adds to `cached`, which has the beginning of `prompt` or nothing, the saved tokens that follow; always fewer than the
 * prompt has. Stops when reading takes longer than computing would. Blocks on the disk.
 */
void fm_saved_restore(struct fm_saved *saved, struct fm_cached *cached, const struct fm_prompt *prompt);

/*
 * At the end, when no sequence is busy: saves as much as there is time and room for, the most valuable parts first, and
 * reports that to the front. Saves nothing if there is nothing new. `token_us`: time of a token of a prompt; 0:
 * unknown. Blocks on the disk.
 */
void fm_saved_write(struct fm_saved *saved, struct fm_cache *cache, double token_us);

#endif
