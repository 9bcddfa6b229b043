/*
 * The state of a client; only the files of protocol/client use this. client.h has the rules of threads and callbacks.
 */
#ifndef FM_PROTOCOL_CLIENT_INTERNAL_H
#define FM_PROTOCOL_CLIENT_INTERNAL_H

#include "protocol/client/client.h"
#include "protocol/inbound.h"

/* An open call. It is in the list of its client's calls until it settles. */
struct fm_client_call_state {
    struct fm_client_call_state *next;
    struct fm_client_handler handler;
    int64_t id;
    bool cancelled; /* by fm_client_cancel */
};

struct fm_client {
    struct fm_client_options options; /* copies of its strings are in path, arguments and environment */
    char *path;
    char **arguments;
    char **environment;

    enum fm_client_state state;
    bool processing;       /* inside one of the functions that call back */
    bool closing;          /* fm_client_free has begun: no helper is started any more */
    struct fm_child child; /* its closed descriptors are -1 */
    struct fm_inbound inbound;
    struct fm_buf out;   /* frames; the frames of calls wait until the state is READY */
    size_t sent;         /* bytes of `out` that are written */
    size_t hello;        /* bytes of `out` that may be sent before the state is READY: the handshake */
    struct fm_buf frame; /* the frame that is being written */
    int64_t hello_id;    /* id of the handshake's call; 0: it is answered */
    int64_t last_id;     /* ids go on from helper to helper, so that none is used twice */
    int64_t deadline_ms; /* when STARTING or ENDING must be over */
    int64_t ready_ms;    /* since when it is ready; 0: it never was */
    bool stopping;       /* fm_client_stop was called: the end does not count as a death */
    char fault[600];     /* why the helper has to be killed; "": nothing is wrong */

    unsigned deaths;      /* in a row */
    int64_t pause_end_ms; /* no helper is started before this time */

    struct fm_client_call_state *calls; /* the oldest first */
    struct fm_client_call_state **calls_end;
    size_t call_count;
};

/* ---- calls.c ---- */

/* Handles a message of the helper. */
void fm_client_take(void *context, const struct fm_rpc_message *message, struct json_object *root);
void fm_client_take_fault(void *context, const struct fm_rpc_id *id, enum fm_rpc_error code, const char *detail);

/* Takes all open calls out of the list; later calls start a new list. */
struct fm_client_call_state *fm_client_detach(struct fm_client *client);

/* Settles and frees calls that were taken out. Calls back. */
void fm_client_settle_list(struct fm_client_call_state *calls, const struct fm_error *error);

/* ---- life.c ---- */

/*
 * Appends the message whose body is in `frame` to `out`. At most `limit` bytes may wait in `out` afterwards.
 * FM_OVERLOADED or FM_INTERNAL: nothing was appended.
 */
FM_MUST_USE enum fm_code fm_client_enqueue(struct fm_client *client, size_t limit, struct fm_error *error);

/* How many bytes of `out` may be written now: before the end of the handshake, only those of the handshake. */
size_t fm_client_sendable(const struct fm_client *client);

/* Handles the answer to the handshake: sends the waiting calls, or sets `fault` if the helper has another version. */
void fm_client_welcome(struct fm_client *client, struct json_object *result);

/* Notes why the helper must be killed, unless something is noted already. */
void fm_client_set_fault(struct fm_client *client, const char *fmt, ...) FM_PRINTF(2, 3);

/* Ends the helper if its time is up or `fault` is set. Calls back. */
void fm_client_advance(struct fm_client *client);

/* Reads and writes. Calls back. */
void fm_client_transfer(struct fm_client *client);

/*
 * Begins the end of the helper: it must end within FM_CLIENT_END_MS. Its input is closed as soon as `out` is written.
 */
void fm_client_begin_end(struct fm_client *client);

#endif
