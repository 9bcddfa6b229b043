/* The reader's side: from a host's message to the method that serves it. */
#ifndef FM_FRONT_DISPATCH_H
#define FM_FRONT_DISPATCH_H

#include "protocol/inbound.h"

/* Handles a host's messages, in the reader's thread; copy it, and set `context` to the front. Never blocks. */
extern const struct fm_inbound_handler fm_dispatch_handler;

#endif
