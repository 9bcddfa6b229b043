/*
 * Bytes to lines: a transcript of the lines, with any split. It has "line(TEXT)" (for a long line its length),
 * "too-long", and "." at the end.
 */
#include "protocol/line.h"
#include "wire.h"

#ifdef WRAPPED
#include "allocations.h"
#endif

#define SHOWN 40u

struct reader {
    struct fm_lines lines;
    struct transcript *log;
};

static void note_line(struct transcript *log, const char *line, size_t len) {
    char *exact = exact_copy(line, len);
    if (len > SHOWN) {
        note(log, "line[%zu] ", len);
    } else {
        note(log, "line(%.*s) ", (int)len, exact);
    }
    free(exact);
}

/* Takes all lines that are ready. */
static void take_lines(struct reader *reader) {
    const char *line;
    size_t len;
    for (;;) {
        switch (fm_lines_next(&reader->lines, &line, &len)) {
        case FM_LINE_READY: note_line(reader->log, line, len); break;
        case FM_LINE_TOO_LONG: note(reader->log, "too-long "); break;
        case FM_LINE_NONE: return;
        }
    }
}

static void *start_reader(struct transcript *log) {
    struct reader *reader = malloc(sizeof *reader);
    assert_non_null(reader);
    fm_lines_init(&reader->lines);
    assert_null(reader->lines.buf.data);
    reader->log = log;
    return reader;
}

static void feed_reader(void *context, const char *piece, size_t len) {
    struct reader *reader = context;
    assert_true(fm_lines_has_room(&reader->lines));
    assert_true(fm_lines_feed(&reader->lines, piece, len));
    take_lines(reader);
}

/* At the end nothing is left, and nothing more comes. */
static void end_reader(void *context) {
    struct reader *reader = context;
    fm_lines_end(&reader->lines);
    take_lines(reader);
    take_lines(reader);
    note(reader->log, ".");
    assert_int_equal(reader->lines.buf.len - reader->lines.at, 0);
    fm_lines_free(&reader->lines);
    assert_null(reader->lines.buf.data);
    free(reader);
}

static const struct subject subject = {start_reader, feed_reader, end_reader};

static void lines(void **state) {
    (void)state;
    static const struct {
        const char *input;
        size_t len;
        const char *expected;
    } rows[] = {
        {BYTES(""), "."},
        {BYTES("\n"), "line() ."},
        {BYTES("\n\n\n"), "line() line() line() ."},
        {BYTES("a\n"), "line(a) ."},
        {BYTES("a"), "line(a) ."},
        {BYTES("a\nb"), "line(a) line(b) ."},
        {BYTES("a\n\nb\n"), "line(a) line() line(b) ."},
        {BYTES("ab\r\ncd\r\n"), "line(ab\r) line(cd\r) ."}, /* removing a carriage return is the reader's task */
        {BYTES("\r\r\n "), "line(\r\r) line( ) ."},
        {BYTES("0123456789012345678901234567890123456789\n"), "line(0123456789012345678901234567890123456789) ."},
        {BYTES("\xff\xfe\n\xe2\x82\xac"), "line(\xff\xfe) line(\xe2\x82\xac) ."},
        {BYTES("{\"a\":1}\n{\"b\":2}\n{"), "line({\"a\":1}) line({\"b\":2}) line({) ."},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        expect_in_any_split(&subject, rows[i].input, rows[i].input, rows[i].len, rows[i].expected);
    }
}

/* A NUL is an ordinary byte. */
static void nuls(void **state) {
    (void)state;
    const char *line;
    size_t len;
    struct fm_lines lines;
    fm_lines_init(&lines);
    assert_true(fm_lines_feed(&lines, BYTES("a\0b\n\0")));
    assert_int_equal(fm_lines_next(&lines, &line, &len), FM_LINE_READY);
    assert_int_equal(len, 3);
    assert_memory_equal(line, "a\0b", 3);
    assert_int_equal(fm_lines_next(&lines, &line, &len), FM_LINE_NONE);
    fm_lines_end(&lines);
    assert_int_equal(fm_lines_next(&lines, &line, &len), FM_LINE_READY);
    assert_int_equal(len, 1);
    assert_int_equal(line[0], 0);
    fm_lines_free(&lines);
}

/* `len` bytes without a newline, as from a descriptor. */
static void feed_block(struct reader *reader, size_t len) {
    static char block[FM_LINE_FEED];
    memset(block, 'x', sizeof block);
    while (len > 0) {
        size_t step = len < sizeof block ? len : sizeof block;
        feed_reader(reader, block, step);
        len -= step;
    }
}

/* A long line with a line before and a line after it: with its newline, and with the end of the input instead. */
static void expect_long(size_t len, const char *ending, const char *expected) {
    static struct transcript log;
    log = (struct transcript){.len = 0};
    struct reader *reader = start_reader(&log);
    feed_reader(reader, BYTES("a\n"));
    feed_block(reader, len);
    assert_in_range(reader->lines.buf.cap, 0, FM_LINE_MAX + 2 * (size_t)FM_LINE_FEED);
    feed_reader(reader, ending, strlen(ending));
    end_reader(reader);
    expect_text(ending[0] ? "with a newline" : "at the end", "bytes", len, expected, log.text);
}

static void long_lines(void **state) {
    (void)state;
    static const struct {
        size_t len;
        const char *expected;
    } rows[] = {
        {FM_LINE_MAX - 1, "line(a) line[9999999] "}, {FM_LINE_MAX, "line(a) line[10000000] "},
        {FM_LINE_MAX + 1, "line(a) too-long "},      {FM_LINE_MAX + FM_LINE_FEED, "line(a) too-long "},
        {5 * FM_LINE_MAX, "line(a) too-long "},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char expected[100];
        snprintf(expected, sizeof expected, "%s.", rows[i].expected);
        expect_long(rows[i].len, "", expected);
        snprintf(expected, sizeof expected, "%sline(b) line(c) .", rows[i].expected);
        expect_long(rows[i].len, "\nb\nc", expected);
    }
}

/* Two lines in a row are too long: each is reported once. */
static void two_long_lines(void **state) {
    (void)state;
    static struct transcript log;
    struct reader *reader = start_reader(&log);
    for (int i = 0; i < 2; i++) {
        feed_block(reader, FM_LINE_MAX + 3 * FM_LINE_FEED);
        feed_reader(reader, BYTES("\n"));
    }
    feed_reader(reader, BYTES("\nb\n"));
    end_reader(reader);
    assert_string_equal(log.text, "too-long too-long line() line(b) .");
}

/* Lines that are not taken stay in the buffer, up to a line and one read; further bytes wait in the pipe. */
static void room(void **state) {
    (void)state;
    static char block[FM_LINE_FEED];
    static struct transcript log;
    struct reader *reader = start_reader(&log);
    memset(block, 'x', sizeof block);
    block[sizeof block - 1] = '\n';
    size_t fed = 0;
    while (fm_lines_has_room(&reader->lines)) {
        assert_true(fm_lines_feed(&reader->lines, block, sizeof block));
        fed++;
        assert_true(fed < 1000);
    }
    assert_int_equal(fed, FM_LINE_MAX / FM_LINE_FEED + 1);
    const char *line;
    size_t len;
    /* when one line is taken, there is room for another */
    assert_int_equal(fm_lines_next(&reader->lines, &line, &len), FM_LINE_READY);
    assert_int_equal(len, FM_LINE_FEED - 1);
    assert_true(fm_lines_has_room(&reader->lines));
    assert_true(fm_lines_feed(&reader->lines, block, sizeof block));
    assert_false(fm_lines_has_room(&reader->lines));
    for (size_t i = 0; i < fed; i++) {
        assert_int_equal(fm_lines_next(&reader->lines, &line, &len), FM_LINE_READY);
    }
    end_reader(reader);
    assert_string_equal(log.text, ".");
}

/* A buffer of megabytes is kept neither after a prompt of this size nor after a line that is skipped. */
static void memory_is_given_back(void **state) {
    (void)state;
    static struct transcript log;
    struct reader *reader = start_reader(&log);
    feed_block(reader, 1000000);
    assert_true(reader->lines.buf.cap >= 1000000);
    feed_reader(reader, BYTES("\n"));
    assert_int_equal(reader->lines.buf.cap, 0);
    feed_block(reader, FM_LINE_MAX + 10 * FM_LINE_FEED);
    assert_in_range(reader->lines.buf.cap, 0, 256u << 10);
    feed_reader(reader, BYTES("\nsmall\n"));
    assert_in_range(reader->lines.buf.cap, 1, 256u << 10); /* a small buffer is kept */
    end_reader(reader);
    assert_string_equal(log.text, "line[1000000] too-long line(small) .");
}

#ifdef WRAPPED
static void without_memory(void **state) {
    (void)state;
    struct fm_lines lines;
    fm_lines_init(&lines);
    allocations_left = 0;
    assert_false(fm_lines_feed(&lines, BYTES("a\n")));
    allocations_left = -1;
    fm_lines_free(&lines);
    assert_true(fm_lines_feed(&lines, BYTES("a\n")));
    fm_lines_free(&lines);
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines),          cmocka_unit_test(nuls), cmocka_unit_test(long_lines),
        cmocka_unit_test(two_long_lines), cmocka_unit_test(room), cmocka_unit_test(memory_is_given_back),
#ifdef WRAPPED
        cmocka_unit_test(without_memory),
#endif
    };
    return cmocka_run_group_tests_name("line", tests, NULL, NULL);
}
