/*
 * A proxy is a listener and its connections. A connection is two sockets and the bytes between them. A side is read
 * only while nothing waits to be written to the other side, so a connection needs memory for at most two pieces. A
 * connection is freed when its last handle has closed, and the proxy after its last connection.
 */
#include "tools/proxy.h"
#include "tools/address.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define PIECE           16384u
#define CONNECTIONS_MAX 256u
#define HOST_MAX        255u
#define BACKLOG         64
#define PORTS_MAX       20u /* a call has no more actions */
#define NOT_HERE        "not of this machine, whose pages are all that the call reaches"
#define ATTEMPT_MS      2000 /* for an address that does not answer, where the host has another one */

enum reply { REPLY_DONE = 0, REPLY_FAILURE = 1, REPLY_NOT_ALLOWED = 2, REPLY_UNREACHABLE = 4, REPLY_NO_COMMAND = 7 };

enum stage { STAGE_GREETING, STAGE_REQUEST, STAGE_RESOLVING, STAGE_OPEN, STAGE_CLOSING };

struct gw_proxy {
    uv_loop_t *loop;
    uv_tcp_t listener;
    char *exempt;
    unsigned ports[PORTS_MAX]; /* of this machine's pages */
    size_t port_count;
    void (*refused)(void *context, const char *host, const char *reason);
    void (*closed)(void *context);
    void *context;
    struct connection *connections;
    size_t count;
    int port;
    bool closing;
    bool listener_closed;
};

/* One direction of a connection. */
struct side {
    uv_tcp_t socket;
    uv_write_t write; /* the bytes that the other side sent */
    uv_shutdown_t shutdown;
    char piece[PIECE];
    bool initialised;
};

struct connection {
    struct gw_proxy *proxy;
    struct connection *next;
    struct connection *previous;
    struct side browser;
    struct side server;
    uv_getaddrinfo_t lookup;
    uv_connect_t connect;
    uv_timer_t attempt; /* ends the try to reach an address */
    struct addrinfo *addresses;
    struct addrinfo *candidate;
    char host[HOST_MAX + 1];
    unsigned port;
    unsigned char request[300];
    size_t have;
    enum stage stage;
    bool tried;    /* an address may be reached, so the host is not refused */
    bool six;      /* ::1 is being tried for a name that leads to this machine */
    unsigned open; /* handles and look-ups that will call back */
    unsigned ends; /* sides that have sent everything */
};

static void close_connection(struct connection *connection);
static void try_next(struct connection *connection);
static void resolve(struct connection *connection, const char *host);

/* ---- ends ---- */

static void proxy_may_go(struct gw_proxy *proxy) {
    if (proxy->closing && proxy->listener_closed && !proxy->connections) {
        void (*closed)(void *context) = proxy->closed;
        void *context = proxy->context;
        free(proxy->exempt);
        free(proxy);
        closed(context);
    }
}

static void connection_may_go(struct connection *connection) {
    struct gw_proxy *proxy = connection->proxy;
    if (connection->open > 0) {
        return;
    }
    if (connection->previous) {
        connection->previous->next = connection->next;
    } else {
        proxy->connections = connection->next;
    }
    if (connection->next) {
        connection->next->previous = connection->previous;
    }
    proxy->count--;
    uv_freeaddrinfo(connection->addresses);
    free(connection);
    proxy_may_go(proxy);
}

static void on_closed(uv_handle_t *handle) {
    struct connection *connection = handle->data;
    connection->open--;
    connection_may_go(connection);
}

static void close_side(struct side *side) {
    if (side->initialised && !uv_is_closing((uv_handle_t *)&side->socket)) {
        uv_close((uv_handle_t *)&side->socket, on_closed);
    }
}

static void close_connection(struct connection *connection) {
    if (connection->stage == STAGE_RESOLVING) {
        uv_cancel((uv_req_t *)&connection->lookup);
    }
    connection->stage = STAGE_CLOSING;
    close_side(&connection->browser);
    close_side(&connection->server);
    if (!uv_is_closing((uv_handle_t *)&connection->attempt)) {
        uv_close((uv_handle_t *)&connection->attempt, on_closed);
    }
}

static void init_side(struct connection *connection, struct side *side) {
    uv_tcp_init(connection->proxy->loop, &side->socket);
    side->socket.data = connection;
    side->initialised = true;
    connection->open++;
}

/* ---- bytes in both directions ---- */

static void allocate_piece(uv_handle_t *handle, size_t wanted, uv_buf_t *buf) {
    struct connection *connection = handle->data;
    bool browser = handle == (uv_handle_t *)&connection->browser.socket;
    struct side *side = browser ? &connection->browser : &connection->server;
    (void)wanted;
    *buf = uv_buf_init(side->piece, PIECE);
}

static void on_bytes(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf);

static void on_passed(uv_write_t *write, int status) {
    uv_stream_t *from = write->data;
    struct connection *connection = from->data;
    if (status < 0) {
        close_connection(connection);
    } else if (connection->stage == STAGE_OPEN) {
        uv_read_start(from, allocate_piece, on_bytes);
    }
}

static void on_shut(uv_shutdown_t *shutdown, int status) {
    struct connection *connection = shutdown->handle->data;
    if (status < 0 || ++connection->ends == 2) {
        close_connection(connection);
    }
}

static void on_bytes(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf) {
    struct connection *connection = stream->data;
    bool browser = stream == (uv_stream_t *)&connection->browser.socket;
    struct side *from = browser ? &connection->browser : &connection->server;
    struct side *to = browser ? &connection->server : &connection->browser;
    if (got == 0 || connection->stage != STAGE_OPEN) {
        return;
    }
    uv_read_stop(stream);
    if (got > 0) {
        uv_buf_t piece = uv_buf_init(buf->base, (unsigned)got);
        from->write.data = stream;
        if (uv_write(&from->write, (uv_stream_t *)&to->socket, &piece, 1, on_passed) == 0) {
            return;
        }
    } else if (got == UV_EOF && uv_shutdown(&from->shutdown, (uv_stream_t *)&to->socket, on_shut) == 0) {
        return;
    }
    close_connection(connection);
}

/* ---- the answer to a request ---- */

static void on_replied(uv_write_t *write, int status) {
    struct connection *connection = write->data;
    if (status < 0 || connection->request[1] != REPLY_DONE) {
        close_connection(connection);
    } else if (connection->stage == STAGE_OPEN) {
        uv_read_start((uv_stream_t *)&connection->browser.socket, allocate_piece, on_bytes);
        uv_read_start((uv_stream_t *)&connection->server.socket, allocate_piece, on_bytes);
    }
}

static void reply(struct connection *connection, enum reply code) {
    static const unsigned char form[] = {5, 0, 0, 1, 0, 0, 0, 0, 0, 0}; /* no bound address is reported */
    memcpy(connection->request, form, sizeof form);
    connection->request[1] = (unsigned char)code;
    uv_buf_t buf = uv_buf_init((char *)connection->request, sizeof form);
    connection->browser.write.data = connection;
    if (uv_write(&connection->browser.write, (uv_stream_t *)&connection->browser.socket, &buf, 1, on_replied) != 0) {
        close_connection(connection);
    }
}

/* The socket to an address that did not answer has closed. The next address is tried, if the browser still waits. */
static void on_given_up(uv_handle_t *handle) {
    struct connection *connection = handle->data;
    connection->open--;
    connection->server.initialised = false;
    if (connection->stage == STAGE_CLOSING) {
        connection_may_go(connection);
    } else {
        connection->candidate = connection->candidate->ai_next;
        try_next(connection);
    }
}

static void give_up(struct connection *connection) {
    uv_timer_stop(&connection->attempt);
    uv_close((uv_handle_t *)&connection->server.socket, on_given_up);
}

static void on_silence(uv_timer_t *timer) {
    give_up(timer->data);
}

static void on_connected(uv_connect_t *connect, int status) {
    struct connection *connection = connect->handle->data;
    if (connection->stage == STAGE_CLOSING || status == UV_ECANCELED) {
        return; /* its socket is being closed */
    }
    uv_timer_stop(&connection->attempt);
    if (status == 0) {
        connection->stage = STAGE_OPEN;
        uv_tcp_nodelay(&connection->server.socket, 1);
        reply(connection, REPLY_DONE);
    } else {
        give_up(connection);
    }
}

/* `host` is `name`, or below it. */
static bool is_below(const char *host, const char *name) {
    size_t host_len = strlen(host);
    size_t len = strlen(name);
    return host_len >= len && strcasecmp(host + host_len - len, name) == 0 &&
           (host_len == len || host[host_len - len - 1] == '.');
}

bool gw_proxy_names_this_machine(const char *host, size_t len) {
    static const char *const names[] = {"localhost", "127.0.0.1", "::1"};
    size_t i = 0;
    while (i < sizeof names / sizeof *names && (strlen(names[i]) != len || strncasecmp(names[i], host, len) != 0)) {
        i++;
    }
    return i < sizeof names / sizeof *names;
}

/* Whether it is a page of this machine that the call opens, by one of the names above: other names may lead here, too.
 */
static bool is_own_page(const struct connection *connection) {
    const struct gw_proxy *proxy = connection->proxy;
    size_t i = 0;
    while (i < proxy->port_count && proxy->ports[i] != connection->port) {
        i++;
    }
    return i < proxy->port_count && gw_proxy_names_this_machine(connection->host, strlen(connection->host));
}

/* Why the address must not be reached; NULL: it may be. */
static const char *refusal_of(const struct connection *connection, const struct sockaddr *address) {
    const struct gw_proxy *proxy = connection->proxy;
    char text[80];
    gw_address_write(address, text, sizeof text);
    if ((proxy->exempt && strcmp(proxy->exempt, text) == 0) || is_own_page(connection)) {
        return NULL;
    }
    const char *refusal = gw_address_refused(address);
    refusal = refusal ? refusal : gw_address_near(address);
    return refusal || proxy->port_count == 0 ? refusal : NOT_HERE;
}

/* Whether an address after the present one may be reached. */
static bool has_other(const struct connection *connection) {
    const struct addrinfo *other = connection->candidate->ai_next;
    while (other && refusal_of(connection, other->ai_addr)) {
        other = other->ai_next;
    }
    return other != NULL;
}

static void connect_to(struct connection *connection, const struct sockaddr *address) {
    init_side(connection, &connection->server);
    connection->tried = true;
    if (has_other(connection)) {
        uv_timer_start(&connection->attempt, on_silence, ATTEMPT_MS, 0);
    }
    if (uv_tcp_connect(&connection->connect, &connection->server.socket, address, on_connected) != 0) {
        give_up(connection);
    }
}

/* Connects to the next address that may be reached: a host may have several addresses, and some may not answer. */
static void try_next(struct connection *connection) {
    struct gw_proxy *proxy = connection->proxy;
    const char *refusal = NULL;
    char address[80] = "";
    for (; connection->candidate; connection->candidate = connection->candidate->ai_next) {
        const struct sockaddr *one = connection->candidate->ai_addr;
        const char *why = refusal_of(connection, one);
        if (!why) {
            connect_to(connection, one);
            return;
        }
        refusal = why;
        gw_address_write(one, address, sizeof address);
    }
    if (!refusal && !connection->six && is_below(connection->host, "localhost")) {
        connection->six = true; /* many servers of developers listen on ::1 only */
        uv_freeaddrinfo(connection->addresses);
        connection->addresses = NULL;
        resolve(connection, "::1");
        return;
    }
    refusal = connection->tried ? NULL : refusal;
    if (refusal) {
        char reason[160];
        *(strrchr(address, ':') ? strrchr(address, ':') : address) = '\0';
        snprintf(reason, sizeof reason, "%s is %s", address, refusal);
        proxy->refused(proxy->context, connection->host, reason);
    }
    reply(connection, refusal ? REPLY_NOT_ALLOWED : REPLY_UNREACHABLE);
}

static void on_resolved(uv_getaddrinfo_t *lookup, int status, struct addrinfo *addresses) {
    struct connection *connection = lookup->data;
    connection->open--;
    connection->addresses = addresses;
    if (connection->stage == STAGE_CLOSING) {
        connection_may_go(connection);
        return;
    }
    connection->stage = STAGE_REQUEST;
    connection->candidate = status == 0 ? addresses : NULL;
    try_next(connection);
}

/*
 * Resolves a name, or an address as text: getaddrinfo takes both. By RFC 6761, sections 6.3 and 6.4, "invalid" leads
 * nowhere and "localhost" to this machine, so no name server is asked for them.
 */
static void resolve_host(struct connection *connection) {
    struct gw_proxy *proxy = connection->proxy;
    struct in6_addr literal;
    bool here = is_below(connection->host, "localhost");
    if (proxy->port_count > 0 && !here && !is_below(connection->host, "invalid") &&
        inet_pton(AF_INET, connection->host, &literal) != 1 && inet_pton(AF_INET6, connection->host, &literal) != 1) {
        proxy->refused(proxy->context, connection->host, "it is " NOT_HERE); /* a name would reach a name server */
        reply(connection, REPLY_NOT_ALLOWED);
        return;
    }
    resolve(connection, here ? "127.0.0.1" : connection->host);
}

static void resolve(struct connection *connection, const char *host) {
    struct in6_addr literal;
    bool is_literal = inet_pton(AF_INET, host, &literal) == 1 || inet_pton(AF_INET6, host, &literal) == 1;
    /* for a name: only addresses of a family that this machine has */
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = is_literal ? AI_NUMERICHOST : AI_ADDRCONFIG};
    char port[8];
    snprintf(port, sizeof port, "%u", connection->port);
    connection->lookup.data = connection;
    connection->stage = STAGE_RESOLVING;
    if (!is_below(connection->host, "invalid") &&
        uv_getaddrinfo(connection->proxy->loop, &connection->lookup, on_resolved, host, port, &hints) == 0) {
        connection->open++;
    } else {
        connection->stage = STAGE_REQUEST;
        reply(connection, REPLY_FAILURE);
    }
}

/* ---- what the browser asks ---- */

/*
 * Reads the address of a request (RFC 1928, section 5). Returns the request's length; 0: more must come; -1: it is
 * wrong.
 */
static int read_address(struct connection *connection) {
    const unsigned char *at = connection->request;
    size_t len = at[3] == 1 ? 4u : at[3] == 4 ? 16u : at[3] == 3 && connection->have > 4 ? 1u + at[4] : 0;
    if (at[3] != 1 && at[3] != 3 && at[3] != 4) {
        return -1;
    }
    if (len == 0 || connection->have < 4 + len + 2) {
        return 0;
    }
    if (at[3] == 3) {
        memcpy(connection->host, at + 5, at[4]);
        connection->host[at[4]] = '\0';
    } else {
        inet_ntop(at[3] == 1 ? AF_INET : AF_INET6, at + 4, connection->host, sizeof connection->host);
    }
    connection->port = (unsigned)at[4 + len] << 8 | at[5 + len];
    return (int)(6 + len);
}

static void on_greeted(uv_write_t *write, int status) {
    struct connection *connection = write->data;
    if (status < 0) {
        close_connection(connection);
    }
}

/* Handles the message that has come. The browser waits for each answer, so no bytes come after a message. */
static void take_request(struct connection *connection) {
    static char no_authentication[] = {5, 0};
    const unsigned char *at = connection->request;
    if (connection->have > 0 && at[0] != 5) {
        close_connection(connection);
    } else if (connection->stage == STAGE_GREETING && connection->have >= 2 && connection->have >= 2u + at[1]) {
        uv_buf_t buf = uv_buf_init(no_authentication, sizeof no_authentication);
        connection->stage = STAGE_REQUEST;
        connection->have = 0;
        connection->browser.write.data = connection;
        if (uv_write(&connection->browser.write, (uv_stream_t *)&connection->browser.socket, &buf, 1, on_greeted) !=
            0) {
            close_connection(connection);
        }
    } else if (connection->stage == STAGE_REQUEST && connection->have > 4) {
        int size = read_address(connection);
        if (size != 0) {
            uv_read_stop((uv_stream_t *)&connection->browser.socket);
        }
        if (size < 0 || at[1] != 1) {
            reply(connection, REPLY_NO_COMMAND);
        } else if (size > 0) {
            resolve_host(connection);
        }
    }
}

static void on_request(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf) {
    struct connection *connection = stream->data;
    if (got < 0 || (got > 0 && (size_t)got > sizeof connection->request - connection->have)) {
        close_connection(connection);
    } else if (got > 0) {
        memcpy(connection->request + connection->have, buf->base, (size_t)got);
        connection->have += (size_t)got;
        take_request(connection);
    }
}

static void on_connection(uv_stream_t *listener, int status) {
    struct gw_proxy *proxy = listener->data;
    struct connection *connection = status == 0 && !proxy->closing ? calloc(1, sizeof *connection) : NULL;
    if (!connection) {
        return;
    }
    connection->proxy = proxy;
    connection->next = proxy->connections;
    if (proxy->connections) {
        proxy->connections->previous = connection;
    }
    proxy->connections = connection;
    init_side(connection, &connection->browser);
    uv_timer_init(proxy->loop, &connection->attempt);
    connection->attempt.data = connection;
    connection->open++;
    if (++proxy->count > CONNECTIONS_MAX || uv_accept(listener, (uv_stream_t *)&connection->browser.socket) != 0) {
        close_connection(connection);
        return;
    }
    uv_tcp_nodelay(&connection->browser.socket, 1);
    uv_read_start((uv_stream_t *)&connection->browser.socket, allocate_piece, on_request);
}

/* ---- the proxy ---- */

static void on_listener_closed(uv_handle_t *listener) {
    struct gw_proxy *proxy = listener->data;
    proxy->listener_closed = true;
    proxy_may_go(proxy);
}

void gw_proxy_close(struct gw_proxy *proxy, void (*closed)(void *context)) {
    proxy->closing = true;
    proxy->closed = closed;
    uv_close((uv_handle_t *)&proxy->listener, on_listener_closed);
    for (struct connection *one = proxy->connections; one; one = one->next) {
        close_connection(one);
    }
}

int gw_proxy_port(const struct gw_proxy *proxy) {
    return proxy->port;
}

static void nobody_waits(void *context) {
    (void)context;
}

enum fm_code gw_proxy_open(uv_loop_t *loop, const struct gw_proxy_policy *policy,
                           void (*refused)(void *context, const char *host, const char *reason), void *context,
                           struct gw_proxy **result, struct fm_error *error) {
    struct sockaddr_in address;
    int len = sizeof address;
    struct gw_proxy *proxy = calloc(1, sizeof *proxy);
    *result = NULL;
    if (!proxy || (policy->exempt && !(proxy->exempt = strdup(policy->exempt)))) {
        free(proxy);
        return fm_fail_no_memory(error);
    }
    proxy->loop = loop;
    for (; proxy->port_count < policy->port_count && proxy->port_count < PORTS_MAX; proxy->port_count++) {
        proxy->ports[proxy->port_count] = policy->ports[proxy->port_count];
    }
    proxy->refused = refused;
    proxy->context = context;
    uv_tcp_init(loop, &proxy->listener);
    proxy->listener.data = proxy;
    uv_ip4_addr("127.0.0.1", 0, &address);
    int failure = uv_tcp_bind(&proxy->listener, (const struct sockaddr *)&address, 0);
    failure = failure ? failure : uv_listen((uv_stream_t *)&proxy->listener, BACKLOG, on_connection);
    failure = failure ? failure : uv_tcp_getsockname(&proxy->listener, (struct sockaddr *)&address, &len);
    if (failure) {
        gw_proxy_close(proxy, nobody_waits);
        return fm_fail(error, FM_UNAVAILABLE, "the browser's proxy can't listen on 127.0.0.1: %s",
                       uv_strerror(failure));
    }
    proxy->port = ntohs(address.sin_port);
    *result = proxy;
    return FM_OK;
}
