/*
 * A helper on the loop: drives a client of `fm-proxy` (protocol/client) by libuv. What the client waits for, the loop
 * waits for. Loop thread; nothing blocks but gw_link_close, which waits for the helper's end.
 */
#ifndef GW_PROVIDERS_LINK_H
#define GW_PROVIDERS_LINK_H

#include "protocol/client/client.h"

#include <uv.h>

struct gw_link;

/* `options` is copied by the client. NULL: out of memory, or no descriptors are left. */
FM_MUST_USE struct gw_link *gw_link_new(uv_loop_t *loop, const struct fm_client_options *options);

/* For calls: fm_client_call, fm_client_cancel and what else works at any moment. The loop goes on from there. */
struct fm_client *gw_link_client(struct gw_link *link);

/*
 * Settles all calls, ends the helper, and frees the link once the loop has run again. Blocks for FM_CLIENT_END_MS at
 * most. NULL: nothing happens.
 */
void gw_link_close(struct gw_link *link);

#endif
