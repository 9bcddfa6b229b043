/* Answers to requests, as bytes. Each answer ends its connection, except the answer to an upgrade. Pure. */
#ifndef GW_NET_HTTP_H
#define GW_NET_HTTP_H

#include "base/buf.h"
#include "net/files.h"
#include "net/head.h"

/* Writes the answer to a request for a file or for /health, which says how many seconds the gateway has been up. */
void gw_http_answer(struct fm_buf *out, const struct gw_request *request, const struct gw_files *files, int64_t uptime);

/* Writes the answer to a request that gw_head_read refused. */
void gw_http_refuse(struct fm_buf *out, int status, const char *reason);

/* Writes the answer that makes a connection a WebSocket (RFC 6455, 4.2.2). */
void gw_http_upgrade(struct fm_buf *out, const char *key);

/* The answer to a connection above the limit, NUL-terminated. */
extern const char gw_http_too_many[];

#endif
