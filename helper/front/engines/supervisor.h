/* The life of an engine's process, on a thread of its own; and what goes to an engine that is ready. */
#ifndef FM_FRONT_ENGINES_SUPERVISOR_H
#define FM_FRONT_ENGINES_SUPERVISOR_H

#include "front/state.h"

/*
 * Hands queued jobs to the engine as far as it has slots, and aborts; starts or changes the engine where needed. Wants
 * the lock; never blocks.
 */
void fm_engine_pump_locked(struct fm_engine *engine);

#endif
