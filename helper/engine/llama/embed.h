/* One job that embeds, from its texts to its last vector. */
#ifndef FM_ENGINE_LLAMA_EMBED_H
#define FM_ENGINE_LLAMA_EMBED_H

#include "engine/kit/kit.h"
#include "engine/llama/model.h"

/* Runs `job`, of a model that embeds, and finishes it. Engine thread; blocks as long as that takes. */
void fm_embed(struct fm_llama_model *model, struct fm_kit_job *job);

#endif
