/*
 * The gateway's server. Its sockets come from this machine; each one carries a request for a file, or is a WebSocket
 * with frames. The server runs on the loop that it is given and never blocks. Call its functions only on the loop's
 * thread.
 */
#ifndef GW_NET_SERVER_H
#define GW_NET_SERVER_H

#include "base/error.h"
#include "net/auth.h"
#include "net/files.h"
#include "net/head.h"
#include "rpc/rpc.h"

#include <uv.h>

#define GW_STRANGERS_MAX 32u        /* sockets that have not logged in */
#define GW_SOCKETS_MAX   2048u      /* all sockets together */
#define GW_HEAD_MS       5000       /* until the request head is there */
#define GW_LOGIN_MS      5000       /* until the auth frame is there */
#define GW_ANSWER_MS     10000      /* until the client has read an HTTP answer */
#define GW_LINGER_MS     2000       /* how long the other side has to close after a close frame or an answer */
#define GW_STRANGER_MAX  4096u      /* bytes of frames before the login, all together */
#define GW_MESSAGE_BYTES (8u << 20) /* bytes of a frame after the login, and of what waits to be sent */
#define GW_PAUSE_BYTES   (1u << 20) /* if more waits to be sent, nothing is read from that socket */
#define GW_BACKLOG       128

struct gw_conn;

struct gw_server {
    uv_loop_t *loop;
    uv_tcp_t listener;
    struct gw_head_policy policy;
    struct gw_rpc *rpc;
    struct gw_auth *auth;
    const char *token; /* handed out for a one-time code */
    const struct gw_files *files;
    /* Called for each attempt to log in, for the audit; may be NULL. `how` is "token" or "code". */
    void (*on_login)(void *context, enum gw_login result, const char *how);
    void *on_login_context;
    struct gw_conn *conns;
    unsigned count;
    unsigned strangers;
    bool stopping;
    char chunk[65536]; /* bytes that a socket has read; they are used before the next socket reads */
};

/*
 * Listens on `host` ("127.0.0.1", "localhost" or "::1") and `port` (0: any free port; `policy.port` has it afterwards).
 * The caller has set all fields up to `on_login_context` except `listener` and `policy.port`, and the rest is 0. What
 * they point to must outlive the server. FM_UNAVAILABLE says what is wrong.
 */
FM_MUST_USE enum fm_code gw_server_start(struct gw_server *server, const char *host, int port, struct fm_error *error);

/* Call it when `server->auth` has a new token. Closes all sockets that are logged in, with GW_CLOSE_POLICY. */
void gw_server_set_token(struct gw_server *server, const char *token);

/*
 * Stops listening, and closes all sockets with GW_CLOSE_GOING_AWAY; those that don't answer are gone after
 * GW_LINGER_MS. After that, the server has no handle in the loop.
 */
void gw_server_stop(struct gw_server *server);

#endif
