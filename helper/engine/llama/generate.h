/* One job on one slot, from its messages to job.finished. */
#ifndef FM_ENGINE_LLAMA_GENERATE_H
#define FM_ENGINE_LLAMA_GENERATE_H

#include "engine/kit/kit.h"
#include "engine/llama/slot.h"

/* Runs `job` to its end and finishes it. Engine thread; blocks. The slot is left consistent, whatever happens. */
void fm_generate(struct fm_slot *slot, struct fm_kit_job *job);

#endif
