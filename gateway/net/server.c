/* The listener. It is bound only to a loopback address, whatever its caller asks for. */
#include "net/server.h"

#include "net/conn.h"

#include <string.h>

static void on_connection(uv_stream_t *listener, int status) {
    if (status == 0) {
        gw_conn_accept(listener->data);
    }
}

static int bind_to(struct gw_server *server, const char *host, int port) {
    struct sockaddr_storage address;
    int status = strcmp(host, "::1") == 0 ? uv_ip6_addr(host, port, (struct sockaddr_in6 *)&address)
                                          : uv_ip4_addr("127.0.0.1", port, (struct sockaddr_in *)&address);
    status = status ? status : uv_tcp_bind(&server->listener, (struct sockaddr *)&address, 0);
    return status ? status : uv_listen((uv_stream_t *)&server->listener, GW_BACKLOG, on_connection);
}

static uint16_t port_of(const struct gw_server *server) {
    struct sockaddr_storage address;
    int len = sizeof address;
    uv_tcp_getsockname(&server->listener, (struct sockaddr *)&address, &len);
    return ntohs(address.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&address)->sin6_port
                                               : ((struct sockaddr_in *)&address)->sin_port);
}

enum fm_code gw_server_start(struct gw_server *server, const char *host, int port, struct fm_error *error) {
    uv_tcp_init(server->loop, &server->listener);
    server->listener.data = server;
    int status = bind_to(server, host, port);
    if (status) {
        uv_close((uv_handle_t *)&server->listener, NULL);
        return fm_fail(
            error, FM_UNAVAILABLE,
            "can't listen on %s, port %d: %s. Another program may use the port: end it, or set gateway.port in "
            "config.json or PROJ_JARVIS_PORT to another",
            host, port, uv_strerror(status));
    }
    server->policy.port = port_of(server);
    return FM_OK;
}

void gw_server_set_token(struct gw_server *server, const char *token) {
    server->token = token;
    for (struct gw_conn *conn = server->conns; conn; conn = conn->next) {
        if (conn->peer.logged_in) {
            gw_conn_close(conn, GW_CLOSE_POLICY, "the token was changed: log in again");
        }
    }
}

void gw_server_stop(struct gw_server *server) {
    if (server->stopping) {
        return;
    }
    server->stopping = true;
    uv_close((uv_handle_t *)&server->listener, NULL);
    for (struct gw_conn *conn = server->conns; conn; conn = conn->next) {
        if (conn->state == GW_CONN_SOCKET) {
            gw_conn_close(conn, GW_CLOSE_GOING_AWAY, "the gateway ends");
        } else if (conn->state == GW_CONN_HEAD) {
            gw_conn_drop(conn);
        }
    }
}
