/*
 * The KV memory begins with room for short requests (fm_context_first) and grows when a request needs more. llama.cpp
 * writes to all of it when it makes it. With the full size that takes a third of a small model's time to the first
 * token, and many hosts never need it. Engine thread only, between batches.
 */
#ifndef FM_ENGINE_LLAMA_KV_MEMORY_H
#define FM_ENGINE_LLAMA_KV_MEMORY_H

#include "engine/llama/model.h"

/*
 * Makes model->context again with more cells, at least `needed` (0: not known) if the full size has that many. The
 * contents of its cells stay, in the same order; the logits of the last batch are lost. False: it has its full size
 * already, or there is no memory for it, and nothing has changed. Blocks for 0.1 to 0.6 s for 250 MiB, like the load;
 * the time depends on how fast the system finds the memory.
 */
bool fm_kv_grow(struct fm_llama_model *model, size_t needed);

#endif
