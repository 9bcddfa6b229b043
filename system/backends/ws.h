/*
 * The client's end of a WebSocket (RFC 6455) to a browser of this machine. It takes bytes, and gives messages and
 * bytes. Pure but for its callbacks and the key's random bytes; one thread.
 */
#ifndef SY_WS_H
#define SY_WS_H

#include "base/error.h"

#include <stddef.h>

struct sy_ws;

struct sy_ws_handlers {
    void *context;
    bool (*write)(void *context, const char *data, size_t len);
    bool (*message)(void *context, const char *text, size_t len); /* returns false to end the connection */
};

/*
 * Writes the request for `path` at 127.0.0.1:`port`. Messages that are sent before the server has answered are kept
 * until then. FM_UNAVAILABLE: nothing could be written, or the build lacks the library. On failure there is nothing to
 * free.
 */
FM_MUST_USE enum fm_code sy_ws_new(const struct sy_ws_handlers *handlers, int port, const char *path, struct sy_ws **ws,
                                   struct fm_error *error);
void sy_ws_free(struct sy_ws *ws);

/* False: the connection is over. */
FM_MUST_USE bool sy_ws_feed(struct sy_ws *ws, const char *data, size_t len);
FM_MUST_USE bool sy_ws_send(struct sy_ws *ws, const char *text, size_t len);

#endif
