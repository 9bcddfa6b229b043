/* Dispatches a host's message to the method that serves it, and sends the answer. */
#ifndef FM_FRONT_DISPATCH_H
#define FM_FRONT_DISPATCH_H

#include "front/state.h"
#include "protocol/inbound.h"

/* The state of each dispatching thread. */
struct fm_dispatcher {
    struct fm_front *front;
    struct fm_buf reply; /* the reply that is being built */
};

/* Allocates nothing. The free function releases what the replies took. */
void fm_dispatcher_init(struct fm_dispatcher *dispatcher, struct fm_front *front);
void fm_dispatcher_free(struct fm_dispatcher *dispatcher);

/*
 * The handler of a host's messages. Copy this struct, and set `context` to the thread's struct fm_dispatcher. Two
 * threads may dispatch at the same time, but one of them only messages for which fm_dispatch_is_at_once is true. Blocks
 * for no longer than it takes to build a frame.
 */
extern const struct fm_inbound_handler fm_dispatch_handler;

/* True if the message must be served even while another message is being worked on. */
bool fm_dispatch_is_at_once(const struct fm_rpc_message *message);

#endif
