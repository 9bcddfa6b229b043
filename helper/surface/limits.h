/* The time limits that a request may set in its `fm` object. PROTOCOL.md, "Limits". */
#ifndef FM_SURFACE_LIMITS_H
#define FM_SURFACE_LIMITS_H

#include "surface/check.h"

struct fm_limits;

extern const struct fm_rule fm_limits_rules[]; /* members of `fm` */

/* Reads the limits of a checked `fm` (NULL: none); a limit that `fm` does not set has its default. */
struct fm_limits fm_limits_read(struct json_object *fm);

#endif
