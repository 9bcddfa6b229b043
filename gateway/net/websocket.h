/*
 * The frames of one WebSocket: bytes in, messages and bytes out. Pure except for the callbacks; one thread at a time.
 */
#ifndef GW_NET_WEBSOCKET_H
#define GW_NET_WEBSOCKET_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GW_FRAGMENTS_MAX 4096u /* frames of a message: wslay keeps a block for each */

/* Close codes: RFC 6455, 7.4.1, and its registry. */
enum gw_close {
    GW_CLOSE_NORMAL = 1000,
    GW_CLOSE_GOING_AWAY = 1001,
    GW_CLOSE_PROTOCOL = 1002,
    GW_CLOSE_NOT_TEXT = 1003,
    GW_CLOSE_POLICY = 1008,
    GW_CLOSE_TOO_BIG = 1009,
    GW_CLOSE_LATER = 1013,
};

struct wslay_event_context;

struct gw_websocket {
    struct wslay_event_context *wslay;
    const uint8_t *in; /* the bytes of this call that wslay has not read */
    size_t in_len;
    unsigned fragments;
    bool closing; /* a close frame is on its way: nothing is sent after it */
    void *context;
    /* A text message. `text` is valid during the call. */
    void (*message)(void *context, const char *text, size_t len);
    /* Takes bytes for the other side, to keep or send them. False: there is no room. */
    bool (*write)(void *context, const uint8_t *data, size_t len);
};

/* Initialises the socket. The caller has set `context`, `message` and `write`. False: out of memory. */
FM_MUST_USE bool gw_websocket_init(struct gw_websocket *socket, size_t message_max);
void gw_websocket_free(struct gw_websocket *socket);

/* Sets the length limit of messages from now on. */
void gw_websocket_limit(struct gw_websocket *socket, size_t message_max);

/*
 * Takes bytes that have arrived. Calls `message` for each complete message, and `write` for the answers that RFC 6455
 * requires. False: the connection is over, the close frame is written, and later input must be dropped.
 */
FM_MUST_USE bool gw_websocket_feed(struct gw_websocket *socket, const uint8_t *data, size_t len);

/* Writes a text message. False: there is no room, or no memory. Does nothing after a close frame. */
FM_MUST_USE bool gw_websocket_send(struct gw_websocket *socket, const char *text, size_t len);

/* Writes a close frame, unless there was one. The reason has 123 bytes at most. */
void gw_websocket_close(struct gw_websocket *socket, enum gw_close code, const char *reason);

#endif
