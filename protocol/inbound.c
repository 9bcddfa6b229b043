#include "protocol/inbound.h"
#include "protocol/json_check.h"
#include "protocol/json_tree.h"

#include <json-c/json.h>
#include <stdio.h>

/* The scratch buffer grows to the longest string with an escape; larger than this, it is given back after its body. */
#define SCRATCH_KEEP 65536u

static const struct fm_rpc_id no_id;

void fm_inbound_init(struct fm_inbound *inbound) {
    fm_framer_init(&inbound->framer);
    fm_buf_init(&inbound->scratch, FM_FRAME_DISCARD_MAX);
}

void fm_inbound_free(struct fm_inbound *inbound) {
    fm_framer_free(&inbound->framer);
    fm_buf_free(&inbound->scratch);
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
    struct json_object *root;
    if (fm_json_tree(body, len, &inbound->scratch, &root)) {
        take_value(root, handler);
    } else {
        handler->fault(handler->context, &no_id, FM_RPC_INTERNAL, "out of memory for the body");
    }
    json_object_put(root);
    if (inbound->scratch.cap > SCRATCH_KEEP) {
        fm_buf_free(&inbound->scratch);
    }
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
