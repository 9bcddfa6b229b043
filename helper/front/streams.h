/*
 * What jobs have to say to the host: streaming events, then the results. A frame is built when the host has room for it
 * and not before. All functions want the lock.
 */
#ifndef FM_FRONT_STREAMS_H
#define FM_FRONT_STREAMS_H

#include "front/state.h"

#define FM_BACKLOG_PAUSE (2u << 20) /* bytes of text waiting for the host: above it, generation pauses */

/* Queues what jobs have to say, in turns, while the host has room. Never blocks. */
void fm_streams_pump_locked(struct fm_front *front);

/* Bytes of text that wait for the host. */
size_t fm_streams_backlog_locked(struct fm_front *front);

#endif
