/* Jobs that an engine with several slots was asked to stop, and has not stopped. Each is settled without the engine. */
#ifndef FM_FRONT_ENGINES_LOST_H
#define FM_FRONT_ENGINES_LOST_H

#include "front/state.h"

/*
 * Whether the engine is kept when one more job does not stop: true if it has jobs besides that job and the lost ones.
 * Wants the lock.
 */
bool fm_engine_can_lose_locked(const struct fm_engine *engine);

/*
 * Settles a job that the engine does not stop in time. Call it if fm_engine_can_lose_locked is true. Only this job
 * ends, with the error of its stop, and the engine goes on with the others. The job's slot stays taken until the engine
 * reports that the job has ended. Wants the lock; never blocks.
 */
void fm_engine_lose_job_locked(struct fm_engine *engine, struct fm_job *job);

/*
 * Call it when the engine reports that the job with this run has ended. If that job was lost, its slot becomes free
 * again. Wants the lock.
 */
void fm_engine_find_run_locked(struct fm_engine *engine, uint64_t run);

/*
 * Whether the engine has to stop a job, or has lost one, and has sent nothing since. Such an engine may hang, and gets
 * no other job. Wants the lock.
 */
bool fm_engine_may_hang_locked(const struct fm_engine *engine);

/* How long an engine that has lost jobs may still live, in ms; -1: without a limit. Wants the lock. */
int64_t fm_engine_silence_left_locked(const struct fm_engine *engine);

#endif
