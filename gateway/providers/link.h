/*
 * A helper on the loop: drives a client of `fm-proxy` (protocol/client) by libuv. The loop waits for what the client
 * waits for. While calls are open, the helper is asked for a sign of life; a helper that hangs is ended, and its calls
 * settle with FM_UNAVAILABLE. What the helper writes to its stderr goes to our log. Loop thread. Only gw_link_close
 * blocks: it waits for the helper's end.
 */
#ifndef GW_PROVIDERS_LINK_H
#define GW_PROVIDERS_LINK_H

#include "protocol/client/client.h"

#include <uv.h>

#define GW_LINK_PULSE_MS   5000 /* ms between two requests for a sign of life */
#define GW_LINK_PULSES_MAX 4    /* after this many periods without an answer, the helper counts as hung */

struct gw_link;

/*
 * Makes a link. The client copies `options`, except the callbacks, which the link sets. `pulse_ms` 0: GW_LINK_PULSE_MS.
 * NULL: out of memory.
 */
FM_MUST_USE struct gw_link *gw_link_new(uv_loop_t *loop, const struct fm_client_options *options, int64_t pulse_ms);

/*
 * The client, for fm_client_call, fm_client_cancel and other functions that work at any moment. The loop does the rest.
 */
struct fm_client *gw_link_client(struct gw_link *link);

/*
 * Begins the helper's end without waiting for it, so that several helpers can end at the same time before each link is
 * closed. Calls settle as with fm_client_stop. NULL: nothing happens.
 */
void gw_link_stop(struct gw_link *link);

/*
 * Settles all calls, ends the helper, and frees the link once the loop has run again. Blocks for FM_CLIENT_END_MS at
 * most. NULL: nothing happens.
 */
void gw_link_close(struct gw_link *link);

#endif
