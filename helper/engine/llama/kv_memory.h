/*
 * The KV memory begins with room for short requests (fm_context_first) and grows when one needs more: llama.cpp writes
 * to all of it when it makes it, which takes a third of a small model's way to its first token, and many hosts never
 * need it. Engine thread only, between batches.
 */
#ifndef FM_ENGINE_LLAMA_KV_MEMORY_H
#define FM_ENGINE_LLAMA_KV_MEMORY_H

#include "engine/llama/model.h"

/*
 * Makes model->context anew with more cells, at least `needed` (0: not known) where the whole memory has so many, and
 * all that is in its cells, in the same order; the logits of the last batch are lost. False: it is whole, or there is
 * no memory for it, and all is as before. Blocks as the load did: 0.1 to 0.6 s for 250 MiB, as the system finds them.
 */
bool fm_kv_grow(struct fm_llama_model *model, size_t needed);

#endif
