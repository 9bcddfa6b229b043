/* The log's lines about ignored parameters. */
#ifndef FM_FRONT_IGNORED_H
#define FM_FRONT_IGNORED_H

#include "front/state.h"

/*
 * Logs the parameters (`paths` as surface/ignored.h has them) that were ignored: each once in a process, whatever its
 * index in a list. A name that may be a user's text is logged as its length. Wants the lock; never blocks.
 */
void fm_log_ignored_locked(struct fm_front *front, const struct fm_buf *paths);

#endif
