/* Calls, answers and events, with peers that record what they are sent. */
#include "rpc/rpc.h"

#include <json-c/json.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

struct peer {
    struct gw_peer base;
    char last[4096];
    size_t last_len;
    unsigned sent;
};

static struct gw_rpc rpc;
static struct peer one;
static struct peer two;
static struct gw_reply *kept;

static void keep(struct gw_peer *base, const char *text, size_t len) {
    struct peer *peer = (struct peer *)base;
    peer->last_len = len < sizeof peer->last - 1 ? len : sizeof peer->last - 1;
    memcpy(peer->last, text, peer->last_len);
    peer->last[peer->last_len] = 0;
    peer->sent++;
}

static int set_up(void **state) {
    (void)state;
    gw_rpc_init(&rpc);
    one = (struct peer){.base = {.send = keep, .logged_in = true}};
    two = (struct peer){.base = {.send = keep}};
    gw_peer_add(&rpc, &one.base);
    gw_peer_add(&rpc, &two.base);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    gw_peer_remove(&two.base);
    if (one.base.link) {
        gw_peer_remove(&one.base);
    }
    gw_rpc_free(&rpc);
    return 0;
}

static void ask(const char *text) {
    struct gw_frame frame;
    const char *fault;
    assert_int_equal(gw_frame_read(text, strlen(text), &frame, &fault), GW_OK);
    gw_rpc_request(&one.base, &frame);
    gw_frame_free(&frame);
}

static void hold(void *context, struct gw_reply *call, const struct gw_params *params) {
    assert_ptr_equal(context, &kept);
    assert_non_null(call);
    assert_null(params->agent_id.text);
    kept = call;
}

static void test_answers(void **state) {
    (void)state;
    ask("{\"id\":\"a\",\"method\":\"health.check\"}");
    assert_string_equal(one.last, "{\"id\":\"a\",\"result\":{\"status\":\"ok\",\"uptime\":0}}");
    gw_app_set(&rpc, GW_SESSIONS_CREATE, hold, &kept);
    ask("{\"id\":\"b\",\"method\":\"sessions.create\",\"params\":{}}");
    assert_int_equal(one.sent, 1);
    fm_json_str(gw_reply_begin(kept), "later");
    gw_reply_end(kept);
    assert_string_equal(one.last, "{\"id\":\"b\",\"result\":\"later\"}");
    ask("{\"id\":\"c\",\"method\":\"sessions.create\"}");
    fm_json_object_begin(gw_reply_begin(kept)); /* the part of a result that was already written is dropped */
    gw_reply_fail(kept, GW_NOT_FOUND, "no agent %d", 5);
    assert_string_equal(one.last, "{\"id\":\"c\",\"error\":{\"code\":-32004,\"message\":\"no agent 5\"}}");
    assert_int_equal(one.base.call_count, 0);
}

static void test_a_peer_that_is_gone(void **state) {
    (void)state;
    gw_app_set(&rpc, GW_SESSIONS_CREATE, hold, &kept);
    ask("{\"id\":\"b\",\"method\":\"sessions.create\"}");
    gw_peer_remove(&one.base);
    fm_json_null(gw_reply_begin(kept));
    gw_reply_end(kept);
    assert_int_equal(one.sent, 0);
}

static void test_an_answer_that_is_too_long(void **state) {
    (void)state;
    char *text = calloc(1, GW_ANSWER_MAX);
    assert_non_null(text);
    memset(text, 'x', GW_ANSWER_MAX - 1);
    gw_app_set(&rpc, GW_SESSIONS_CREATE, hold, &kept);
    ask("{\"id\":\"b\",\"method\":\"sessions.create\"}");
    fm_json_str(gw_reply_begin(kept), text);
    gw_reply_end(kept);
    assert_non_null(strstr(one.last, "\"code\":-32603"));
    free(text);
}

static void drop(void *context, struct gw_reply *call, const struct gw_params *params) {
    struct gw_reply **calls = context;
    (void)params;
    while (*calls) {
        calls++;
    }
    *calls = call;
}

static void test_calls_are_limited(void **state) {
    struct gw_reply *calls[GW_CALLS_MAX + 2] = {NULL};
    (void)state;
    gw_app_set(&rpc, GW_SESSIONS_LIST, drop, calls);
    for (unsigned i = 0; i < GW_CALLS_MAX; i++) {
        ask("{\"id\":\"b\",\"method\":\"sessions.list\"}");
    }
    assert_int_equal(one.sent, 0);
    ask("{\"id\":\"b\",\"method\":\"sessions.list\"}");
    assert_non_null(strstr(one.last, "-32029"));
    for (unsigned i = 0; i < GW_CALLS_MAX; i++) {
        gw_reply_fail(calls[i], GW_BUSY, "x");
    }
}

static void test_events(void **state) {
    (void)state;
    char wanted[256];
    fm_json_key_str(gw_event_begin(&rpc, "chat.delta"), "runId", "r");
    int64_t seq = gw_event_end(&rpc, "k");
    snprintf(wanted, sizeof wanted,
             "{\"event\":\"chat.delta\",\"data\":{\"runId\":\"r\",\"sessionKey\":\"k\",\"seq\":%lld}}", (long long)seq);
    assert_string_equal(one.last, wanted);
    assert_int_equal(two.sent, 0); /* this peer is not logged in */
    assert_true(seq > 0 && seq < (int64_t)1 << 53);
    gw_event_begin(&rpc, "x");
    assert_int_equal(gw_event_end(&rpc, NULL), seq + 1);
    assert_null(strstr(one.last, "sessionKey"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_answers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_peer_that_is_gone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_an_answer_that_is_too_long, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_calls_are_limited, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_events, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
