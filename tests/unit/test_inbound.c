/*
 * Bytes to messages: a transcript of the callbacks, with any split. It has "msg(METHOD ID)", "fault(CODE ID DETAIL)",
 * and at the end "broken(FAULT)", "." if the input may end there, or "~" if not.
 */
#include "protocol/inbound.h"
#include "wire.h"

#include <json-c/json.h>

#define HEAD "{\"jsonrpc\":\"2.0\","
#define PING HEAD "\"id\":1,\"method\":\"ping\"}"
#define BATCH                                                                                                          \
    "not a JSON-RPC 2.0 request: an object with \"jsonrpc\":\"2.0\", a string \"method\" and a string or integer "     \
    "\"id\" is expected"

struct receiver {
    struct fm_inbound inbound;
    struct transcript *log;
    struct json_object *kept;
    bool broken;
};

static int shown(const struct fm_rpc_id *id) {
    return id->len ? (int)id->len : 4;
}

static void on_message(void *context, const struct fm_rpc_message *message, struct json_object *root) {
    struct receiver *receiver = context;
    static const char *const names[] = {"", "note:", "response:"};
    assert_true(json_object_is_type(root, json_type_object));
    note(receiver->log, "msg(%s%s %.*s) ", names[message->kind], message->method ? message->method : "",
         shown(&message->id), message->id.len ? message->id.text : "null");
    json_object_put(receiver->kept);
    /* the message must stay valid after the call, even if the body's bytes and the parser are gone */
    receiver->kept = json_object_get(root);
}

static void on_fault(void *context, const struct fm_rpc_id *id, enum fm_rpc_error code, const char *detail) {
    struct receiver *receiver = context;
    note(receiver->log, "fault(%d %.*s %s) ", code, shown(id), id->len ? id->text : "null", detail);
}

static void *start_receiver(struct transcript *log) {
    struct receiver *receiver = calloc(1, sizeof *receiver);
    assert_non_null(receiver);
    fm_inbound_init(&receiver->inbound);
    receiver->log = log;
    return receiver;
}

static void feed_receiver(void *context, const char *piece, size_t len) {
    struct receiver *receiver = context;
    struct fm_inbound_handler handler = {.context = receiver, .message = on_message, .fault = on_fault};
    size_t before = receiver->log->len;
    const char *fault = fm_inbound_feed(&receiver->inbound, piece, len, &handler);
    if (receiver->broken) { /* a broken input stays broken, without further callbacks */
        assert_non_null(fault);
        assert_int_equal(receiver->log->len, before);
    } else if (fault) {
        note(receiver->log, "broken(%s)", fault);
        receiver->broken = true;
    }
}

static void end_receiver(void *context) {
    struct receiver *receiver = context;
    bool boundary = fm_inbound_at_boundary(&receiver->inbound);
    assert_false(receiver->broken && boundary);
    if (!receiver->broken) {
        note(receiver->log, boundary ? "." : "~");
    }
    fm_inbound_free(&receiver->inbound);
    if (receiver->kept) {
        assert_non_null(json_object_to_json_string(receiver->kept));
        json_object_put(receiver->kept);
    }
    free(receiver);
}

static const struct subject inbound = {start_receiver, feed_receiver, end_receiver};

/* A body in a frame, and a ping after it: the events of the body, and the ping, which must still work. */
static void bodies(void **state) {
    (void)state;
    static const struct {
        const char *body;
        size_t len;
        const char *expected;
    } rows[] = {
        {BYTES(PING), "msg(ping 1) "},
        {BYTES(" " PING "\r\n"), "msg(ping 1) "},
        {BYTES(HEAD "\"method\":\"n\"}"), "msg(note:n null) "},
        {BYTES(HEAD "\"id\":\"x\",\"result\":1}"), "msg(response: \"x\") "},
        {BYTES(""), "fault(-32700 null the body is not valid JSON: a value is missing, at byte 0) "},
        {BYTES("{"), "fault(-32700 null the body is not valid JSON: a key is missing, at byte 1) "},
        {BYTES("nonsense"),
         "fault(-32700 null the body is not valid JSON: a word that JSON does not have, at byte 0) "},
        {BYTES(PING PING), "fault(-32700 null the body is not valid JSON: something follows the value, at byte 40) "},
        {BYTES(PING "\0"), "fault(-32700 null the body is not valid JSON: something follows the value, at byte 40) "},
        {BYTES("\xEF\xBB\xBF" PING), "fault(-32700 null the body is not valid JSON: a value is missing, at byte 0) "},
        {BYTES("\"\xC0\x80\""), "fault(-32700 null the body is not valid JSON: bytes that are not UTF-8, at byte 1) "},
        {BYTES("{\"\\u0000\":1}"), "fault(-32700 null the body is not valid JSON: a NUL in a key, at byte 8) "},
        {BYTES("[" PING "]"), "fault(-32600 null " BATCH ") "},
        {BYTES("[" PING "," PING "]"), "fault(-32600 null " BATCH ") "},
        {BYTES("[]"), "fault(-32600 null " BATCH ") "},
        {BYTES("null"), "fault(-32600 null " BATCH ") "},
        {BYTES("7"), "fault(-32600 null " BATCH ") "},
        {BYTES("-0.5e3"), "fault(-32600 null " BATCH ") "},
        {BYTES("\"x\""), "fault(-32600 null " BATCH ") "},
        {BYTES("true"), "fault(-32600 null " BATCH ") "},
        {BYTES("{}"), "fault(-32600 null " BATCH ") "},
        {BYTES(HEAD "\"id\":5}"), "fault(-32600 5 " BATCH ") "},
        {BYTES(HEAD "\"id\":1.5,\"method\":\"m\"}"), "fault(-32600 null " BATCH ") "},
        {BYTES("{\"id\":\"a\",\"method\":\"m\"}"), "fault(-32600 \"a\" " BATCH ") "},
        {BYTES("{\"method\":\"m\"}"), ""}, /* a notification gets no answer, even if it is invalid */
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char input[1024];
        size_t len = (size_t)snprintf(input, sizeof input, "Content-Length: %zu\r\n\r\n", rows[i].len);
        memcpy(input + len, rows[i].body, rows[i].len);
        len += rows[i].len;
        len +=
            (size_t)snprintf(input + len, sizeof input - len, "Content-Length: %zu\r\n\r\n%s", sizeof PING - 1, PING);
        char expected[1024];
        snprintf(expected, sizeof expected, "%smsg(ping 1) .", rows[i].expected);
        expect_in_any_split(&inbound, rows[i].body, input, len, expected);
    }
}

static void frames(void **state) {
    (void)state;
#define FRAMED "Content-Length: 40\r\n\r\n" PING
    static const struct {
        const char *name;
        const char *input;
        size_t len;
        const char *expected;
    } rows[] = {
        {"nothing", BYTES(""), "."},
        {"two", BYTES(FRAMED FRAMED), "msg(ping 1) msg(ping 1) ."},
        {"an end in the body", BYTES("Content-Length: 40\r\n\r\n{"), "~"},
        {"an end in the header", BYTES(FRAMED "Content-"), "msg(ping 1) ~"},
        {"another charset", BYTES("Content-Type: a/b; charset=utf-16\r\nContent-Length: 2\r\n\r\n{}" FRAMED),
         "fault(-32700 null the body's charset is not utf-8) msg(ping 1) ."},
        {"broken first", BYTES("Content-Length: x\r\n\r\n" FRAMED), "broken(Content-Length is not a decimal number)"},
        {"broken second", BYTES(FRAMED "GET / HTTP/1.1\r\n\r\n" FRAMED),
         "msg(ping 1) broken(a header line without a name and a colon)"},
        {"broken after a fault", BYTES("Content-Length: 1\r\n\r\n{\xFF" FRAMED),
         "fault(-32700 null the body is not valid JSON: a key is missing, at byte 1) "
         "broken(a header byte that is NUL or not ASCII)"},
        {"length short by one", BYTES("Content-Length: 39\r\n\r\n" PING FRAMED),
         "fault(-32700 null the body is not valid JSON: a comma or a closing bracket is missing, at byte 39) "
         "broken(a header name with a character that is not allowed)"},
        {"length long by one", BYTES("Content-Length: 41\r\n\r\n" PING FRAMED),
         "fault(-32700 null the body is not valid JSON: something follows the value, at byte 40) "
         "broken(a header without Content-Length)"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        expect_in_any_split(&inbound, rows[i].name, rows[i].input, rows[i].len, rows[i].expected);
    }
}

static void feed_too_large(struct receiver *receiver, size_t len) {
    static char block[65536] = {'x'};
    char header[64];
    snprintf(header, sizeof header, "Content-Length: %zu\r\n\r\n", len);
    feed_piece(feed_receiver, receiver, header, strlen(header));
    for (size_t left = len; left;) {
        size_t take = left < sizeof block ? left : sizeof block;
        feed_piece(feed_receiver, receiver, block, take);
        left -= take;
    }
    feed_piece(feed_receiver, receiver, BYTES(FRAMED));
}

/* The error names the limit: the host's default, or the one that was set. */
static void too_large_is_skipped(void **state) {
    (void)state;
    static struct transcript log;
    struct receiver *receiver = start_receiver(&log);
    feed_too_large(receiver, 20000000);
    end_receiver(receiver);
    assert_string_equal(log.text, "fault(-32700 null the body is larger than 10,000,000 bytes) msg(ping 1) .");
    log = (struct transcript){.len = 0};
    receiver = start_receiver(&log);
    fm_framer_set_max(&receiver->inbound.framer, 20000000);
    feed_too_large(receiver, 20000001);
    end_receiver(receiver);
    assert_string_equal(log.text, "fault(-32700 null the body is larger than 20,000,000 bytes) msg(ping 1) .");
}

/* Depth 64 is the same for both parsers: the params are level 2, so 62 more fit. */
static void depth(void **state) {
    (void)state;
    for (int levels = 62; levels <= 64; levels++) {
        static struct transcript log;
        char body[512];
        size_t len = (size_t)snprintf(body, sizeof body, HEAD "\"id\":1,\"method\":\"m\",\"params\":{\"a\":");
        memset(body + len, '[', (size_t)levels);
        len += (size_t)levels;
        body[len++] = '1';
        memset(body + len, ']', (size_t)levels);
        len += (size_t)levels;
        memcpy(body + len, "}}", 2);
        len += 2;
        char input[600];
        size_t head = (size_t)snprintf(input, sizeof input, "Content-Length: %zu\r\n\r\n", len);
        memcpy(input + head, body, len);
        log = (struct transcript){.len = 0};
        void *receiver = start_receiver(&log);
        feed_piece(feed_receiver, receiver, input, head + len);
        end_receiver(receiver);
        const char *expected =
            levels == 62 ? "msg(m 1) ."
                         : "fault(-32700 null the body is not valid JSON: more than 64 levels, at byte 113) .";
        assert_string_equal(log.text, expected);
    }
}

/* An array of `elements` numbers; the message has five other values. */
static void feed_values(struct receiver *receiver, size_t elements) {
    static const char start[] = HEAD "\"id\":1,\"method\":\"m\",\"params\":[0";
    char *input = malloc(2 * elements + 200);
    assert_non_null(input);
    size_t body = sizeof start - 1 + 2 * (elements - 1) + strlen("]}");
    size_t len = (size_t)snprintf(input, 200, "Content-Length: %zu\r\n\r\n%s", body, start);
    for (size_t i = 1; i < elements; i++, len += 2) {
        memcpy(input + len, ",0", 2);
    }
    memcpy(input + len, "]}", 2);
    feed_piece(feed_receiver, receiver, input, len + 2);
    free(input);
}

/* The host's limit, and one that was set. */
static void values(void **state) {
    (void)state;
    for (size_t max = 65536; max <= 131072; max += 65536) {
        static struct transcript log;
        char expected[200];
        log = (struct transcript){.len = 0};
        struct receiver *receiver = start_receiver(&log);
        assert_int_equal(receiver->inbound.values_max, 65536);
        receiver->inbound.values_max = max;
        feed_values(receiver, max - 5);
        feed_values(receiver, max - 4);
        feed_piece(feed_receiver, receiver, BYTES(FRAMED));
        end_receiver(receiver);
        snprintf(expected, sizeof expected,
                 "msg(m 1) fault(-32700 null the body has more than %s values) msg(ping 1) .",
                 max == 65536 ? "65,536" : "131,072");
        assert_string_equal(log.text, expected);
    }
}

/* After a prompt of megabytes, neither the frame's buffer nor json-c keeps memory. */
static void a_large_message_is_given_back(void **state) {
    (void)state;
    static struct transcript log;
    log = (struct transcript){.len = 0};
    struct receiver *receiver = start_receiver(&log);
    size_t prompt = 5000000;
    char *input = malloc(prompt + 200);
    assert_non_null(input);
    size_t len = (size_t)snprintf(input, 200,
                                  "Content-Length: %zu\r\n\r\n" HEAD "\"id\":1,\"method\":\"m\",\"params\":{\"a\":\"",
                                  prompt + strlen(HEAD "\"id\":1,\"method\":\"m\",\"params\":{\"a\":\"\"}}"));
    memset(input + len, 'x', prompt);
    len += prompt;
    memcpy(input + len, "\"}}", 3);
    len += 3;
    feed_steps(feed_receiver, receiver, input, len, 65536);
    free(input);
    assert_string_equal(log.text, "msg(m 1) ");
    json_object_put(receiver->kept);
    receiver->kept = NULL;
    feed_piece(feed_receiver, receiver, BYTES("C"));
    assert_int_equal(receiver->inbound.framer.body.cap, 0);
    assert_in_range(receiver->inbound.scratch.cap, 0, 65536);
    end_receiver(receiver);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies), cmocka_unit_test(frames), cmocka_unit_test(too_large_is_skipped),
        cmocka_unit_test(depth),  cmocka_unit_test(values), cmocka_unit_test(a_large_message_is_given_back),
    };
    return cmocka_run_group_tests_name("inbound", tests, NULL, NULL);
}
