/* The life of an engine's process, on its own thread. */
#ifndef FM_FRONT_ENGINES_SUPERVISOR_H
#define FM_FRONT_ENGINES_SUPERVISOR_H

#include "front/state.h"

/*
 * Starts a process with `model` (copied) in a place that is idle. FM_INTERNAL: out of memory; FM_OVERLOADED: no thread
 * can be started. In both cases the place stays idle. The jobs that wait for the model get every later error. Wants the
 * lock; never blocks.
 */
FM_MUST_USE enum fm_code fm_engine_start_locked(struct fm_engine *engine, const struct fm_model *model,
                                                struct fm_error *error);

/*
 * Starts a process of `program` in its place `probe`. The process reports whether the program is available, and then
 * ends. Does nothing if such a process runs already, or if there is no thread or memory for it. Wants the lock; never
 * blocks.
 */
void fm_engine_ask_locked(struct fm_program *program, struct fm_engine *probe);

/* Ends an engine that has no job; `why` for the log, as in "the engine was ended: WHY". Wants the lock; never blocks.
 */
void fm_engine_dismiss_locked(struct fm_engine *engine, const char *why);

#endif
