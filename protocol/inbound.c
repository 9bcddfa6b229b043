/* From bytes to messages: the framer, then fm_json_check, then the tree, then the JSON-RPC envelope. */
#include "protocol/inbound.h"
#include "base/platform.h"
#include "protocol/json_check.h"
#include "protocol/json_tree.h"

#include <json-c/json.h>
#include <stdio.h>

/*
 * Above this size, memory is freed after use: the memory of a body's tree, and the scratch buffer, which grows to the
 * longest string with an escape.
 */
#define LARGE 65536u

static const struct fm_rpc_id no_id;

void fm_inbound_init(struct fm_inbound *inbound) {
    fm_framer_init(&inbound->framer);
    inbound->values_max = FM_JSON_VALUES_MAX;
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

/* Writes a number below a billion with commas, such as 65536 as "65,536". */
static const char *grouped(size_t number, char text[16]) {
    unsigned low = (unsigned)(number % 1000);
    unsigned middle = (unsigned)(number / 1000 % 1000);
    unsigned high = (unsigned)(number / 1000000 % 1000);
    if (high) {
        snprintf(text, 16, "%u,%03u,%03u", high, middle, low);
    } else {
        snprintf(text, 16, "%u,%03u", middle, low);
    }
    return text;
}

/* Reports a body that can't be read: `wrong` is what fm_json_check said. */
static void refuse_body(const struct fm_inbound *inbound, const char *wrong, size_t offset,
                        const struct fm_inbound_handler *handler) {
    char detail[160];
    char number[16];
    if (wrong == fm_json_too_many) {
        snprintf(detail, sizeof detail, "the body has more than %s values", grouped(inbound->values_max, number));
    } else {
        snprintf(detail, sizeof detail, "the body is not valid JSON: %s, at byte %zu", wrong, offset);
    }
    handler->fault(handler->context, &no_id, FM_RPC_PARSE, detail);
}

void fm_inbound_body(struct fm_inbound *inbound, const char *body, size_t len,
                     const struct fm_inbound_handler *handler) {
    size_t offset = 0;
    const char *wrong = fm_json_check(body, len, inbound->values_max, &offset);
    if (wrong) {
        refuse_body(inbound, wrong, offset, handler);
        return;
    }
    struct json_object *root;
    if (fm_json_tree(body, len, &inbound->scratch, &root)) {
        take_value(root, handler);
    } else {
        handler->fault(handler->context, &no_id, FM_RPC_INTERNAL, "out of memory for the body");
    }
    json_object_put(root);
    if (inbound->scratch.cap > LARGE) {
        fm_buf_free(&inbound->scratch);
    }
    if (len > LARGE) {
        fm_memory_trim();
    }
}

/* Reports a body that the framer has skipped. */
static void refuse_skipped(const struct fm_inbound *inbound, enum fm_frame_event event,
                           const struct fm_inbound_handler *handler) {
    char detail[160] = "the body's charset is not utf-8";
    char number[16];
    if (event == FM_FRAME_TOO_LARGE) {
        grouped(inbound->framer.body_max, number);
        snprintf(detail, sizeof detail, "the body is larger than %s bytes", number);
    }
    handler->fault(handler->context, &no_id, FM_RPC_PARSE, detail);
}

static void take_body(struct fm_inbound *inbound, const char *body, size_t len,
                      const struct fm_inbound_handler *handler) {
    struct fm_buf *own = &inbound->framer.body;
    bool taken = handler->body && body == own->data && handler->body(handler->context, own, len);
    if (!taken) {
        fm_inbound_body(inbound, body, len, handler);
    }
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
        default: refuse_skipped(inbound, event, handler); break;
        }
    }
}
