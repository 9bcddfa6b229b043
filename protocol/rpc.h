/*
 * JSON-RPC 2.0 messages: reading and writing their envelopes. PROTOCOL.md, "Calls", has the rules. Pure.
 */
#ifndef FM_PROTOCOL_RPC_H
#define FM_PROTOCOL_RPC_H

#include "protocol/json_writer.h"

struct json_object;

#define FM_RPC_ID_MAX 256u /* bytes of a string id */

enum fm_rpc_error { /* JSON-RPC 2.0 section 5.1 */
                    FM_RPC_OK = 0,
                    FM_RPC_PARSE = -32700,
                    FM_RPC_INVALID = -32600,
                    FM_RPC_METHOD = -32601,
                    FM_RPC_PARAMS = -32602,
                    FM_RPC_INTERNAL = -32603, /* out of memory */
};

/*
 * An id as JSON text, ready to be echoed; `len` 0: no id, written as null. An escaped character takes up to six bytes.
 */
struct fm_rpc_id {
    char text[FM_RPC_ID_MAX * 6 + 2];
    unsigned short len;
};

enum fm_rpc_kind { FM_RPC_REQUEST, FM_RPC_NOTIFICATION, FM_RPC_RESPONSE };

struct fm_rpc_message {
    enum fm_rpc_kind kind;
    struct fm_rpc_id id;
    const char *method;         /* requests and notifications; NUL-terminated, but see method_len */
    size_t method_len;          /* more than strlen(method) if the method has a NUL inside, which no known method has */
    struct json_object *params; /* of any type; NULL: absent or null */
    struct json_object *result; /* responses; NULL: absent, null or an error */
    struct json_object *error;  /* responses; NULL: absent or null */
};

/*
 * Reads `root` (borrowed; the message points into it). On failure `message->id` is the id to reply to, and
 * `message->kind` is FM_RPC_NOTIFICATION when there must be no reply.
 */
FM_MUST_USE enum fm_rpc_error fm_rpc_read(struct json_object *root, struct fm_rpc_message *message);

/* Reads an id from a parameter (`request_id`, or `id` of $/cancelRequest). False: the value is not a valid id. */
FM_MUST_USE bool fm_rpc_id_read(struct json_object *value, struct fm_rpc_id *id);

/* Whether both are the same id: the integer 1 and the string "1" are not. */
bool fm_rpc_id_equal(const struct fm_rpc_id *a, const struct fm_rpc_id *b);

/* An integer id. */
struct fm_rpc_id fm_rpc_id_int(int64_t value);

/*
 * Writing into `buf` (see protocol/frame.h for the frame around it): the `..._begin` call opens the message up to and
 * including the start of `result` or `params`, which the caller writes as one value; `fm_rpc_end` closes it.
 */
struct fm_json_writer fm_rpc_result_begin(struct fm_buf *buf, const struct fm_rpc_id *id);
struct fm_json_writer fm_rpc_request_begin(struct fm_buf *buf, const struct fm_rpc_id *id, const char *method);
struct fm_json_writer fm_rpc_notification_begin(struct fm_buf *buf, const char *method);
void fm_rpc_end(struct fm_buf *buf);

/* Writes a whole error reply. */
void fm_rpc_write_error(struct fm_buf *buf, const struct fm_rpc_id *id, enum fm_rpc_error code, const char *message);

#endif
