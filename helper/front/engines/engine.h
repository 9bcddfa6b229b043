/* How an engine is ended. */
#ifndef FM_FRONT_ENGINES_ENGINE_H
#define FM_FRONT_ENGINES_ENGINE_H

#include "front/state.h"

/* Notes how the engine comes to its end; the first note counts. Wants the lock. */
void fm_engine_note_end_locked(struct fm_engine *engine, enum fm_engine_end end, const struct fm_error *error);

/*
 * Ends the engine the hard way. `error` is what the jobs in it are answered, unless they were stopped for another
 * reason, and the jobs that `end` says. The first kill decides. Wants the lock; never blocks.
 */
void fm_engine_kill_locked(struct fm_engine *engine, enum fm_engine_end end, const struct fm_error *error);

/* It was told of a GPU, and has not said that it uses none: should it die, its jobs may be sent again. */
static inline bool fm_engine_may_use_gpu_locked(const struct fm_engine *engine) {
    return engine->gpu_told && !engine->gpu_unused;
}

#endif
