/*
 * The memory of the weights. llama.cpp maps the file in pages of 4 KiB; with huge pages a token is computed up to a
 * tenth faster. So the mapping moves into huge pages, one at a time, while the engine has nothing else to do: the first
 * answer does not wait for it. Engine thread only.
 */
#ifndef FM_ENGINE_LLAMA_WEIGHTS_H
#define FM_ENGINE_LLAMA_WEIGHTS_H

#include "base/platform.h"
#include "engine/kit/kit.h"

/*
 * Adds the file at `path`, from which a model was loaded, to what fm_weights_wait moves. Files larger than an eighth of
 * the usable memory stay in the file's pages, which the kernel can drop when memory is short.
 */
void fm_weights_add(struct fm_huge_pages *pages, const char *path);

/* Returns the next job; until it comes, `pages` are moved. NULL: the end has come. Blocks. No job may be under way. */
struct fm_kit_job *fm_weights_wait(struct fm_huge_pages *pages, struct fm_kit *kit);

#endif
