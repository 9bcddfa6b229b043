/*
 * A WebSocket by wslay, after a handshake that is made here. The server's answer must prove that it has understood the
 * request (RFC 6455, 4.1); no message is taken before that.
 */
#include "backends/ws.h"
#include "base/buf.h"
#include "base/platform.h"
#include "protocol/cdp.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <wslay/wslay.h>

#define HEAD_MAX   8192u
#define OUT_MAX    (4u << 20)
#define KEY_SIZE   25 /* 16 bytes as base64, and a NUL */
#define PROOF_SIZE 29 /* 20 bytes as base64, and a NUL */

struct sy_ws {
    struct sy_ws_handlers handlers;
    wslay_event_context_ptr wslay;
    char key[KEY_SIZE];
    struct fm_buf head; /* the head of the answer, until it is whole */
    bool open;
    struct fm_buf waiting; /* messages to send once the connection is open; each ends with a NUL */
    const char *in;        /* the rest of the bytes being fed, which wslay has not read yet */
    size_t in_len;
    bool failed;
};

static ssize_t take_incoming(wslay_event_context_ptr wslay, uint8_t *data, size_t len, int flags, void *context) {
    struct sy_ws *ws = context;
    (void)flags;
    if (ws->in_len == 0) {
        wslay_event_set_error(wslay, WSLAY_ERR_WOULDBLOCK);
        return -1;
    }
    len = len < ws->in_len ? len : ws->in_len;
    memcpy(data, ws->in, len);
    ws->in += len;
    ws->in_len -= len;
    return (ssize_t)len;
}

static ssize_t pass_outgoing(wslay_event_context_ptr wslay, const uint8_t *data, size_t len, int flags, void *context) {
    struct sy_ws *ws = context;
    (void)flags;
    if (!ws->handlers.write(ws->handlers.context, (const char *)data, len)) {
        wslay_event_set_error(wslay, WSLAY_ERR_CALLBACK_FAILURE);
        return -1;
    }
    return (ssize_t)len;
}

static int mask(wslay_event_context_ptr wslay, uint8_t *data, size_t len, void *context) {
    (void)wslay;
    (void)context;
    fm_random(data, len);
    return 0;
}

static void on_socket_message(wslay_event_context_ptr wslay, const struct wslay_event_on_msg_recv_arg *message,
                              void *context) {
    struct sy_ws *ws = context;
    (void)wslay;
    if (message->opcode == WSLAY_TEXT_FRAME && !ws->failed) {
        ws->failed = !ws->handlers.message(ws->handlers.context, message->msg_length ? (const char *)message->msg : "",
                                           message->msg_length);
    }
}

void sy_ws_free(struct sy_ws *ws) {
    if (ws->wslay) {
        wslay_event_context_free(ws->wslay);
    }
    fm_buf_free(&ws->head);
    fm_buf_free(&ws->waiting);
    free(ws);
}

enum fm_code sy_ws_new(const struct sy_ws_handlers *handlers, int port, const char *path, struct sy_ws **out,
                       struct fm_error *error) {
    static const struct wslay_event_callbacks callbacks = {.recv_callback = take_incoming,
                                                           .send_callback = pass_outgoing,
                                                           .genmask_callback = mask,
                                                           .on_msg_recv_callback = on_socket_message};
    unsigned char bytes[16];
    char request[1024];
    *out = NULL;
    struct sy_ws *ws = calloc(1, sizeof *ws);
    if (!ws) {
        return fm_fail_no_memory(error);
    }
    fm_buf_init(&ws->head, HEAD_MAX);
    fm_buf_init(&ws->waiting, OUT_MAX);
    ws->handlers = *handlers;
    if (wslay_event_context_client_init(&ws->wslay, &callbacks, ws) != 0) {
        ws->wslay = NULL;
        sy_ws_free(ws);
        return fm_fail_no_memory(error);
    }
    wslay_event_config_set_max_recv_msg_length(ws->wslay, FM_CDP_MESSAGE_MAX);
    fm_random(bytes, sizeof bytes);
    EVP_EncodeBlock((unsigned char *)ws->key, bytes, sizeof bytes);
    int len = snprintf(request, sizeof request,
                       "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                       "Sec-WebSocket-Key: %s\r\nSec-WebSocket-Version: 13\r\n\r\n",
                       path, port, ws->key);
    if (len >= (int)sizeof request || !handlers->write(handlers->context, request, (size_t)len)) {
        sy_ws_free(ws);
        return fm_fail(error, FM_UNAVAILABLE, "the browser on port %d takes no request", port);
    }
    *out = ws;
    return FM_OK;
}

/* Computes the proof that a server must give for a key. */
static bool prove(const char *key, char proof[PROOF_SIZE]) {
    char text[KEY_SIZE + 40];
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    snprintf(text, sizeof text, "%s258EAFA5-E914-47DA-95CA-C5AB0DC85B11", key);
    if (EVP_Digest(text, strlen(text), digest, &len, EVP_sha1(), NULL) != 1 || len != 20) {
        return false;
    }
    EVP_EncodeBlock((unsigned char *)proof, digest, 20);
    return true;
}

/* Whether the server's answer is right. The head is whole and NUL-terminated. */
static bool accepts(const struct sy_ws *ws) {
    static const char name[] = "\r\nsec-websocket-accept:";
    char proof[PROOF_SIZE];
    const char *at = strcasestr(ws->head.data, name);
    if (strncmp(ws->head.data, "HTTP/1.1 101 ", 13) != 0 || !at || !prove(ws->key, proof)) {
        return false;
    }
    at += sizeof name - 1;
    at += strspn(at, " \t");
    return strncmp(at, proof, PROOF_SIZE - 1) == 0 && at[PROOF_SIZE - 1] == '\r';
}

static bool send_now(struct sy_ws *ws, const char *text, size_t len) {
    const struct wslay_event_msg message = {WSLAY_TEXT_FRAME, (const uint8_t *)text, len};
    return wslay_event_queue_msg(ws->wslay, &message) == 0 && wslay_event_send(ws->wslay) == 0;
}

/* Takes bytes of the head. `*used` is the number of bytes that belong to the head. False: the answer can't be used. */
static bool take_head(struct sy_ws *ws, const char *data, size_t len, size_t *used) {
    for (*used = 0; *used < len && !ws->open; ++*used) {
        fm_buf_append_char(&ws->head, data[*used]);
        if (ws->head.failed) {
            return false;
        }
        if (ws->head.len >= 4 && memcmp(ws->head.data + ws->head.len - 4, "\r\n\r\n", 4) == 0) {
            fm_buf_append_char(&ws->head, '\0');
            ws->open = !ws->head.failed && accepts(ws);
            if (!ws->open) {
                return false;
            }
        }
    }
    return true;
}

bool sy_ws_feed(struct sy_ws *ws, const char *data, size_t len) {
    if (!ws->open) {
        size_t used;
        if (!take_head(ws, data, len, &used)) {
            return false;
        }
        data += used;
        len -= used;
        size_t begin = 0;
        for (size_t at = 0; ws->open && at < ws->waiting.len; at++) {
            if (ws->waiting.data[at] == '\0') {
                if (!send_now(ws, ws->waiting.data + begin, at - begin)) {
                    return false;
                }
                begin = at + 1;
            }
        }
    }
    if (!ws->open) {
        return true;
    }
    fm_buf_free(&ws->waiting);
    ws->in = data;
    ws->in_len = len;
    bool fine = wslay_event_recv(ws->wslay) == 0;
    ws->in_len = 0;
    return fine && !ws->failed && wslay_event_send(ws->wslay) == 0 && wslay_event_get_read_enabled(ws->wslay) &&
           !wslay_event_get_close_received(ws->wslay);
}

bool sy_ws_send(struct sy_ws *ws, const char *text, size_t len) {
    if (ws->open) {
        return send_now(ws, text, len);
    }
    fm_buf_append(&ws->waiting, text, len);
    fm_buf_append_char(&ws->waiting, '\0');
    return !ws->waiting.failed;
}
