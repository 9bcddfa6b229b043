/* One connection, for the files of net/. Loop thread; nothing blocks. */
#ifndef GW_NET_CONN_H
#define GW_NET_CONN_H

#include "net/server.h"
#include "net/websocket.h"

enum gw_conn_state {
    GW_CONN_HEAD,   /* a request head is awaited */
    GW_CONN_SOCKET, /* a WebSocket */
    GW_CONN_ENDING, /* the last bytes are on their way: input is dropped */
    GW_CONN_GONE,   /* libuv has been asked to close it: nothing is sent or read any more */
};

struct gw_conn {
    struct gw_peer peer; /* the first member: gw_conn_of */
    struct gw_server *server;
    struct gw_conn *next;
    struct gw_conn **link;
    enum gw_conn_state state;
    unsigned open_handles;
    bool paused;        /* nothing is read, because too much waits to be sent */
    bool writing;       /* libuv has `sending` */
    bool shut;          /* our side of the connection has been ended */
    size_t early_bytes; /* of frames before the login */
    uv_tcp_t tcp;
    uv_timer_t timer;
    uv_write_t write;
    uv_shutdown_t shutdown;
    struct fm_buf head;
    struct fm_buf out; /* to be sent after `sending` */
    struct fm_buf sending;
    struct gw_websocket socket;
};

/* A connection waits at the listener: takes it, or refuses it if there are too many. */
void gw_conn_accept(struct gw_server *server);

/* Handles a text message of a WebSocket (login.c). */
void gw_login_message(void *context, const char *text, size_t len);

/* Sends a text frame. If too much waits to be sent, the socket is closed. */
void gw_conn_send(struct gw_peer *peer, const char *text, size_t len);

/* Closes a WebSocket. */
void gw_conn_close(struct gw_conn *conn, enum gw_close code, const char *reason);

/* Marks the socket as logged in: its deadline ends, and it may send longer messages. */
void gw_conn_logged_in(struct gw_conn *conn);

/* Closes the connection without sending anything. */
void gw_conn_drop(struct gw_conn *conn);

#endif
