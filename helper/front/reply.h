/* Replies that all parts of the front write in the same way. */
#ifndef FM_FRONT_REPLY_H
#define FM_FRONT_REPLY_H

#include "base/buf.h"
#include "base/error.h"
#include "protocol/rpc.h"

/* Makes `buf` the frame of {"ok":false,"error":...}. Any thread. */
void fm_reply_write_failure(struct fm_buf *buf, const struct fm_rpc_id *id, const struct fm_error *error);

#endif
