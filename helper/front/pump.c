/* The only place that does what follows from a change of state: fm_front_pump_locked of front/state.h. */
#include "front/engines/places.h"
#include "front/store/queue.h"
#include "front/streams.h"

/* Runs the parts in an order in which one pass is enough: a change by one part matters only to the parts after it. */
void fm_front_pump_locked(struct fm_front *front) {
    fm_engines_pump_locked(front);
    fm_store_pump_locked(front);
    fm_streams_pump_locked(front);
}
