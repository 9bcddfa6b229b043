/*
 * Sends requests over HTTP/1.1 by libcurl: many at the same time, all on one thread. Connections are kept and used
 * again. Redirects are not followed. A certificate that is not trusted ends the connection before anything is sent.
 *
 * Only the engine thread calls these functions, except fm_transport_wake. Only fm_transport_wait blocks.
 */
#ifndef FM_ENGINE_REMOTE_TRANSPORT_H
#define FM_ENGINE_REMOTE_TRANSPORT_H

#include "engine/remote/config.h"
#include "engine/remote/curl.h"

struct fm_transfer;

struct fm_transport {
    const struct fm_curl *curl;
    const struct fm_secrets *secrets;
    fm_curl_multi *multi;
    struct fm_transfer *first; /* all running transfers */
    size_t count;
};

/* The parts of a request. */
struct fm_call {
    const struct fm_endpoint *endpoint;
    const char *path;    /* the part of the URL after the endpoint's */
    struct fm_buf *body; /* taken over, and empty afterwards; NULL: the request is a GET */
    const char *session; /* the session's id; NULL: none is sent */
    bool stream;         /* server-sent events are requested, but JSON may come; otherwise JSON */

    /*
     * Takes a piece of the body of an answer with status 200. False: no more is wanted, and the connection is closed.
     * The callback may detach the transfer, but may not cancel or start any.
     */
    bool (*data)(void *state, const char *bytes, size_t len);

    /*
     * Called once when the transfer ends, unless it was cancelled or detached. The transfer must not be used any more.
     * FM_OK: the answer is complete as far as HTTP can tell. FM_CANCELLED: `data` wanted no more. Otherwise `error`
     * (borrowed) says why there is no answer.
     */
    void (*done)(void *state, enum fm_code code, const struct fm_error *error);
    void *state;
};

/* False when out of memory. `curl` and `secrets` are borrowed. */
FM_MUST_USE bool fm_transport_init(struct fm_transport *transport, const struct fm_curl *curl,
                                   const struct fm_secrets *secrets);

/* Ends all transfers without callbacks, and closes the connections. */
void fm_transport_free(struct fm_transport *transport);

/* Starts a request; its callbacks come inside fm_transport_move. NULL: out of memory. */
struct fm_transfer *fm_transport_start(struct fm_transport *transport, const struct fm_call *call);

/* Ends a transfer and closes its connection; no more callbacks come. NULL does nothing. */
void fm_transfer_cancel(struct fm_transfer *transfer);

/* Whether the body is a stream of events and not JSON. Call it when a part of the body has come. */
bool fm_transfer_streams(const struct fm_transfer *transfer);

/*
 * Detaches a transfer when the rest of the answer is not wanted. No more callbacks come, but the connection can be used
 * again if the answer ends within a second.
 */
void fm_transfer_detach(struct fm_transfer *transfer);

/* Waits up to `ms` until a transfer can move on. Blocks. */
void fm_transport_wait(struct fm_transport *transport, int64_t ms);

/* Moves all transfers on as far as possible without waiting. */
void fm_transport_move(struct fm_transport *transport);

/* Ends the fm_transport_wait that waits now; if none waits, ends the next one. Any thread. */
void fm_transport_wake(struct fm_transport *transport);

#endif
