/* From a host's message to the method that serves it, and its answer. */
#ifndef FM_FRONT_DISPATCH_H
#define FM_FRONT_DISPATCH_H

#include "front/state.h"
#include "protocol/inbound.h"

/* What each dispatching thread has. */
struct fm_dispatcher {
    struct fm_front *front;
    struct fm_buf reply; /* the reply that is being built */
};

/* Allocates nothing; free gives back what the replies took. */
void fm_dispatcher_init(struct fm_dispatcher *dispatcher, struct fm_front *front);
void fm_dispatcher_free(struct fm_dispatcher *dispatcher);

/*
 * Handles a host's messages; copy this struct, and set `context` to the thread's struct fm_dispatcher. Two threads may
 * dispatch at the same time, but one of them only messages for which fm_dispatch_is_at_once is true. Blocks for no
 * longer than it takes to build a frame.
 */
extern const struct fm_inbound_handler fm_dispatch_handler;

/* True if the message must be served even while another message is being worked on. */
bool fm_dispatch_is_at_once(const struct fm_rpc_message *message);

#endif
