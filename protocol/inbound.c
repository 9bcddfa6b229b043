#include "protocol/inbound.h"
#include "protocol/json_check.h"

#include <json-c/json.h>
#include <stdio.h>

/* json-c keeps a buffer as large as the longest string it has read; after a body larger than this it is given back. */
#define BODY_KEEP 65536u

static const struct fm_rpc_id no_id;

bool fm_inbound_init(struct fm_inbound *inbound) {
    fm_framer_init(&inbound->framer);
    inbound->tokener = json_tokener_new_ex(FM_JSON_DEPTH_MAX + 1);
    return inbound->tokener != NULL;
}

void fm_inbound_free(struct fm_inbound *inbound) {
    fm_framer_free(&inbound->framer);
    json_tokener_free(inbound->tokener);
    inbound->tokener = NULL;
}

bool fm_inbound_at_boundary(const struct fm_inbound *inbound) {
    return fm_framer_at_boundary(&inbound->framer);
}

static const char *describe(enum fm_rpc_error code) {
    return code == FM_RPC_INVALID
               ? "not a JSON-RPC 2.0 request: an object with \"jsonrpc\":\"2.0\", a string \"method\" and "
                 "a string or integer \"id\" is expected"
               : "parse error";
}

static void take_value(struct json_object *root, const struct fm_inbound_handler *handler) {
    struct fm_rpc_message message;
    enum fm_rpc_error code = fm_rpc_read(root, &message);
    if (code == FM_RPC_OK) {
        handler->message(handler->context, &message, root);
    } else if (message.kind != FM_RPC_NOTIFICATION) {
        handler->fault(handler->context, &message.id, code, describe(code));
    }
}

/* Ready for the next body. Without memory for a new tokener the old one goes on, with its buffer. */
static void reset_tokener(struct fm_inbound *inbound, size_t body_len) {
    json_tokener_reset(inbound->tokener);
    struct json_tokener *fresh = body_len > BODY_KEEP ? json_tokener_new_ex(FM_JSON_DEPTH_MAX + 1) : NULL;
    if (fresh) {
        json_tokener_free(inbound->tokener);
        inbound->tokener = fresh;
    }
}

static void take_body(struct fm_inbound *inbound, const char *body, size_t len,
                      const struct fm_inbound_handler *handler) {
    char detail[160];
    size_t offset = 0;
    const char *wrong = fm_json_check(body, len, &offset);
    if (wrong) {
        snprintf(detail, sizeof detail, "the body is not valid JSON: %s, at byte %zu", wrong, offset);
        handler->fault(handler->context, &no_id, FM_RPC_PARSE, detail);
        return;
    }
    json_tokener_reset(inbound->tokener);
    struct json_object *root = json_tokener_parse_ex(inbound->tokener, body, (int)len);
    enum json_tokener_error error = json_tokener_get_error(inbound->tokener);
    if (error == json_tokener_continue) { /* a bare number ends with the body */
        root = json_tokener_parse_ex(inbound->tokener, "", -1);
        error = json_tokener_get_error(inbound->tokener);
    }
    if (error == json_tokener_success) {
        take_value(root, handler);
    } else {
        handler->fault(handler->context, &no_id, FM_RPC_INTERNAL, "out of memory for the body");
    }
    json_object_put(root);
    reset_tokener(inbound, len);
}

static const char *skipped_detail(enum fm_frame_event event) {
    return event == FM_FRAME_TOO_LARGE ? "the body is larger than 10,000,000 bytes" : "the body's charset is not utf-8";
}

const char *fm_inbound_feed(struct fm_inbound *inbound, const char *data, size_t len,
                            const struct fm_inbound_handler *handler) {
    for (;;) {
        const char *body = NULL;
        size_t body_len = 0;
        enum fm_frame_event event = fm_framer_next(&inbound->framer, &data, &len, &body, &body_len);
        switch (event) {
        case FM_FRAME_MORE: return NULL;
        case FM_FRAME_BROKEN: return inbound->framer.fault;
        case FM_FRAME_BODY: take_body(inbound, body, body_len, handler); break;
        case FM_FRAME_NO_MEMORY:
            handler->fault(handler->context, &no_id, FM_RPC_INTERNAL, "out of memory for the body");
            break;
        default: handler->fault(handler->context, &no_id, FM_RPC_PARSE, skipped_detail(event)); break;
        }
    }
}
