/* Calls, for rpc.c; other files use rpc.h. Loop thread. */
#ifndef GW_RPC_REPLY_H
#define GW_RPC_REPLY_H

#include "rpc/rpc.h"

/* Adds a call to the peer's list; the id is copied. NULL: out of memory. */
struct gw_reply *gw_reply_new(struct gw_peer *peer, const char *id, size_t id_len);

/* Removes the call from its peer's list, because the peer is gone. The answer will be dropped. */
void gw_reply_orphan(struct gw_reply *call);

/* Writes an error frame. `id` NULL: null. */
void gw_reply_write_error(struct fm_buf *text, const char *id, size_t id_len, enum gw_code code, const char *message);

#endif
