/* Decides which engine a job goes to, and which engine makes way for another. */
#ifndef FM_FRONT_ENGINES_PLACES_H
#define FM_FRONT_ENGINES_PLACES_H

#include "front/state.h"

/*
 * Gives queued jobs to engines that have free slots, and sends aborts; starts and ends engines where needed. Wants the
 * lock; never blocks.
 */
void fm_engines_pump_locked(struct fm_front *front);

#endif
