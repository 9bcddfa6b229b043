/* Server-sent events: a transcript of the events, with any split. It has "NAME(DATA) ", and the status at the end. */
#include "engine/remote/sse.h"

#include "wire.h"

#include <stdio.h>

static const struct row {
    const char *in;
    const char *out;
} rows[] = {
    {"", "more"},
    {"data: a\n\n", "(a) more"},
    {"data:a\n\n", "(a) more"},
    {"data:  a\n\n", "( a) more"},
    {"data: a\r\n\r\n", "(a) more"},
    {"data: a\r\rdata: b\r\r", "(a) (b) more"},
    {"data: a\n\r\ndata: b\r\n\n", "(a) (b) more"},
    {"data: a\ndata: b\n\n", "(a\nb) more"},
    {"data\n\n", "() more"},
    {"data\ndata\n\n", "(\n) more"},
    {"data:\n\n", "() more"},
    {"\n\n\n", "more"},
    {"event: x\n\n", "more"},
    {"event: x\ndata: a\n\ndata: b\n\n", "x(a) (b) more"},
    {"data: a\nevent: x\nevent: y\n\n", "y(a) more"},
    {": note\ndata: a\n: note\n\n", "(a) more"},
    {"id: 1\nretry: 5\nnonsense\nother: x\ndata: a\n\n", "(a) more"},
    {"data: a\n", "more"},
    {"data: a", "more"},
    {"data: a\n\ndata: b\n", "(a) more"},
    {"\xef\xbb\xbf"
     "data: a\n\n",
     "(a) more"},
    {"data: a\n\n\xef\xbb\xbf"
     "data: b\n\n",
     "(a) more"},
    {"Data: a\n\n", "more"},
    {" data: a\n\n", "more"},
    {"data: a:b: c\n\n", "(a:b: c) more"},
    {"data: \xc3\xa4\xe2\x82\xac\n\n", "(\xc3\xa4\xe2\x82\xac) more"},
    {"data: stop\n\ndata: b\n\n", "(stop) stopped"},
};

struct parser {
    struct fm_sse sse;
    struct transcript *log;
};

static bool take(void *state, const struct fm_sse_event *event) {
    struct parser *parser = state;
    note(parser->log, "%.*s(%.*s) ", (int)event->name_len, event->name, (int)event->len, event->data);
    return event->len != 4 || memcmp(event->data, "stop", 4) != 0;
}

static void *start_parser(struct transcript *log) {
    struct parser *parser = malloc(sizeof *parser);
    assert_non_null(parser);
    fm_sse_init(&parser->sse, take, parser);
    parser->log = log;
    return parser;
}

static void feed_parser(void *context, const char *piece, size_t len) {
    struct parser *parser = context;
    enum fm_sse_status status = fm_sse_push(&parser->sse, piece, len);
    assert_true(status == FM_SSE_MORE || status == FM_SSE_STOPPED);
}

static void end_parser(void *context) {
    struct parser *parser = context;
    note(parser->log, parser->sse.status == FM_SSE_MORE ? "more" : "stopped");
    fm_sse_free(&parser->sse);
    fm_sse_free(&parser->sse);
    free(parser);
}

static const struct subject subject = {start_parser, feed_parser, end_parser};

static void events(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        expect_in_any_split(&subject, rows[i].in, rows[i].in, strlen(rows[i].in), rows[i].out);
    }
}

/* A NUL is an ordinary byte. */
static void nuls(void **state) {
    (void)state;
    expect_in_any_split(&subject, "a NUL in a name", BYTES("da\0ta: a\n\ndata: b\n\n"), "(b) more");
}

static bool count(void *state, const struct fm_sse_event *event) {
    *(size_t *)state += event->len;
    return true;
}

static enum fm_sse_status push_many(struct fm_sse *sse, const char *text, size_t times) {
    enum fm_sse_status status = FM_SSE_MORE;
    for (size_t i = 0; i < times && status == FM_SSE_MORE; i++) {
        status = fm_sse_push(sse, text, strlen(text));
    }
    return status;
}

/* A line can be too long, or an event of many lines. After this fault, later input changes nothing. */
static void limits(void **state) {
    static const char sixteen[] = "0123456789abcdef";
    (void)state;
    struct fm_sse sse;
    size_t bytes = 0;
    fm_sse_init(&sse, count, &bytes);
    assert_int_equal(push_many(&sse, "data:", 1), FM_SSE_MORE);
    assert_int_equal(push_many(&sse, sixteen, FM_SSE_EVENT_MAX / 16 + 1), FM_SSE_TOO_LONG);
    assert_int_equal(fm_sse_push(&sse, BYTES("\n\ndata: a\n\n")), FM_SSE_TOO_LONG);
    fm_sse_free(&sse);
    fm_sse_init(&sse, count, &bytes);
    assert_int_equal(push_many(&sse, "data: 0123456789abcde\n", FM_SSE_EVENT_MAX / 16), FM_SSE_MORE);
    assert_int_equal(push_many(&sse, "\n", 1), FM_SSE_MORE);
    assert_int_equal(bytes, FM_SSE_EVENT_MAX - 1);
    assert_int_equal(push_many(&sse, "data: 0123456789abcde\n", FM_SSE_EVENT_MAX / 16 + 1), FM_SSE_TOO_LONG);
    fm_sse_free(&sse);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(events), cmocka_unit_test(nuls), cmocka_unit_test(limits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
