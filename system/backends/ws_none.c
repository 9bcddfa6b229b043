/* For a build without wslay: browsers can be reached only by the broker. */
#include "backends/ws.h"

enum fm_code sy_ws_new(const struct sy_ws_handlers *handlers, int port, const char *path, struct sy_ws **ws,
                       struct fm_error *error) {
    (void)handlers;
    (void)path;
    *ws = NULL;
    return fm_fail(error, FM_UNAVAILABLE,
                   "a browser listens on port %d, but this build has no WebSockets: it needs wslay and libcrypto",
                   port);
}

void sy_ws_free(struct sy_ws *ws) {
    (void)ws;
}

bool sy_ws_feed(struct sy_ws *ws, const char *data, size_t len) {
    (void)ws;
    (void)data;
    (void)len;
    return false;
}

bool sy_ws_send(struct sy_ws *ws, const char *text, size_t len) {
    (void)ws;
    (void)text;
    (void)len;
    return false;
}
