/* Jobs that an engine with several slots was asked to stop, and has not stopped: each is settled without the engine. */
#ifndef FM_FRONT_ENGINES_LOST_H
#define FM_FRONT_ENGINES_LOST_H

#include "front/state.h"

/* Whether the engine is kept when one more job does not stop: it also has jobs other than that one and the lost ones.
 * Wants the lock. */
bool fm_engine_can_lose_locked(const struct fm_engine *engine);

/*
 * Settles a job that the engine does not stop in time, if fm_engine_can_lose_locked is true: only this job ends, with
 * the error of its stop, and the engine goes on with the others. The job's slot stays taken until the engine reports
 * its end. Wants the lock; never blocks.
 */
void fm_engine_lose_job_locked(struct fm_engine *engine, struct fm_job *job);

/*
 * The engine reports that the job with this run has ended; if that job was lost, its slot is free again. Wants the
 * lock.
 */
void fm_engine_find_run_locked(struct fm_engine *engine, uint64_t run);

/* The engine has lost a job and has sent nothing since: it may hang, and gets no other job. Wants the lock. */
bool fm_engine_may_hang_locked(const struct fm_engine *engine);

/* How long an engine that has lost jobs may still live, in ms; -1: without a limit. Wants the lock. */
int64_t fm_engine_silence_left_locked(const struct fm_engine *engine);

#endif
