/* Session mode: requests and answers as lines of JSON on stdin and stdout (protocol/SESSIONS.md). */
#ifndef FM_SESSIONS_SESSIONS_H
#define FM_SESSIONS_SESSIONS_H

#include "front/front.h"

/*
 * Serves until the end. `wire` is as for fm_front_run; `front` is the front's state, which the caller owns. Returns the
 * process's exit status. Blocks; call it once, from the main thread.
 */
int fm_sessions_run(struct fm_front *front, const struct fm_options *options, const struct fm_wire *wire);

#endif
