/*
 * What jobs send to the host: streaming events, then the results. A frame is built only when the host has room for it.
 * The pump builds it, but a large answer's frame is built for the host's writer, which pulls it.
 */
#ifndef FM_FRONT_STREAMS_H
#define FM_FRONT_STREAMS_H

#include "front/state.h"

#define FM_BACKLOG_PAUSE (2u << 20) /* bytes of text that wait for the host: above this, generation pauses */

/*
 * Queues what jobs have to send, in turns, while the host has room; wakes its writer for large answers. Never blocks.
 */
void fm_streams_pump_locked(struct fm_front *front);

/*
 * Gives the next frame of a job with a large answer; jobs take turns. The frame is valid until the next call. Returns
 * false if no frame is ready; when a frame becomes ready, the outbox is poked. Called from the host's writer thread,
 * without the lock; never blocks.
 */
bool fm_streams_next(struct fm_front *front, const char **frame, size_t *len);

/* Bytes of text that wait for the host. */
size_t fm_streams_backlog_locked(struct fm_front *front);

#endif
