/*
 * Connections. Each has a deadline until it is logged in, and a limit of bytes that wait in either direction.
 *
 * A connection is freed only after libuv has closed both of its handles, so a function here may end a connection and
 * continue: it checks `state` after each call that may have ended it. The peer leaves rpc's list when the connection is
 * freed, never while rpc walks the list.
 */
#include "net/conn.h"

#include "net/http.h"

#include <stdlib.h>
#include <string.h>

#define OUT_MAX (2 * GW_MESSAGE_BYTES + 65536u) /* room for the longest answer, or for several smaller ones */

static bool is_stranger(const struct gw_conn *conn) {
    return !conn->peer.logged_in;
}

static void free_conn(struct gw_conn *conn) {
    gw_peer_remove(&conn->peer);
    *conn->link = conn->next;
    if (conn->next) {
        conn->next->link = conn->link;
    }
    gw_websocket_free(&conn->socket);
    fm_buf_free(&conn->head);
    fm_buf_free(&conn->out);
    fm_buf_free(&conn->sending);
    free(conn);
}

static void on_closed(uv_handle_t *handle) {
    struct gw_conn *conn = handle->data;
    if (--conn->open_handles == 0) {
        free_conn(conn);
    }
}

void gw_conn_drop(struct gw_conn *conn) {
    if (conn->state == GW_CONN_GONE) {
        return;
    }
    conn->state = GW_CONN_GONE;
    conn->server->strangers -= is_stranger(conn);
    conn->server->count--;
    uv_close((uv_handle_t *)&conn->tcp, on_closed);
    uv_close((uv_handle_t *)&conn->timer, on_closed);
}

static void on_late(uv_timer_t *timer) {
    struct gw_conn *conn = timer->data;
    if (conn->state == GW_CONN_SOCKET) {
        gw_conn_close(conn, GW_CLOSE_POLICY, "log in within 5 s");
    } else {
        gw_conn_drop(conn);
    }
}

static void set_deadline(struct gw_conn *conn, uint64_t ms) {
    uv_timer_start(&conn->timer, on_late, ms, 0);
}

/* ---- writing ---- */

static void flush(struct gw_conn *conn);
static void resume(struct gw_conn *conn);

static void on_shut(uv_shutdown_t *request, int status) {
    (void)request;
    (void)status;
}

static void on_written(uv_write_t *request, int status) {
    struct gw_conn *conn = request->data;
    conn->writing = false;
    fm_buf_free(&conn->sending);
    if (status < 0) {
        gw_conn_drop(conn);
        return;
    }
    flush(conn);
}

/* Gives libuv what the system does not take at once. */
static void hand_over(struct gw_conn *conn) {
    conn->sending = conn->out;
    fm_buf_init(&conn->out, OUT_MAX);
    uv_buf_t rest = uv_buf_init(conn->sending.data, (unsigned)conn->sending.len);
    conn->write.data = conn;
    conn->writing = uv_write(&conn->write, (uv_stream_t *)&conn->tcp, &rest, 1, on_written) == 0;
    if (!conn->writing) {
        gw_conn_drop(conn);
    }
}

/* Sends what waits. If the connection is ending and nothing is left to send, ends our side of it. */
static void flush(struct gw_conn *conn) {
    if (conn->writing || conn->state == GW_CONN_GONE) {
        return;
    }
    if (conn->out.len) {
        uv_buf_t all = uv_buf_init(conn->out.data, (unsigned)conn->out.len);
        int sent = uv_try_write((uv_stream_t *)&conn->tcp, &all, 1);
        if (sent < 0 && sent != UV_EAGAIN) {
            gw_conn_drop(conn);
            return;
        }
        fm_buf_drop_front(&conn->out, sent > 0 ? (size_t)sent : 0);
        if (conn->out.len) {
            hand_over(conn);
            return;
        }
        fm_buf_free(&conn->out);
    }
    if (conn->state == GW_CONN_ENDING && !conn->shut) {
        conn->shut = true;
        uv_shutdown(&conn->shutdown, (uv_stream_t *)&conn->tcp, on_shut);
    }
    resume(conn);
}

/*
 * Ends the connection once what waits has been sent. `ms`: how long the sending and the other side's end may take
 * together.
 */
static void end_connection(struct gw_conn *conn, uint64_t ms) {
    if (conn->state == GW_CONN_GONE) {
        return;
    }
    conn->state = GW_CONN_ENDING;
    set_deadline(conn, ms);
    flush(conn);
}

static size_t waiting(const struct gw_conn *conn) {
    return conn->out.len + conn->sending.len;
}

/* Takes a frame, or a part of one, from gw_websocket. */
static bool queue_frame(void *context, const uint8_t *data, size_t len) {
    struct gw_conn *conn = context;
    fm_buf_append(&conn->out, data, len);
    return !conn->out.failed;
}

void gw_conn_send(struct gw_peer *peer, const char *text, size_t len) {
    struct gw_conn *conn = (struct gw_conn *)peer;
    if (conn->state != GW_CONN_SOCKET) {
        return;
    }
    if (waiting(conn) && waiting(conn) + len > GW_MESSAGE_BYTES) {
        gw_conn_close(conn, GW_CLOSE_LATER, "too much waits to be read: connect again");
    } else if (!gw_websocket_send(&conn->socket, text, len)) {
        gw_conn_drop(conn);
    } else {
        flush(conn);
    }
}

void gw_conn_close(struct gw_conn *conn, enum gw_close code, const char *reason) {
    if (conn->state == GW_CONN_SOCKET) {
        gw_websocket_close(&conn->socket, code, reason);
        end_connection(conn, GW_LINGER_MS);
    }
}

void gw_conn_logged_in(struct gw_conn *conn) {
    conn->server->strangers -= is_stranger(conn);
    conn->peer.logged_in = true;
    uv_timer_stop(&conn->timer);
    gw_websocket_limit(&conn->socket, GW_MESSAGE_BYTES);
}

/* ---- reading ---- */

static void feed(struct gw_conn *conn, const char *data, size_t len) {
    if (!gw_websocket_feed(&conn->socket, (const uint8_t *)data, len) && conn->state == GW_CONN_SOCKET) {
        end_connection(conn, GW_LINGER_MS);
    } else {
        flush(conn);
    }
}

/*
 * A whole request head has come. It is answered, or the connection becomes a WebSocket, which gets the bytes after the
 * head.
 */
static void take_head(struct gw_conn *conn, size_t end_of_head) {
    struct gw_server *server = conn->server;
    struct gw_request request;
    struct fm_buf head = conn->head;
    const char *reason = NULL;
    fm_buf_init(&conn->head, GW_HEAD_MAX);
    int status = gw_head_read(head.data, end_of_head, &server->policy, &request, &reason);
    bool chat = !status && request.websocket &&
                (request.path_len == 1 || (request.path_len == 3 && !memcmp(request.path, "/ws", 3)));
    if (status) {
        gw_http_refuse(&conn->out, status, reason);
    } else if (request.websocket && !chat) {
        gw_http_refuse(&conn->out, 404, "The WebSocket is at / and at /ws.");
    } else if (!chat) {
        gw_http_answer(&conn->out, &request, server->files, gw_rpc_uptime(server->rpc));
    } else {
        conn->socket.context = conn;
        conn->socket.message = gw_login_message;
        conn->socket.write = queue_frame;
        chat = gw_websocket_init(&conn->socket, GW_STRANGER_MAX);
    }
    if (!chat) {
        end_connection(conn, GW_ANSWER_MS);
    } else {
        gw_http_upgrade(&conn->out, request.key);
        conn->state = GW_CONN_SOCKET;
        set_deadline(conn, GW_LOGIN_MS);
        feed(conn, head.data + end_of_head, head.len - end_of_head);
    }
    fm_buf_free(&head);
}

static void take_head_bytes(struct gw_conn *conn, const char *data, size_t len) {
    size_t before = conn->head.len;
    size_t room = GW_HEAD_MAX - before;
    fm_buf_append(&conn->head, data, len < room ? len : room);
    size_t head = conn->head.failed ? 0 : gw_head_end(conn->head.data, conn->head.len, before);
    if (!head && conn->head.len < GW_HEAD_MAX && !conn->head.failed) {
        return;
    }
    if (!head) {
        gw_http_refuse(&conn->out, 431, "The request head is longer than 8 KiB.");
        end_connection(conn, GW_ANSWER_MS);
        return;
    }
    take_head(conn, head);
    if (len > room && conn->state == GW_CONN_SOCKET) {
        feed(conn, data + room, len - room);
    }
}

static void on_room(uv_handle_t *handle, size_t wanted, uv_buf_t *buf) {
    struct gw_conn *conn = handle->data;
    (void)wanted;
    *buf = uv_buf_init(conn->server->chunk, sizeof conn->server->chunk);
}

static void on_read(uv_stream_t *stream, ssize_t len, const uv_buf_t *buf) {
    struct gw_conn *conn = stream->data;
    if (len < 0) {
        gw_conn_drop(conn);
    } else if (len > 0 && conn->state == GW_CONN_HEAD) {
        take_head_bytes(conn, buf->base, (size_t)len);
    } else if (len > 0 && conn->state == GW_CONN_SOCKET) {
        feed(conn, buf->base, (size_t)len);
    }
    if (conn->state == GW_CONN_SOCKET && waiting(conn) > GW_PAUSE_BYTES && !conn->paused) {
        conn->paused = true;
        uv_read_stop(stream);
    }
}

/* Continues to read, once the other side has taken enough. */
static void resume(struct gw_conn *conn) {
    if (conn->paused && (conn->state == GW_CONN_ENDING || waiting(conn) <= GW_PAUSE_BYTES / 4)) {
        conn->paused = false;
        uv_read_start((uv_stream_t *)&conn->tcp, on_room, on_read);
    }
}

/* ---- their beginning ---- */

static void refuse_connection(struct gw_conn *conn) {
    uv_buf_t text = uv_buf_init((char *)gw_http_too_many, (unsigned)strlen(gw_http_too_many));
    uv_try_write((uv_stream_t *)&conn->tcp, &text, 1);
    gw_conn_drop(conn);
}

void gw_conn_accept(struct gw_server *server) {
    struct gw_conn *conn = calloc(1, sizeof *conn);
    if (!conn) {
        return; /* the connection waits in the backlog until another connection comes */
    }
    conn->server = server;
    conn->peer.send = gw_conn_send;
    conn->tcp.data = conn->timer.data = conn;
    conn->open_handles = 2;
    fm_buf_init(&conn->head, GW_HEAD_MAX);
    fm_buf_init(&conn->out, OUT_MAX);
    uv_tcp_init(server->loop, &conn->tcp);
    uv_timer_init(server->loop, &conn->timer);
    gw_peer_add(server->rpc, &conn->peer);
    conn->next = server->conns;
    conn->link = &server->conns;
    if (server->conns) {
        server->conns->link = &conn->next;
    }
    server->conns = conn;
    server->count++;
    server->strangers++;
    if (uv_accept((uv_stream_t *)&server->listener, (uv_stream_t *)&conn->tcp) != 0) {
        gw_conn_drop(conn);
    } else if (server->strangers > GW_STRANGERS_MAX || server->count > GW_SOCKETS_MAX || server->stopping) {
        refuse_connection(conn);
    } else {
        uv_tcp_nodelay(&conn->tcp, 1);
        set_deadline(conn, GW_HEAD_MS);
        if (uv_read_start((uv_stream_t *)&conn->tcp, on_room, on_read) != 0) {
            gw_conn_drop(conn);
        }
    }
}
