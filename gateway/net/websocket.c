/*
 * WebSocket frames by wslay. Only text messages are taken. A message is never longer than the limit, in however many
 * frames it comes.
 */
#include "net/websocket.h"

#include <string.h>
#include <wslay/wslay.h>

static ssize_t take_incoming(wslay_event_context_ptr wslay, uint8_t *data, size_t len, int flags, void *context) {
    struct gw_websocket *socket = context;
    (void)flags;
    if (socket->in_len == 0) {
        wslay_event_set_error(wslay, WSLAY_ERR_WOULDBLOCK);
        return -1;
    }
    len = len < socket->in_len ? len : socket->in_len;
    memcpy(data, socket->in, len);
    socket->in += len;
    socket->in_len -= len;
    return (ssize_t)len;
}

static ssize_t pass_outgoing(wslay_event_context_ptr wslay, const uint8_t *data, size_t len, int flags, void *context) {
    struct gw_websocket *socket = context;
    (void)flags;
    if (!socket->write(socket->context, data, len)) {
        wslay_event_set_error(wslay, WSLAY_ERR_CALLBACK_FAILURE);
        return -1;
    }
    return (ssize_t)len;
}

static void on_frame(wslay_event_context_ptr wslay, const struct wslay_event_on_frame_recv_start_arg *frame,
                     void *context) {
    struct gw_websocket *socket = context;
    (void)wslay;
    if (wslay_is_ctrl_frame(frame->opcode)) {
        return;
    }
    socket->fragments = frame->opcode == WSLAY_CONTINUATION_FRAME ? socket->fragments + 1 : 1;
    if (socket->fragments > GW_FRAGMENTS_MAX) {
        gw_websocket_close(socket, GW_CLOSE_TOO_BIG, "the message is cut into too many frames");
    }
}

static void on_socket_message(wslay_event_context_ptr wslay, const struct wslay_event_on_msg_recv_arg *message,
                              void *context) {
    struct gw_websocket *socket = context;
    (void)wslay;
    if (socket->closing) {
        return;
    }
    if (message->opcode == WSLAY_TEXT_FRAME) {
        socket->message(socket->context, message->msg_length ? (const char *)message->msg : "", message->msg_length);
    } else if (message->opcode == WSLAY_BINARY_FRAME) {
        gw_websocket_close(socket, GW_CLOSE_NOT_TEXT, "a frame is a text message");
    }
}

bool gw_websocket_init(struct gw_websocket *socket, size_t message_max) {
    static const struct wslay_event_callbacks callbacks = {.recv_callback = take_incoming,
                                                           .send_callback = pass_outgoing,
                                                           .on_frame_recv_start_callback = on_frame,
                                                           .on_msg_recv_callback = on_socket_message};
    if (wslay_event_context_server_init(&socket->wslay, &callbacks, socket) != 0) {
        socket->wslay = NULL;
        return false;
    }
    gw_websocket_limit(socket, message_max);
    return true;
}

void gw_websocket_free(struct gw_websocket *socket) {
    if (socket->wslay) {
        wslay_event_context_free(socket->wslay);
    }
    socket->wslay = NULL;
}

void gw_websocket_limit(struct gw_websocket *socket, size_t message_max) {
    wslay_event_config_set_max_recv_msg_length(socket->wslay, message_max);
}

bool gw_websocket_feed(struct gw_websocket *socket, const uint8_t *data, size_t len) {
    socket->in = data;
    socket->in_len = len;
    int fault = socket->closing ? 0 : wslay_event_recv(socket->wslay);
    socket->in_len = 0;
    if (fault && !socket->closing) { /* a fault in a frame's head: wslay may send nothing, or a close without a code */
        static const uint8_t frame[] = {0x80 | WSLAY_CONNECTION_CLOSE, 2, GW_CLOSE_PROTOCOL >> 8,
                                        GW_CLOSE_PROTOCOL & 255};
        socket->closing = true;
        return socket->write(socket->context, frame, sizeof frame) && false;
    }
    return fault == 0 && wslay_event_send(socket->wslay) == 0 && !socket->closing &&
           wslay_event_get_read_enabled(socket->wslay) && wslay_event_get_write_enabled(socket->wslay);
}

bool gw_websocket_send(struct gw_websocket *socket, const char *text, size_t len) {
    struct wslay_event_msg message = {WSLAY_TEXT_FRAME, (const uint8_t *)text, len};
    if (socket->closing || !wslay_event_get_write_enabled(socket->wslay)) {
        return true;
    }
    return wslay_event_queue_msg(socket->wslay, &message) == 0 && wslay_event_send(socket->wslay) == 0;
}

void gw_websocket_close(struct gw_websocket *socket, enum gw_close code, const char *reason) {
    if (socket->closing) {
        return;
    }
    socket->closing = true;
    if (wslay_event_queue_close(socket->wslay, (uint16_t)code, (const uint8_t *)reason, strlen(reason)) == 0 &&
        wslay_event_send(socket->wslay) == 0) {
        wslay_event_shutdown_read(socket->wslay);
    }
}
