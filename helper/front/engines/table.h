/* The engines as a table: what each has to do, and how far they have come. */
#ifndef FM_FRONT_ENGINES_TABLE_H
#define FM_FRONT_ENGINES_TABLE_H

#include "front/state.h"

/* As the host is told. */
const char *fm_engine_state_name(enum fm_engine_state state);

/* The program whose model it is. */
struct fm_program *fm_program_of(struct fm_front *front, const struct fm_model *model);

/* Sets the engine's state, and since when it has it. Wants the lock. */
void fm_engine_set_state_locked(struct fm_engine *engine, enum fm_engine_state state);

/* It has a reason to end, or is ending already: it takes no jobs. Wants the lock. */
bool fm_engine_is_going_locked(const struct fm_engine *engine);

/* Jobs that the engine has, with those that it was to stop and has not. Wants the lock. */
unsigned fm_engine_held_locked(const struct fm_engine *engine);

/* The same, and those that wait for it: numbered below `before`, or between two choices. Wants the lock. */
unsigned fm_engine_wanted_locked(const struct fm_engine *engine, uint64_t before);

/* For how many ms an engine may go without a job after that request, or after its load (NULL); -1: for ever. */
int64_t fm_engine_keep_alive(const struct fm_front *front, const struct fm_request *request);

/* The state of the program's process that has come furthest: ready, if one is. Wants the lock. */
enum fm_engine_state fm_engines_state_locked(const struct fm_front *front, const struct fm_program *program);

/* Signs of progress for a job that waits for its engine; for one that has none yet, those of all. Wants the lock. */
unsigned fm_engine_signs_locked(const struct fm_job *job);

#endif
