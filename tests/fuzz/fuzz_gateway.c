/*
 * Fuzzes a WebSocket of the gateway that is logged in, from bytes to answers. The first byte chooses how the bytes are
 * split, or that they are one frame's text. Each frame of text gets one answer, which is JSON with an id and either a
 * result or an error.
 */
#include "net/websocket.h"
#include "rpc/rpc.h"
#include "tests/fuzz/fuzz.h"

#define MESSAGE_MAX 4096u

static struct gw_rpc rpc;
static unsigned answers;
static size_t written;

static void take_answer(struct gw_peer *peer, const char *text, size_t len) {
    (void)peer;
    struct json_object *value = json_must_parse(text, len);
    HOLDS(json_object_object_get_ex(value, "id", NULL));
    HOLDS(json_object_object_get_ex(value, "result", NULL) != json_object_object_get_ex(value, "error", NULL));
    HOLDS(json_object_object_length(value) == 2);
    json_object_put(value);
    answers++;
}

static void take_message(void *context, const char *text, size_t len) {
    struct gw_peer *peer = context;
    struct gw_frame frame;
    const char *fault = NULL;
    char *copy = exact_copy(text, len);
    unsigned before = answers;
    HOLDS(len <= MESSAGE_MAX && is_utf8(text, len));
    enum gw_code code = gw_frame_read(copy, len, &frame, &fault);
    HOLDS(!code == !fault);
    if (code != GW_OK) {
        gw_rpc_refuse(peer, frame.id, frame.id_len, code, fault);
    } else if (frame.kind == GW_FRAME_REQUEST) {
        gw_rpc_request(peer, &frame);
    } else {
        HOLDS(!frame.token != !frame.one_time_code);
        answers++;
    }
    HOLDS(answers == before + 1);
    gw_frame_free(&frame);
    free(copy);
}

static bool count_written(void *context, const uint8_t *data, size_t len) {
    (void)context;
    (void)data;
    written += len;
    return true;
}

static void feed(struct gw_peer *peer, const uint8_t *data, size_t size, size_t step) {
    struct gw_websocket socket = {.context = peer, .message = take_message, .write = count_written};
    HOLDS(gw_websocket_init(&socket, MESSAGE_MAX));
    for (size_t at = 0; at < size; at += step) {
        size_t len = step < size - at ? step : size - at;
        written = 0;
        if (!gw_websocket_feed(&socket, data + at, len)) {
            HOLDS(written >= 2); /* the gateway gives the reason in a close frame */
            break;
        }
    }
    gw_websocket_free(&socket);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct gw_peer peer = {.send = take_answer, .logged_in = true};
    if (size == 0) {
        return 0;
    }
    gw_rpc_init(&rpc);
    gw_peer_add(&rpc, &peer);
    if (data[0] & 1) {
        size_t len = size - 1 < MESSAGE_MAX ? size - 1 : MESSAGE_MAX;
        if (is_utf8((const char *)data + 1, len)) {
            take_message(&peer, (const char *)data + 1, len);
        }
    } else {
        feed(&peer, data + 1, size - 1, data[0] / 2 + 1u);
    }
    gw_peer_remove(&peer);
    gw_rpc_free(&rpc);
    return 0;
}
