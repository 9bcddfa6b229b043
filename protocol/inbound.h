/*
 * The receiving half of a connection: bytes in any split become RPC messages or faults. Front and engines read with it.
 * Pure: no I/O; one thread at a time.
 */
#ifndef FM_PROTOCOL_INBOUND_H
#define FM_PROTOCOL_INBOUND_H

#include "protocol/frame.h"
#include "protocol/rpc.h"

struct fm_inbound {
    struct fm_framer framer;
    size_t values_max;     /* in a body: FM_JSON_VALUES_MAX, or what is put here before the first byte */
    struct fm_buf scratch; /* of fm_json_tree */
};

/* What the receiver does with what came. The pointers are valid during the call alone. */
struct fm_inbound_handler {
    void *context;
    /* A well-formed message. `root` is borrowed: json_object_get keeps it. */
    void (*message)(void *context, const struct fm_rpc_message *message, struct json_object *root);
    /* A body that is no message: `code` and `detail` are those of the reply, `id` the id to answer with. */
    void (*fault)(void *context, const struct fm_rpc_id *id, enum fm_rpc_error code, const char *detail);
};

/* Allocates nothing. */
void fm_inbound_init(struct fm_inbound *inbound);
void fm_inbound_free(struct fm_inbound *inbound);

/*
 * Consumes `len` bytes. Returns NULL, or on a broken frame what is wrong with it (a static string): the connection
 * can't be read any further then, and nothing behind the broken byte was looked at.
 */
FM_MUST_USE const char *fm_inbound_feed(struct fm_inbound *inbound, const char *data, size_t len,
                                        const struct fm_inbound_handler *handler);

/* True when an end of input here is an orderly one. */
bool fm_inbound_at_boundary(const struct fm_inbound *inbound);

#endif
