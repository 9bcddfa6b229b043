/*
 * Reads a text message of a socket: {"id","method","params"}, or {"type":"auth",...}. Nothing else is a frame; a frame
 * has no other members. Pure; one thread at a time.
 */
#ifndef GW_RPC_FRAME_H
#define GW_RPC_FRAME_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>

struct json_object;

#define GW_ID_MAX 256u /* bytes of an id */

/* Codes of error frames: JSON-RPC 2.0's, and the gateway's own. */
enum gw_code {
    GW_OK = 0,
    GW_PARSE = -32700,
    GW_INVALID = -32600,
    GW_UNKNOWN_METHOD = -32601,
    GW_INVALID_PARAMS = -32602, /* the message begins with the parameter's name */
    GW_INTERNAL = -32603,
    GW_NOT_FOUND = -32004,
    GW_BUSY = -32029,
    GW_UNAVAILABLE = -32050,
};

enum gw_frame_kind { GW_FRAME_REQUEST, GW_FRAME_AUTH };

struct gw_frame {
    enum gw_frame_kind kind;
    const char *id; /* a request's id; also of a wrong frame, if the id could be read. NULL: none */
    size_t id_len;
    const char *method;
    size_t method_len;
    struct json_object *params; /* NULL: none, or null */
    const char *token;          /* of an auth frame, which has a token or a code: the other one is NULL */
    size_t token_len;
    const char *one_time_code;
    size_t one_time_code_len;
    struct json_object *root; /* all pointers above point into it */
};

/*
 * Reads `len` bytes. On GW_PARSE, GW_INVALID or GW_INTERNAL `*fault` says what is wrong, in a static string, and `id`
 * is set if the frame has a proper one. Call gw_frame_free in any case.
 */
FM_MUST_USE enum gw_code gw_frame_read(const char *text, size_t len, struct gw_frame *frame, const char **fault);
void gw_frame_free(struct gw_frame *frame);

#endif
