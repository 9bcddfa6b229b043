/* Logs ignored parameters. */
#ifndef FM_FRONT_IGNORED_H
#define FM_FRONT_IGNORED_H

#include "front/state.h"

/*
 * Logs the parameters (`paths` as surface/ignored.h has them) that were ignored. Each is logged once in a process,
 * whatever its index in a list. For a name that may be a user's text, only its length is logged. Wants the lock; never
 * blocks.
 */
void fm_log_ignored_locked(struct fm_front *front, const struct fm_buf *paths);

#endif
