/*
 * Requests over HTTP/1.1 by libcurl: many at once, all on one thread. Connections are kept and used again. No redirect
 * is followed, and a certificate that can't be trusted ends the connection before anything is sent.
 *
 * The engine thread alone calls these, but for fm_transport_wake. Nothing but fm_transport_wait blocks.
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
    struct fm_transfer *first; /* all that run */
    size_t count;
};

/* What a request consists of. */
struct fm_call {
    const struct fm_endpoint *endpoint;
    const char *path;    /* after the endpoint's URL */
    struct fm_buf *body; /* taken over, and empty afterwards; NULL: a GET */
    const char *session; /* NULL: none is told */
    bool stream;         /* server-sent events are wanted, though JSON may come; else JSON */

    /*
     * A piece of the body of an answer with status 200. False: nothing more is wanted, and the connection is closed. It
     * may detach the transfer, but neither cancel nor start any.
     */
    bool (*data)(void *state, const char *bytes, size_t len);

    /*
     * The end, once, unless the transfer was cancelled or detached; it is gone then. FM_OK: the answer is whole as far
     * as HTTP can tell. FM_CANCELLED: `data` wanted no more. Else `error` (borrowed) says why there is none.
     */
    void (*done)(void *state, enum fm_code code, const struct fm_error *error);
    void *state;
};

/* False when out of memory. `curl` and `secrets` are borrowed. */
FM_MUST_USE bool fm_transport_init(struct fm_transport *transport, const struct fm_curl *curl,
                                   const struct fm_secrets *secrets);

/* Ends all transfers without a word, and closes the connections. */
void fm_transport_free(struct fm_transport *transport);

/* Starts a request; its calls come from inside of fm_transport_move. NULL: out of memory. */
struct fm_transfer *fm_transport_start(struct fm_transport *transport, const struct fm_call *call);

/* Ends a transfer and closes its connection; no call comes any more. NULL does nothing. */
void fm_transfer_cancel(struct fm_transfer *transfer);

/* Whether what comes is a stream of events, and not JSON. Once something has come. */
bool fm_transfer_streams(const struct fm_transfer *transfer);

/*
 * Nothing that still comes is of interest: no call comes any more, but the connection stays of use if the answer ends
 * within a second.
 */
void fm_transfer_detach(struct fm_transfer *transfer);

/* Waits up to `ms` until a transfer can move on. Blocks. */
void fm_transport_wait(struct fm_transport *transport, int64_t ms);

/* Moves all transfers on, as far as that goes without waiting. */
void fm_transport_move(struct fm_transport *transport);

/* Ends fm_transport_wait, or the next one. Any thread. */
void fm_transport_wake(struct fm_transport *transport);

#endif
