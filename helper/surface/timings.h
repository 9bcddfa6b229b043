/* How long an answer took: `fm.timings` of its object. Pure. */
#ifndef FM_SURFACE_TIMINGS_H
#define FM_SURFACE_TIMINGS_H

#include "surface/surface.h"

/* Writes the member `timings`, with the sums over all choices: PROTOCOL.md, "Timings". */
void fm_timings_write(const struct fm_answer *answer, struct fm_json_writer *w);

/* Reads what fm_timings_write wrote for an answer of one choice; `timings` is that member. */
void fm_timings_restore(struct fm_answer *answer, struct json_object *timings);

#endif
