/*
 * Requests become calls of handlers, and each call is answered once. Events go to every socket that is logged in. The
 * sockets themselves belong to net/: here they are peers, to which text is sent.
 *
 * All of it runs on the loop thread and never blocks. A handler may answer before it returns or later; if the peer is
 * gone by then, the answer is dropped. A handler gets no pointer to a peer, so no handler can keep a peer alive.
 */
#ifndef GW_RPC_RPC_H
#define GW_RPC_RPC_H

#include "protocol/json_writer.h"
#include "rpc/methods.h"

#define GW_ANSWER_MAX (8u << 20) /* bytes of a frame that the gateway sends */
#define GW_CALLS_MAX  64u        /* requests of a peer that wait for their answers; more are GW_BUSY */

struct gw_reply;
struct gw_peer;

/*
 * A method's handler. It owns `call`, and must settle it with gw_reply_end or gw_reply_fail. `params` is valid until it
 * returns.
 */
typedef void gw_handler(void *context, struct gw_reply *call, const struct gw_params *params);

struct gw_rpc {
    struct {
        gw_handler *handle; /* NULL: its part is missing, so the answer is GW_UNAVAILABLE */
        void *context;
    } app[GW_METHOD_COUNT];
    struct gw_peer *peers; /* logged in or not */
    int64_t started_ms;    /* fm_now_ms */
    int64_t seq;           /* the number of the last event */
    int64_t promised;      /* the highest number of gw_event_promise; 0: none */
    struct fm_buf event;   /* the event that is being written */
    struct fm_json_writer writer;
};

/*
 * What rpc needs to know of a socket. It is a member of net/'s own struct. rpc sets its fields, except `send` and
 * `logged_in`.
 */
struct gw_peer {
    /* Sends a whole frame; the caller keeps `text`. A failure may remove the peer later, never during the call. */
    void (*send)(struct gw_peer *peer, const char *text, size_t len);
    bool logged_in; /* set by net/ after the login */
    struct gw_reply *calls;
    size_t call_count;
    struct gw_rpc *rpc;
    struct gw_peer *next;
    struct gw_peer **link;
};

/* Initialises `rpc`, with a handler for health.check. `rpc` must outlive peers and calls. */
void gw_rpc_init(struct gw_rpc *rpc);
void gw_rpc_free(struct gw_rpc *rpc);

/* Sets the handler of `method`. `context` is passed to the handler. */
void gw_app_set(struct gw_rpc *rpc, enum gw_method method, gw_handler *handle, void *context);

/* Adds the peer to rpc's list. It gets events once it is logged in. */
void gw_peer_add(struct gw_rpc *rpc, struct gw_peer *peer);

/* Removes the peer. Its open calls go on, and their answers are dropped. */
void gw_peer_remove(struct gw_peer *peer);

/* Handles a request frame (gw_frame_read) of a peer: calls the handler, or answers with the error. */
void gw_rpc_request(struct gw_peer *peer, const struct gw_frame *frame);

/* Sends an error frame. `id` NULL: writes null, because the frame's own id could not be read. */
void gw_rpc_refuse(struct gw_peer *peer, const char *id, size_t id_len, enum gw_code code, const char *message);

/* The seconds since the start. */
int64_t gw_rpc_uptime(const struct gw_rpc *rpc);

/* ---- answers ---- */

/*
 * Returns the answer's writer: the handler writes one value, the result, then calls gw_reply_end. Do not call
 * gw_reply_begin after gw_reply_fail.
 */
struct fm_json_writer *gw_reply_begin(struct gw_reply *call);

/* Sends the answer and frees the call. A result of more than GW_ANSWER_MAX bytes becomes an error, GW_INTERNAL. */
void gw_reply_end(struct gw_reply *call);

/*
 * Answers with an error, and frees the call. What was written of a result is dropped. `message` must not contain user
 * text.
 */
void gw_reply_fail(struct gw_reply *call, enum gw_code code, const char *fmt, ...) FM_PRINTF(3, 4);

/* ---- events ---- */

/*
 * Begins {"event":NAME,"data":{...}}: the caller writes the members of data, then calls gw_event_end. Only one event
 * can be open at a time.
 */
struct fm_json_writer *gw_event_begin(struct gw_rpc *rpc, const char *name);

/*
 * Adds sessionKey (NULL: the event belongs to no session) and seq to data, and sends the event to all peers that are
 * logged in. Returns seq, which is below 2^53. It rises with each event, also after a restart, unless the clock was set
 * back. 0: out of memory, or the event was too long; nothing was sent.
 */
int64_t gw_event_end(struct gw_rpc *rpc, const char *session_key);

/*
 * Reserves the number of a later event, for a record that must be on the disk before the event is sent. It is at least
 * GW_SEQ_PROMISE above the last number, so that all events before that event have lower numbers.
 */
#define GW_SEQ_PROMISE 10000
int64_t gw_event_promise(struct gw_rpc *rpc);

/* Makes all later events have numbers above `seq`. */
void gw_event_start_above(struct gw_rpc *rpc, int64_t seq);

/*
 * Does the same as gw_event_end, but for an event with a reserved number. If other events have passed that number, the
 * event gets the next number.
 */
int64_t gw_event_end_as(struct gw_rpc *rpc, const char *session_key, int64_t promised);

#endif
