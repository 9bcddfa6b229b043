/* The rules for request heads, row by row. tests/gateway/test_net.py sends more heads to the real program. */
#include "net/head.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define HOST      "Host: 127.0.0.1:18789\r\n"
#define GET       "GET / HTTP/1.1\r\n" HOST
#define UPGRADE   "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
#define KEY       "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
#define TEN(text) text text text text text text text text text text

static const struct row {
    const char *head;
    int status;
    bool websocket;
} rows[] = {
    {GET, 0, false},
    {"HEAD /a/b.js HTTP/1.1\r\n" HOST, 0, false},
    {"GET / HTTP/1.1\r\nhost: LocalHost:18789\r\n", 0, false},
    {"GET / HTTP/1.1\r\nHost: [::1]:18789\r\n", 0, false},
    {"GET / HTTP/1.1\r\nHost:\t127.0.0.1:18789 \r\n", 0, false},
    {GET "Origin: http://localhost:18789\r\n", 0, false},
    {GET UPGRADE KEY, 0, true},
    {GET UPGRADE KEY "Origin: http://[::1]:18789\r\n", 0, true},
    {"GET / HTTP/1.1\r\n", 400, false},
    {"GET / HTTP/1.1\r\n" HOST HOST, 400, false},
    {"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n", 421, false},
    {"GET / HTTP/1.1\r\nHost: evil.example:18789\r\n", 421, false},
    {"GET / HTTP/1.1\r\nHost: 127.0.0.1:18789.evil.example\r\n", 421, false},
    {"GET / HTTP/1.1\r\nHost: 127.0.0.1:187890\r\n", 421, false},
    {"GET / HTTP/1.1\r\nHost:\r\n", 421, false},
    {GET "Origin: null\r\n", 403, false},
    {GET "Origin: http://localhost:5173\r\n", 403, false},
    {GET "Origin: https://localhost:18789\r\n", 403, false},
    {GET "Origin: http://localhost:18789\r\nOrigin: http://localhost:18789\r\n", 403, false},
    {"POST / HTTP/1.1\r\n" HOST, 405, false},
    {GET "Content-Length: 1\r\n", 400, false},
    {GET "Transfer-Encoding: chunked\r\n", 400, false},
    {"GET /?token=x HTTP/1.1\r\n" HOST, 400, false},
    {"GET http://127.0.0.1:18789/ HTTP/1.1\r\n" HOST, 400, false},
    {"OPTIONS * HTTP/1.1\r\n" HOST, 400, false},
    {"GET / HTTP/1.0\r\n" HOST, 505, false},
    {GET "A: b\r\n c\r\n", 400, false},
    {GET "A b: c\r\n", 400, false},
    {GET TEN(TEN("A: b\r\n")), 431, false},
    {GET "Upgrade: h2c\r\nConnection: Upgrade\r\n", 400, false},
    {GET "Upgrade: websocket\r\nConnection: close\r\n", 400, false},
    {GET UPGRADE, 400, false},
    {GET UPGRADE KEY KEY, 400, false},
    {GET UPGRADE "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAA===\r\n", 400, false},
    {GET "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 8\r\n" KEY, 426, false},
    {"HEAD / HTTP/1.1\r\n" HOST UPGRADE KEY, 400, false},
};

static void test_rows(void **state) {
    const struct gw_head_policy policy = {.port = 18789};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char head[2048];
        struct gw_request request = {0};
        const char *reason = NULL;
        size_t len = (size_t)snprintf(head, sizeof head, "%s\r\n", rows[i].head);
        assert_int_equal(gw_head_end(head, len, 0), len);
        int status = gw_head_read(head, len, &policy, &request, &reason);
        if (status != rows[i].status || (!status && request.websocket != rows[i].websocket)) {
            fail_msg("%d for %s", status, head);
        }
        assert_true(!status == !reason);
    }
}

static void test_dev(void **state) {
    const struct gw_head_policy policy = {.port = 18789, .dev = true};
    static const char head[] = GET "Origin: http://localhost:5173\r\n\r\n";
    static const char other[] = "GET / HTTP/1.1\r\nHost: localhost:5173\r\n\r\n";
    struct gw_request request;
    const char *reason;
    (void)state;
    assert_int_equal(gw_head_read(head, sizeof head - 1, &policy, &request, &reason), 0);
    assert_int_equal(gw_head_read(other, sizeof other - 1, &policy, &request, &reason), 421);
}

/* The end is found in any pieces, and not before the head is complete. */
static void test_the_end_of_a_head(void **state) {
    static const char head[] = GET "\r\nmore";
    (void)state;
    for (size_t len = 0; len < sizeof head; len++) {
        size_t whole = strlen(GET) + 2;
        assert_int_equal(gw_head_end(head, len, 0), len >= whole ? whole : 0);
        if (len && len <= whole) { /* the last byte has just arrived */
            assert_int_equal(gw_head_end(head, len, len - 1), len == whole ? whole : 0);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_dev),
        cmocka_unit_test(test_the_end_of_a_head),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
