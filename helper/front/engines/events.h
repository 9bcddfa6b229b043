/* An engine's replies and events: they become changes of jobs, and of the engine's state. */
#ifndef FM_FRONT_ENGINES_EVENTS_H
#define FM_FRONT_ENGINES_EVENTS_H

#include "protocol/inbound.h"

/* Handles an engine's messages; `context` is the struct fm_engine. Takes the lock, and never blocks. */
extern const struct fm_inbound_handler fm_engine_events_handler;

#endif
