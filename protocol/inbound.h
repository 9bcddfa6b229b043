/*
 * The receiving half of a connection: bytes, in pieces of any size, become RPC messages or faults. The front and the
 * engines use it to read. Pure: no I/O; one thread at a time.
 */
#ifndef FM_PROTOCOL_INBOUND_H
#define FM_PROTOCOL_INBOUND_H

#include "protocol/frame.h"
#include "protocol/rpc.h"

struct fm_inbound {
    struct fm_framer framer;
    size_t values_max;     /* values in a body: FM_JSON_VALUES_MAX, unless changed before the first byte */
    struct fm_buf scratch; /* for fm_json_tree */
};

/* The receiver's callbacks. Pointers that they get are valid during the call only. */
struct fm_inbound_handler {
    void *context;
    /* A well-formed message. `root` is borrowed: json_object_get keeps it. */
    void (*message)(void *context, const struct fm_rpc_message *message, struct json_object *root);
    /* A body that is not a message. Reply with `code` and `detail`, to the id `id`. */
    void (*fault)(void *context, const struct fm_rpc_id *id, enum fm_rpc_error code, const char *detail);
    /*
     * A body that came in several pieces, before it is checked or parsed. True: the callback took it, and `body`
     * (complete, with `len` bytes) is empty now; no other callback follows. NULL: no body is taken.
     */
    bool (*body)(void *context, struct fm_buf *body, size_t len);
};

/* Allocates nothing. */
void fm_inbound_init(struct fm_inbound *inbound);
void fm_inbound_free(struct fm_inbound *inbound);

/*
 * Consumes `len` bytes. Returns NULL, or a static string that says why a frame is broken. Then the connection can't be
 * read any further, and nothing after the broken byte was examined.
 */
FM_MUST_USE const char *fm_inbound_feed(struct fm_inbound *inbound, const char *data, size_t len,
                                        const struct fm_inbound_handler *handler);

/* Handles a body that the `body` callback took, as fm_inbound_feed handles the others. */
void fm_inbound_body(struct fm_inbound *inbound, const char *body, size_t len,
                     const struct fm_inbound_handler *handler);

/* True between two frames. At any other place, the end of the input means that a frame is incomplete. */
bool fm_inbound_at_boundary(const struct fm_inbound *inbound);

#endif
