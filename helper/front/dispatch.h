/* From a host's message to the method that serves it, and its answer. */
#ifndef FM_FRONT_DISPATCH_H
#define FM_FRONT_DISPATCH_H

#include "front/state.h"
#include "protocol/inbound.h"

/* What a thread that dispatches has. */
struct fm_dispatcher {
    struct fm_front *front;
    struct fm_buf reply; /* in the making */
};

/* Allocates nothing; free gives back what the replies took. */
void fm_dispatcher_init(struct fm_dispatcher *dispatcher, struct fm_front *front);
void fm_dispatcher_free(struct fm_dispatcher *dispatcher);

/*
 * Handles a host's messages; copy it, and set `context` to the thread's struct fm_dispatcher. Two threads may dispatch
 * at once, one of them only what is fm_dispatch_is_at_once. Blocks for no longer than a frame takes to build.
 */
extern const struct fm_inbound_handler fm_dispatch_handler;

/* The message is to be served even while another one is worked on. */
bool fm_dispatch_is_at_once(const struct fm_rpc_message *message);

#endif
