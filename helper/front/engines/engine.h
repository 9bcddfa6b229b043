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

/*
 * A job that the engine does not stop in time: it is settled alone, as it was stopped, and the engine, which has more
 * slots than one, goes on with the others. Its slot is taken until the engine says that the job has ended. Wants the
 * lock; never blocks.
 */
void fm_engine_lose_job_locked(struct fm_engine *engine, struct fm_job *job);

/* The engine says that the job with this run has ended; if it had been lost, its slot is free again. Wants the lock. */
void fm_engine_find_run_locked(struct fm_engine *engine, uint64_t run);

/* How long an engine that has lost jobs may still live, in ms; -1: as long as it likes. Wants the lock. */
int64_t fm_engine_silence_left_locked(const struct fm_engine *engine);

/* It was told of a GPU, and has not said that it uses none: should it die, its jobs may be sent again. */
static inline bool fm_engine_may_use_gpu_locked(const struct fm_engine *engine) {
    return engine->gpu_told && !engine->gpu_unused;
}

#endif
