/* Jobs that an engine with several slots was to stop, and has not: each is settled without it. */
#ifndef FM_FRONT_ENGINES_LOST_H
#define FM_FRONT_ENGINES_LOST_H

#include "front/state.h"

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

#endif
