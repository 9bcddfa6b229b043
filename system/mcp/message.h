/*
 * Requests of a client, and what is written back: one line each. The rules are those of the protocol's pages "Overview"
 * (ids, errors, `_meta`) and "Caching". Pure.
 */
#ifndef SY_MCP_MESSAGE_H
#define SY_MCP_MESSAGE_H

#include "mcp/era.h"
#include "protocol/rpc.h"

#define SY_MCP_VALUES_MAX 16384u      /* JSON values of a line */
#define SY_REPLY_MAX      (16u << 20) /* bytes of an answer */
#define SY_NO_RESOURCE    (-32002)    /* until 2025-11-25; FM_RPC_PARAMS since */
#define SY_NO_VERSION     (-32022)    /* UnsupportedProtocolVersion */
#define SY_META           "io.modelcontextprotocol/"

/* All pointers are borrowed. */
struct sy_request {
    struct fm_rpc_id id;
    enum sy_era era;
    const char *method;
    struct json_object *params; /* an object; NULL: none */
    struct json_object *meta;   /* params._meta, an object; NULL: none */
};

/* Why there is no result. */
struct sy_fault {
    int code; /* of JSON-RPC; 0: there is none */
    char message[256];
    char data[512]; /* JSON; "": none */
};

/* Fills `fault`; returns false, so that a function that fails ends in one statement. */
bool sy_fail(struct sy_fault *fault, int code, const char *fmt, ...) FM_PRINTF(3, 4);

/* How long a client may keep an answer (2026-07-28). */
enum sy_keep {
    SY_KEEP_NOT, /* the answer has no such members */
    SY_KEEP_LONG,
    SY_KEEP_NEVER, /* it is of this moment, and of this user */
};

/*
 * Opens the answer up to its members: `result` is an object. What the caller writes then are members. sy_result_end
 * closes it, newline included; `type` is the `resultType` that 2026-07-28 wants, "complete" or "input_required".
 */
struct fm_json_writer sy_result_begin(struct fm_buf *reply, const struct sy_request *request, enum sy_keep keep);
void sy_result_end(struct fm_buf *reply, const struct sy_request *request, const char *type, struct fm_json_writer *w);

/* The whole line. An id of length 0 is written as the era has it: left out, or null. */
void sy_write_fault(struct fm_buf *reply, const struct fm_rpc_id *id, enum sy_era era, const struct sy_fault *fault);

/*
 * Splits a message into a request: params and _meta must be objects. The era is not decided here. False: `fault` says
 * why.
 */
FM_MUST_USE bool sy_request_read(const struct fm_rpc_message *message, struct sy_request *request,
                                 struct sy_fault *fault);

/* A parameter that must be a string; NULL: it is not, and `fault` says so. */
const char *sy_request_string(const struct sy_request *request, const char *name, struct sy_fault *fault);

/* A list that has one page only: a client that names another has a cursor that nobody gave. */
FM_MUST_USE bool sy_request_has_no_cursor(const struct sy_request *request, struct sy_fault *fault);

#endif
