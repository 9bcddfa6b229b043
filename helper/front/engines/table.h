/* The engines as a table: what work each has, and which state it is in. */
#ifndef FM_FRONT_ENGINES_TABLE_H
#define FM_FRONT_ENGINES_TABLE_H

#include "front/state.h"

/* The name of the state that the host gets. */
const char *fm_engine_state_name(enum fm_engine_state state);

/* The program that has this model. */
struct fm_program *fm_program_of(struct fm_front *front, const struct fm_model *model);

/* Sets the engine's state, and the time since when it has it. Wants the lock. */
void fm_engine_set_state_locked(struct fm_engine *engine, enum fm_engine_state state);

/* The engine has a reason to end, or is ending already: it takes no jobs. Wants the lock. */
bool fm_engine_is_going_locked(const struct fm_engine *engine);

/* The number of jobs that the engine has, including those that it was asked to stop and has not. Wants the lock. */
unsigned fm_engine_held_locked(const struct fm_engine *engine);

/*
 * The number of jobs that the engine has, except lost ones, and of those that wait for it and are numbered below
 * `before` or are between two choices. Wants the lock.
 */
unsigned fm_engine_wanted_locked(const struct fm_engine *engine, uint64_t before);

/* How many ms an engine may go without a job after that request, or after its load (NULL); -1: without a limit. */
int64_t fm_engine_keep_alive(const struct fm_front *front, const struct fm_request *request);

/* The most advanced state of the program's processes: ready, if one is. Wants the lock. */
enum fm_engine_state fm_engines_state_locked(const struct fm_front *front, const struct fm_program *program);

/*
 * How many signs of progress the job's engine has given; all engines together, if the job has no engine yet. Wants the
 * lock.
 */
unsigned fm_engine_signs_locked(const struct fm_job *job);

#endif
