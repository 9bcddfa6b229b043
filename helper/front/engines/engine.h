/* Functions that end an engine. */
#ifndef FM_FRONT_ENGINES_ENGINE_H
#define FM_FRONT_ENGINES_ENGINE_H

#include "front/state.h"

/* Notes how the engine ends; only the first note counts. Wants the lock. */
void fm_engine_note_end_locked(struct fm_engine *engine, enum fm_engine_end end, const struct fm_error *error);

/*
 * Kills the engine's process. `error` becomes the error of the jobs in it, unless they were stopped for another reason.
 * Depending on `end`, other jobs get it too. Only the first kill counts. Wants the lock; never blocks.
 */
void fm_engine_kill_locked(struct fm_engine *engine, enum fm_engine_end end, const struct fm_error *error);

/*
 * Whether the engine got a GPU and has not reported that it uses none. If such an engine dies, its jobs may be sent
 * again.
 */
static inline bool fm_engine_may_use_gpu_locked(const struct fm_engine *engine) {
    return engine->gpu_told && !engine->gpu_unused;
}

#endif
