/*
 * Frames: every rule of PROTOCOL.md, "Frames". Each input is fed with any split. A transcript ends with "." if the
 * input may end at this place, and with "~" if not.
 */
#include "protocol/frame.h"
#include "wire.h"

#define PING "Content-Length: 4\r\n\r\nping"

struct feeding {
    struct fm_framer framer;
    struct transcript *log;
    bool broken;
};

static void *start_framer(struct transcript *log) {
    struct feeding *feeding = calloc(1, sizeof *feeding);
    assert_non_null(feeding);
    fm_framer_init(&feeding->framer);
    feeding->log = log;
    return feeding;
}

static void feed_framer(void *context, const char *piece, size_t len) {
    struct feeding *feeding = context;
    const char *body = NULL;
    size_t body_len = 0;
    for (;;) {
        switch (fm_framer_next(&feeding->framer, &piece, &len, &body, &body_len)) {
        case FM_FRAME_MORE: assert_int_equal(len, 0); return;
        case FM_FRAME_BODY: note_body(feeding->log, body, body_len); break;
        case FM_FRAME_TOO_LARGE: note(feeding->log, "too-large "); break;
        case FM_FRAME_CHARSET: note(feeding->log, "charset "); break;
        case FM_FRAME_NO_MEMORY: note(feeding->log, "no-memory "); break;
        case FM_FRAME_BROKEN:
            if (!feeding->broken) { /* later pieces must report the same fault again */
                note(feeding->log, "broken(%s) ", feeding->framer.fault);
            }
            feeding->broken = true;
            return;
        }
        assert_false(feeding->broken);
    }
}

static void end_framer(void *context) {
    struct feeding *feeding = context;
    note(feeding->log, fm_framer_at_boundary(&feeding->framer) ? "." : "~");
    fm_framer_free(&feeding->framer);
    free(feeding);
}

static const struct subject framer = {start_framer, feed_framer, end_framer};

struct row {
    const char *name;
    const char *input;
    size_t len;
    const char *expected;
};

static void expect_rows(const struct row *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        expect_in_any_split(&framer, rows[i].name, rows[i].input, rows[i].len, rows[i].expected);
    }
}

static void valid_headers(void **state) {
    (void)state;
    static const struct row rows[] = {
        {"one frame", BYTES(PING), "body(ping) ."},
        {"nothing", BYTES(""), "."},
        {"two frames", BYTES(PING PING), "body(ping) body(ping) ."},
        {"upper case", BYTES("CONTENT-LENGTH: 4\r\n\r\nping"), "body(ping) ."},
        {"lower case", BYTES("content-length: 4\r\n\r\nping"), "body(ping) ."},
        {"mixed case", BYTES("cOnTeNt-lEnGtH: 4\r\n\r\nping"), "body(ping) ."},
        {"no space", BYTES("Content-Length:4\r\n\r\nping"), "body(ping) ."},
        {"many spaces", BYTES("Content-Length:    4\r\n\r\nping"), "body(ping) ."},
        {"a tab", BYTES("Content-Length:\t4\r\n\r\nping"), "body(ping) ."},
        {"blanks after", BYTES("Content-Length: 4 \t \r\n\r\nping"), "body(ping) ."},
        {"type before", BYTES("Content-Type: application/json\r\nContent-Length: 4\r\n\r\nping"), "body(ping) ."},
        {"type after", BYTES("Content-Length: 4\r\nContent-Type: application/json\r\n\r\nping"), "body(ping) ."},
        {"unknown headers", BYTES("X-A: 1\r\nContent-Length: 4\r\n!#$%&'*+-.^_`|~9: \x01\x7f\r\n\r\nping"),
         "body(ping) ."},
        {"an empty value", BYTES("X-A:\r\nContent-Length: 4\r\n\r\nping"), "body(ping) ."},
        {"a similar name",
         BYTES("X-Content-Length: 9\r\nContent-Lengths: 9\r\nContent-Lengtx: 9\r\nContent-Length: 4\r\n\r\nping"),
         "body(ping) ."},
        {"a body that holds a frame", BYTES("Content-Length: 25\r\n\r\n" PING PING), "body(" PING ") body(ping) ."},
        {"a body of any bytes", BYTES("Content-Length: 5\r\n\r\n\xEF\xBB\xBF\r\n" PING),
         "body(\xEF\xBB\xBF\r\n) body(ping) ."},
        {"length 0, then the next", BYTES("Content-Length: 0\r\n\r\n" PING), "body() body(ping) ."},
    };
    expect_rows(rows, COUNT(rows));
}

static void charsets(void **state) {
    (void)state;
#define TYPED(type) BYTES("Content-Type: " type "\r\nContent-Length: 2\r\n\r\n{}" PING)
    static const char good[] = "body({}) body(ping) .";
    static const char skipped[] = "charset body(ping) .";
    static const struct row rows[] = {
        {"utf-8", TYPED("application/vscode-jsonrpc; charset=utf-8"), good},
        {"utf8", TYPED("application/vscode-jsonrpc; charset=utf8"), good},
        {"UTF-8", TYPED("application/vscode-jsonrpc;CHARSET=UTF-8"), good},
        {"quoted", TYPED("a/b; charset=\"utf-8\""), good},
        {"another parameter after", TYPED("a/b; charset=utf-8 ; q=1"), good},
        {"none", TYPED("a/b"), good},
        {"utf-16", TYPED("a/b; charset=utf-16"), skipped},
        {"utf-16 quoted", TYPED("a/b; charset=\"utf-16\""), skipped},
        {"latin-1", TYPED("a/b; charset=iso-8859-1"), skipped},
        {"more than utf-8", TYPED("a/b; charset=utf-80"), skipped},
        {"less than utf8", TYPED("a/b; charset=utf"), skipped},
        {"empty", TYPED("a/b; charset="), skipped},
        {"one quote", TYPED("a/b; charset=\""), skipped},
        {"a quote that does not close", TYPED("a/b; charset=\"utf-8"), skipped},
        {"of utf8's length", TYPED("a/b; charset=abcd"), skipped},
        {"of utf-8's length", TYPED("a/b; charset=ascii"), skipped},
        {"after the length", BYTES("Content-Length: 2\r\nContent-Type: a/b; charset=utf-16\r\n\r\n{}" PING), skipped},
        {"empty body", BYTES("Content-Length: 0\r\nContent-Type: a/b; charset=utf-16\r\n\r\n" PING), skipped},
    };
    expect_rows(rows, COUNT(rows));
}

static void bad_headers(void **state) {
    (void)state;
    static const char line_end[] = "broken(a header line that does not end with CR LF) ~";
    static const char no_colon[] = "broken(a header line without a name and a colon) ~";
    static const char bad_name[] = "broken(a header name with a character that is not allowed) ~";
    static const char bad_byte[] = "broken(a header byte that is NUL or not ASCII) ~";
    static const char no_length[] = "broken(a header without Content-Length) ~";
    static const char twice[] = "broken(a second Content-Length) ~";
    static const struct row rows[] = {
        {"LF only", BYTES("Content-Length: 4\n\nping" PING), line_end},
        {"LF at the end", BYTES("Content-Length: 4\r\n\nping" PING), line_end},
        {"LF in the middle", BYTES("X-A: 1\nContent-Length: 4\r\n\r\nping" PING), line_end},
        {"LF first", BYTES("\n" PING), line_end},
        {"bare CR", BYTES("Content-Length: 4\rX-A: 1\r\n\r\nping" PING), line_end},
        {"CR CR LF", BYTES("Content-Length: 4\r\r\n\r\nping" PING), line_end},
        {"bare CR at the end", BYTES("Content-Length: 4\r\n\rping" PING), line_end},
        {"folded by a space", BYTES("X-A: 1\r\n 2\r\nContent-Length: 4\r\n\r\nping" PING), no_colon},
        {"folded by a tab", BYTES("X-A: 1\r\n\tb: 2\r\nContent-Length: 4\r\n\r\nping" PING), bad_name},
        {"folded length", BYTES("Content-Length:\r\n 4\r\n\r\nping" PING),
         "broken(Content-Length is not a decimal number) ~"},
        {"no colon", BYTES("Content-Length 4\r\n\r\nping" PING), no_colon},
        {"no name", BYTES(": 4\r\n\r\nping" PING), no_colon},
        {"space before the colon", BYTES("Content-Length : 4\r\n\r\nping" PING), bad_name},
        {"space before the name", BYTES(" Content-Length: 4\r\n\r\nping" PING), bad_name},
        {"parenthesis in a name", BYTES("X(A): 4\r\n" PING), bad_name},
        {"DEL in a name", BYTES("X\x7f: 4\r\n" PING), bad_name},
        {"no length", BYTES("Content-Type: a/b\r\n\r\nping" PING), no_length},
        {"no header at all", BYTES("\r\n" PING), no_length},
        {"one line end too many", BYTES(PING "\r\n" PING), "body(ping) broken(a header without Content-Length) ~"},
        {"twice, equal", BYTES("Content-Length: 4\r\nContent-Length: 4\r\n\r\nping" PING), twice},
        {"twice, different", BYTES("Content-Length: 4\r\ncontent-length: 2\r\n\r\nping" PING), twice},
        {"twice, 0 first", BYTES("Content-Length: 0\r\nContent-Length: 4\r\n\r\nping" PING), twice},
        {"NUL in a name", BYTES("X-\0A: 1\r\n" PING), bad_byte},
        {"NUL in a value", BYTES("Content-Length: 4\0\r\n\r\nping" PING), bad_byte},
        {"byte 0x80", BYTES("X-A: \x80\r\n" PING), bad_byte},
        {"byte 0xFF", BYTES("X-A: \xFF\r\n" PING), bad_byte},
        {"UTF-8 in a value", BYTES("X-A: \xC3\xA9\r\n" PING), bad_byte},
        {"a BOM", BYTES("\xEF\xBB\xBF" PING), bad_byte},
        {"HTTP", BYTES("GET / HTTP/1.1\r\nContent-Length: 4\r\n\r\nping" PING), no_colon},
        {"a body without header", BYTES("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"health.ping\"}\n" PING), line_end},
        {"random bytes", BYTES("\x1F\x8B\x08\0\0\0\0\0" PING), bad_byte},
        {"a good frame before", BYTES(PING "Content-Length: x\r\n\r\n" PING),
         "body(ping) broken(Content-Length is not a decimal number) ~"},
        {"length short by one", BYTES("Content-Length: 3\r\n\r\nping\r\n" PING),
         "body(pin) broken(a header line without a name and a colon) ~"},
    };
    expect_rows(rows, COUNT(rows));
}

static void bad_lengths(void **state) {
    (void)state;
    static const char *const not_decimal[] = {
        "",
        " ",
        "-1",
        "-0",
        "+5",
        "0x10",
        "010",
        "00",
        "1e3",
        "5.0",
        "5,5",
        "5 5",
        "5;",
        "4\v",
        "4\f",
        "a",
        "4a",
        "a4",
        "4:",
        "99999999999999999999",                    /* 20 digits */
        "18446744073709551620",                    /* 2^64 + 4: it would be 4 with a wrap-around */
        "340282366920938463463374607431768211460", /* 2^128 + 4 */
        "00000000000000000004",
    };
    static const char *const above[] = {"40000001", "4294967300", "2147483648", "9223372036854775807",
                                        "9999999999999999999"};
    char input[1024];
    for (size_t i = 0; i < COUNT(not_decimal); i++) {
        int len = snprintf(input, sizeof input, "Content-Length: %s\r\n\r\nping" PING, not_decimal[i]);
        expect_in_any_split(&framer, not_decimal[i], input, (size_t)len,
                            "broken(Content-Length is not a decimal number) ~");
    }
    for (size_t i = 0; i < COUNT(above); i++) {
        int len = snprintf(input, sizeof input, "Content-Length: %s\r\n\r\nping" PING, above[i]);
        expect_in_any_split(&framer, above[i], input, (size_t)len, "broken(Content-Length is above 40,000,000) ~");
    }
}

static void ends_inside(void **state) {
    (void)state;
    static const struct row rows[] = {
        {"inside a name", BYTES("Conte"), "~"},
        {"inside a line end", BYTES("Content-Length: 4\r"), "~"},
        {"inside the last line end", BYTES("Content-Length: 4\r\n\r"), "~"},
        {"before the body", BYTES("Content-Length: 4\r\n\r\n"), "~"},
        {"inside the body", BYTES("Content-Length: 4\r\n\r\npin"), "~"},
        {"inside the second", BYTES(PING "C"), "body(ping) ~"},
        {"inside a skipped body", BYTES("Content-Length: 10000001\r\n\r\nping"), "~"},
    };
    expect_rows(rows, COUNT(rows));
}

/* A header of exactly `total` bytes: an unknown line as filler, then the length. The frame's body is "ping". */
static size_t filled_header(char *out, size_t total) {
    static const char head[] = "X-Fill: ";
    static const char tail[] = "\r\nContent-Length: 4\r\n\r\n";
    size_t fill = total - (sizeof head - 1) - (sizeof tail - 1);
    memcpy(out, head, sizeof head - 1);
    memset(out + sizeof head - 1, 'x', fill);
    memcpy(out + sizeof head - 1 + fill, tail, sizeof tail - 1);
    memcpy(out + total, "ping", 4);
    return total + 4;
}

static void header_size(void **state) {
    (void)state;
    static const struct {
        size_t header;
        const char *expected;
    } rows[] = {
        {4096, "body(ping) ."},
        {8192 - 1, "body(ping) ."},
        {8192, "body(ping) ."},
        {8192 + 1, "broken(a header of more than 8,192 bytes) ~"},
        {8192 * 4, "broken(a header of more than 8,192 bytes) ~"},
    };
    static char input[8192 * 4 + 4];
    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t len = filled_header(input, rows[i].header);
        expect_in_any_split(&framer, "a long header", input, len, rows[i].expected);
    }
    memset(input, 'x', sizeof input); /* a line that does not end */
    expect_in_any_split(&framer, "no line end", input, sizeof input, "broken(a header of more than 8,192 bytes) ~");
}

static void header_lines(void **state) {
    (void)state;
    char input[1024];
    for (int lines = 31; lines <= 33; lines++) {
        size_t len = 0;
        for (int i = 1; i < lines; i++) {
            len += (size_t)snprintf(input + len, sizeof input - len, "X: %d\r\n", i);
        }
        len += (size_t)snprintf(input + len, sizeof input - len, PING);
        expect_in_any_split(&framer, "header lines", input, len,
                            lines <= 32 ? "body(ping) ." : "broken(more than 32 header lines) ~");
    }
}

static void sizes(void **state) {
    (void)state;
    static const struct {
        size_t body;
        const char *expected;
    } rows[] = {
        {FM_FRAME_BODY_MAX - 1, "body[9999999] body(ping) ."},
        {FM_FRAME_BODY_MAX, "body[10000000] body(ping) ."},
        {FM_FRAME_BODY_MAX + 1, "too-large body(ping) ."},
        {FM_FRAME_DISCARD_MAX, "too-large body(ping) ."},
        {FM_FRAME_DISCARD_MAX + 1, "broken(Content-Length is above 40,000,000) ~"},
    };
    static const size_t steps[] = {1, 65521, SIZE_MAX};
    char *input = malloc(FM_FRAME_DISCARD_MAX + 256);
    assert_non_null(input);
    static struct transcript log;
    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t header = (size_t)snprintf(input, 64, "Content-Length: %zu\r\n\r\n", rows[i].body);
        memset(input + header, 'x', rows[i].body);
        memcpy(input + header + rows[i].body, PING, sizeof PING - 1);
        size_t first = rows[i].body == FM_FRAME_BODY_MAX + 1 ? 0 : 1; /* feeding byte by byte is slow */
        for (size_t s = first; s < COUNT(steps); s++) {
            log = (struct transcript){.len = 0};
            void *feeding = start_framer(&log);
            feed_steps(feed_framer, feeding, input, header + rows[i].body + sizeof PING - 1, steps[s]);
            end_framer(feeding);
            expect_text("size", "in steps of", steps[s], rows[i].expected, log.text);
        }
    }
    free(input);
}

static void many_frames_in_one_piece(void **state) {
    (void)state;
    static char input[64 * 64];
    static char expected[64 * 32];
    size_t len = 0;
    size_t expected_len = 0;
    for (int i = 0; i < 64; i++) {
        len += (size_t)snprintf(input + len, sizeof input - len, "Content-Length: %d\r\n\r\n<%d>", i < 10 ? 3 : 4, i);
        expected_len += (size_t)snprintf(expected + expected_len, sizeof expected - expected_len, "body(<%d>) ", i);
    }
    snprintf(expected + expected_len, sizeof expected - expected_len, ".");
    expect_in_any_split(&framer, "64 frames", input, len, expected);
}

static void feed_text(struct fm_framer *subject, const char *data, size_t len, enum fm_frame_event expected) {
    const char *body;
    size_t body_len;
    assert_int_equal(fm_framer_next(subject, &data, &len, &body, &body_len), expected);
    assert_int_equal(len, 0);
}

static void a_length_allocates_nothing(void **state) {
    (void)state;
    struct fm_framer subject;
    fm_framer_init(&subject);
    assert_null(subject.body.data);
    feed_text(&subject, BYTES("Content-Length: 10000000\r\n\r\n"), FM_FRAME_MORE);
    assert_int_equal(subject.body.cap, 0);
    feed_text(&subject, BYTES("x"), FM_FRAME_MORE);
    assert_in_range(subject.body.cap, 1, 4096);
    char block[4096] = {0};
    for (size_t sent = 1; sent < 1000000; sent += sizeof block) {
        feed_text(&subject, block, sizeof block, FM_FRAME_MORE);
        assert_in_range(subject.body.cap, sent, 2 * sent + 2 * sizeof block);
    }
    fm_framer_free(&subject);

    fm_framer_init(&subject); /* a skipped body is not kept */
    feed_text(&subject, BYTES("Content-Length: 10000001\r\n\r\nxxxxxxxx"), FM_FRAME_MORE);
    assert_int_equal(subject.body.cap, 0);
    fm_framer_free(&subject);
}

static void a_large_body_is_given_back(void **state) {
    (void)state;
    static char block[200000];
    struct fm_framer subject;
    fm_framer_init(&subject);
    feed_text(&subject, BYTES("Content-Length: 200001\r\n\r\nx"), FM_FRAME_MORE);
    feed_text(&subject, block, sizeof block, FM_FRAME_BODY);
    assert_true(subject.body.cap >= 200001);
    feed_text(&subject, BYTES("C"), FM_FRAME_MORE);
    assert_int_equal(subject.body.cap, 0);
    fm_framer_free(&subject);
}

static void no_memory_skips_one_body(void **state) {
    (void)state;
    struct fm_framer subject;
    fm_framer_init(&subject);
    subject.body.max = 8; /* this makes an allocation fail */
    feed_text(&subject, BYTES("Content-Length: 12\r\n\r\n123"), FM_FRAME_MORE);
    feed_text(&subject, BYTES("456789"), FM_FRAME_MORE);
    feed_text(&subject, BYTES("012"), FM_FRAME_NO_MEMORY);
    assert_true(fm_framer_at_boundary(&subject));
    feed_text(&subject, BYTES("Content-Length: 4\r\n\r\npi"), FM_FRAME_MORE);
    feed_text(&subject, BYTES("ng"), FM_FRAME_BODY);
    fm_framer_free(&subject);
}

static void written_frames_are_read(void **state) {
    (void)state;
    static const size_t sizes_written[] = {0, 1, 9, 10, 99, 100, 65536, FM_FRAME_BODY_MAX};
    struct fm_buf buf;
    fm_buf_init(&buf, FM_FRAME_BODY_MAX + 64);
    for (size_t i = 0; i < COUNT(sizes_written); i++) {
        size_t size = sizes_written[i];
        fm_frame_begin(&buf);
        assert_true(size == 0 || fm_buf_reserve(&buf, size));
        memset(buf.data + buf.len, 'b', size);
        buf.len += size;
        const char *frame;
        size_t len;
        assert_true(fm_frame_end(&buf, &frame, &len));
        assert_memory_equal(frame, "Content-Length: ", 16);

        struct fm_framer subject;
        fm_framer_init(&subject);
        const char *body = NULL;
        size_t body_len = 0;
        assert_int_equal(fm_framer_next(&subject, &frame, &len, &body, &body_len), FM_FRAME_BODY);
        assert_int_equal(body_len, size);
        assert_int_equal(len, 0);
        fm_framer_free(&subject);
    }
    fm_buf_free(&buf);
}

static void a_frame_as_text(void **state) {
    (void)state;
    struct fm_buf buf;
    fm_buf_init(&buf, 1000);
    const char *frame;
    size_t len;
    for (int i = 0; i < 2; i++) { /* the second call of fm_frame_begin drops the first frame */
        fm_frame_begin(&buf);
        fm_buf_append_str(&buf, "{\"id\":10}");
        assert_true(fm_frame_end(&buf, &frame, &len));
        assert_int_equal(len, strlen("Content-Length: 9\r\n\r\n{\"id\":10}"));
        assert_memory_equal(frame, "Content-Length: 9\r\n\r\n{\"id\":10}", len);
    }
    fm_buf_free(&buf);
}

static void a_failed_buffer_makes_no_frame(void **state) {
    (void)state;
    struct fm_buf buf;
    fm_buf_init(&buf, 40);
    const char *frame;
    size_t len;
    fm_frame_begin(&buf);
    fm_buf_append_str(&buf, "more than the eight bytes that are left");
    assert_false(fm_frame_end(&buf, &frame, &len));
    fm_frame_begin(&buf); /* the buffer is usable again for the next frame */
    fm_buf_append_str(&buf, "{}");
    assert_true(fm_frame_end(&buf, &frame, &len));
    fm_buf_free(&buf);

    fm_buf_init(&buf, 8); /* no room even for a header */
    fm_frame_begin(&buf);
    assert_false(fm_frame_end(&buf, &frame, &len));
    fm_buf_free(&buf);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_headers),
        cmocka_unit_test(charsets),
        cmocka_unit_test(bad_headers),
        cmocka_unit_test(bad_lengths),
        cmocka_unit_test(ends_inside),
        cmocka_unit_test(header_size),
        cmocka_unit_test(header_lines),
        cmocka_unit_test(sizes),
        cmocka_unit_test(many_frames_in_one_piece),
        cmocka_unit_test(a_length_allocates_nothing),
        cmocka_unit_test(a_large_body_is_given_back),
        cmocka_unit_test(no_memory_skips_one_body),
        cmocka_unit_test(written_frames_are_read),
        cmocka_unit_test(a_frame_as_text),
        cmocka_unit_test(a_failed_buffer_makes_no_frame),
    };
    return cmocka_run_group_tests_name("frame", tests, NULL, NULL);
}
