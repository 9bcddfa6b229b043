/*
 * Which requests the gateway accepts. They have one Host, which is ours, and our Origin or none. They are GET or HEAD
 * without a body, and their path has no query. Anything else is refused before any work is done for it. Pure.
 */
#ifndef GW_NET_HEAD_H
#define GW_NET_HEAD_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GW_HEAD_MAX          8192u /* bytes of a request head, with the empty line at its end */
#define GW_HEADERS_MAX       64u
#define GW_PATH_LEN_MAX      1024u
#define GW_DEV_PORT          5173 /* the port of Vite's server, whose pages may connect with --dev */
#define GW_WEBSOCKET_KEY_LEN 24u  /* 16 bytes in base64: RFC 6455, 4.1 */

struct gw_head_policy {
    uint16_t port; /* the port that the gateway listens on */
    bool dev;      /* pages of GW_DEV_PORT may connect too */
};

/* A request that the policy lets through. Points into the head. */
struct gw_request {
    const char *path;
    size_t path_len;
    bool head_only;   /* HEAD */
    bool websocket;   /* an upgrade; else a request for a file */
    const char *key;  /* Sec-WebSocket-Key, GW_WEBSOCKET_KEY_LEN bytes */
    const char *etag; /* If-None-Match; NULL: none */
    size_t etag_len;
};

/*
 * Where the head in `bytes` ends, after its empty line; 0: its end has not come yet. `from`: how many of the bytes were
 * examined before.
 */
size_t gw_head_end(const char *bytes, size_t len, size_t from);

/*
 * Reads a whole head. Returns 0 and fills `request`. Otherwise returns the HTTP status of the refusal; `reason` is a
 * sentence for the body, in static memory.
 */
FM_MUST_USE int gw_head_read(const char *bytes, size_t len, const struct gw_head_policy *policy,
                             struct gw_request *request, const char **reason);

#endif
