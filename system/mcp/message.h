/*
 * Requests of a client, and the answers: one line each. The rules come from the protocol's pages "Overview" (ids,
 * errors, `_meta`) and "Caching". Pure.
 */
#ifndef SY_MCP_MESSAGE_H
#define SY_MCP_MESSAGE_H

#include "mcp/era.h"
#include "protocol/rpc.h"

#define SY_MCP_VALUES_MAX 16384u      /* JSON values of a line */
#define SY_REPLY_MAX      (16u << 20) /* bytes of an answer */
#define SY_NO_RESOURCE    (-32002)    /* the code until 2025-11-25; since then FM_RPC_PARAMS */
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
    int code; /* the code of JSON-RPC; 0: there is no fault */
    char message[256];
    char data[512]; /* JSON; "": none */
};

/* Fills `fault`. Always returns false, so that a function can fail with one statement. */
bool sy_fail(struct sy_fault *fault, int code, const char *fmt, ...) FM_PRINTF(3, 4);

/* How long a client may cache an answer (2026-07-28). */
enum sy_keep {
    SY_KEEP_NOT, /* the answer has no members about caching */
    SY_KEEP_LONG,
    SY_KEEP_NEVER, /* the answer may not be cached, and is only for this user */
};

/*
 * Begins an answer whose `result` is an object. The caller then writes members of this object. sy_result_end ends the
 * answer and writes its newline. `type` is the `resultType` that 2026-07-28 needs, "complete" or "input_required".
 */
struct fm_json_writer sy_result_begin(struct fm_buf *reply, const struct sy_request *request, enum sy_keep keep);
void sy_result_end(struct fm_buf *reply, const struct sy_request *request, const char *type, struct fm_json_writer *w);

/* Writes the whole line. An id of length 0 is left out or written as null, as the era needs. */
void sy_write_fault(struct fm_buf *reply, const struct fm_rpc_id *id, enum sy_era era, const struct sy_fault *fault);

/*
 * Makes a request from a message, whose params and _meta must be objects. The caller decides the era. False: `fault`
 * says why.
 */
FM_MUST_USE bool sy_request_read(const struct fm_rpc_message *message, struct sy_request *request,
                                 struct sy_fault *fault);

/* Returns a parameter that must be a string. NULL: it is no string, and `fault` says so. */
const char *sy_request_string(const struct sy_request *request, const char *name, struct sy_fault *fault);

/* For a list of one page: fails if the client sends a cursor, because this server never gives a cursor. */
FM_MUST_USE bool sy_request_has_no_cursor(const struct sy_request *request, struct sy_fault *fault);

#endif
