/* Jobs that an engine with several slots was to stop, and has not: each is settled without it. */
#ifndef FM_FRONT_ENGINES_LOST_H
#define FM_FRONT_ENGINES_LOST_H

#include "front/state.h"

/* Whether the engine has other jobs than those that it does not stop, one of them not lost yet: then it stays for these.
 * Wants the lock. */
bool fm_engine_can_lose_locked(const struct fm_engine *engine);

/*
 * A job that the engine does not stop in time, where fm_engine_can_lose_locked: it is settled alone, as it was stopped,
 * and the engine goes on with the others. Its slot is taken until the engine says that the job has ended. Wants the
 * lock; never blocks.
 */
void fm_engine_lose_job_locked(struct fm_engine *engine, struct fm_job *job);

/* The engine says that the job with this run has ended; if it had been lost, its slot is free again. Wants the lock. */
void fm_engine_find_run_locked(struct fm_engine *engine, uint64_t run);

/* The engine has lost a job and said nothing since: it may hang, and gets no other job. Wants the lock. */
bool fm_engine_may_hang_locked(const struct fm_engine *engine);

/* How long an engine that has lost jobs may still live, in ms; -1: as long as it likes. Wants the lock. */
int64_t fm_engine_silence_left_locked(const struct fm_engine *engine);

#endif
