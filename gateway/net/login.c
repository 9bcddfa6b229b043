/*
 * Handles the messages of a WebSocket. Before the login, only health.check and a valid auth frame are accepted;
 * anything else closes the socket. After the login, a wrong frame is answered with its error, and the socket stays
 * open.
 */
#include "net/conn.h"

#include "base/clock.h"
#include "protocol/json_writer.h"

#include <string.h>

/* Writes {"type":"auth","ok":true}. A client that came with a code also gets the token, for its next login. */
static void welcome(struct gw_conn *conn, bool with_token) {
    struct fm_buf text;
    fm_buf_init(&text, GW_STRANGER_MAX);
    struct fm_json_writer w = fm_json_writer_on(&text);
    fm_json_object_begin(&w);
    fm_json_key_str(&w, "type", "auth");
    fm_json_key_bool(&w, "ok", true);
    if (with_token) {
        fm_json_key_str(&w, "token", conn->server->token);
    }
    fm_json_object_end(&w);
    if (text.failed) {
        gw_conn_drop(conn);
    } else {
        gw_conn_logged_in(conn);
        gw_conn_send(&conn->peer, text.data, text.len);
    }
    fm_buf_free(&text);
}

static void log_in(struct gw_conn *conn, const struct gw_frame *frame) {
    struct gw_server *server = conn->server;
    bool by_code = frame->one_time_code != NULL;
    enum gw_login result =
        by_code ? gw_auth_check_code(server->auth, frame->one_time_code, frame->one_time_code_len, fm_now_ms())
                : gw_auth_check(server->auth, frame->token, frame->token_len, fm_now_ms());
    if (server->on_login) {
        server->on_login(server->on_login_context, result, by_code ? "code" : "token");
    }
    switch (result) {
    case GW_LOGIN_OK: welcome(conn, by_code); return;
    case GW_LOGIN_WRONG:
        gw_conn_close(conn, GW_CLOSE_POLICY, by_code ? "the code is wrong, was used or is over" : "the token is wrong");
        return;
    case GW_LOGIN_LIMITED: break;
    }
    gw_conn_close(conn, GW_CLOSE_POLICY, "too many failures: try again in a minute");
}

/* Handles a frame of a socket that is not logged in. */
static void take_early(struct gw_conn *conn, const struct gw_frame *frame, enum gw_code code) {
    enum gw_method method = GW_METHOD_COUNT;
    if (code == GW_OK && frame->kind == GW_FRAME_AUTH) {
        log_in(conn, frame);
        return;
    }
    if (code == GW_OK) {
        method = gw_method_find(frame->method, frame->method_len);
    }
    if (method != GW_METHOD_COUNT && gw_rows[method].before_auth) {
        gw_rpc_request(&conn->peer, frame);
    } else {
        gw_conn_close(conn, GW_CLOSE_POLICY, "the first message must be {\"type\":\"auth\",\"token\":...}");
    }
}

void gw_login_message(void *context, const char *text, size_t len) {
    struct gw_conn *conn = context;
    struct gw_frame frame;
    const char *fault;
    if (conn->state != GW_CONN_SOCKET) { /* an earlier message in the same bytes has ended the socket */
        return;
    }
    if (!conn->peer.logged_in && (conn->early_bytes += len) > GW_STRANGER_MAX) {
        gw_conn_close(conn, GW_CLOSE_TOO_BIG, "more than 4 KiB before the login");
        return;
    }
    enum gw_code code = gw_frame_read(text, len, &frame, &fault);
    if (!conn->peer.logged_in) {
        take_early(conn, &frame, code);
    } else if (code != GW_OK) {
        gw_rpc_refuse(&conn->peer, frame.id, frame.id_len, code, fault);
    } else if (frame.kind == GW_FRAME_AUTH) {
        gw_rpc_refuse(&conn->peer, NULL, 0, GW_INVALID, "this connection is logged in already");
    } else {
        gw_rpc_request(&conn->peer, &frame);
    }
    gw_frame_free(&frame);
}
