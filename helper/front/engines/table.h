/* The engines as a table: the work and the state of each engine. */
#ifndef FM_FRONT_ENGINES_TABLE_H
#define FM_FRONT_ENGINES_TABLE_H

#include "front/state.h"

/* The name of the state, as it is sent to the host. */
const char *fm_engine_state_name(enum fm_engine_state state);

/* The program that has this model. */
struct fm_program *fm_program_of(struct fm_front *front, const struct fm_model *model);

/* Sets the engine's state and the time at which it began. Wants the lock. */
void fm_engine_set_state_locked(struct fm_engine *engine, enum fm_engine_state state);

/* Whether the engine has a reason to end, or is ending already. Such an engine takes no jobs. Wants the lock. */
bool fm_engine_is_going_locked(const struct fm_engine *engine);

/*
 * The number of jobs in the engine. It includes jobs that the engine was asked to stop and has not stopped. Wants the
 * lock.
 */
unsigned fm_engine_held_locked(const struct fm_engine *engine);

/*
 * The sum of two numbers: the jobs in the engine, except lost ones; and the jobs that wait for it, if their number is
 * below `before` or they are between two choices. Wants the lock.
 */
unsigned fm_engine_wanted_locked(const struct fm_engine *engine, uint64_t before);

/*
 * How many ms an engine may go without a job after that request, or after its load (`request` NULL); -1: without a
 * limit.
 */
int64_t fm_engine_keep_alive(const struct fm_front *front, const struct fm_request *request);

/* The most advanced state of the program's processes, such as ready if one process is ready. Wants the lock. */
enum fm_engine_state fm_engines_state_locked(const struct fm_front *front, const struct fm_program *program);

/*
 * How many signs of progress the job's engine has given. If the job has no engine yet, the sum over all engines. Wants
 * the lock.
 */
unsigned fm_engine_signs_locked(const struct fm_job *job);

#endif
