/* Token bytes to text: UTF-8 repair and stop strings, with every way to split the input into tokens. */
#include "engine/kit/text_stream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#define FFFD "\xEF\xBF\xBD"

struct row {
    const char *name;
    const char *stops[FM_STOPS_MAX];
    const char *input;
    const char *output;
    bool stopped;
};

static const struct row rows[] = {
    {"plain", {0}, "hello", "hello", false},
    {"empty", {0}, "", "", false},
    {"whole characters",
     {0},
     "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z",
     "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z",
     false},
    {"a lone continuation byte", {0}, "a\x80z", "a" FFFD "z", false},
    {"two of them", {0}, "\x80\x80", FFFD FFFD, false},
    {"a sequence cut by ASCII is one subpart", {0}, "a\xE2\x82z", "a" FFFD "z", false},
    {"a sequence cut by another", {0}, "\xF0\x9F\x98\xC3\xA9", FFFD "\xC3\xA9", false},
    {"overlong: each byte its own", {0}, "\xC0\xAF", FFFD FFFD, false},
    {"surrogate: each byte its own", {0}, "\xED\xA0\x80", FFFD FFFD FFFD, false},
    {"above U+10FFFF", {0}, "\xF4\x90\x80\x80", FFFD FFFD FFFD FFFD, false},
    {"cut at the end", {0}, "a\xF0\x9F\x98", "a", false},
    {"stop", {"STOP"}, "one STOP two", "one ", true},
    {"stop at once", {"STOP"}, "STOP", "", true},
    {"stop that does not come", {"STOP"}, "one STO", "one STO", false},
    {"stop that begins twice", {"STOP"}, "SSTSTOSTOP.", "SSTSTO", true},
    {"stop with a border", {"abab!"}, "ababab!c", "ab", true},
    {"stop of one repeated byte", {"aab"}, "aaaab", "aa", true},
    {"newlines", {"\n\n"}, "a\nb\n\nc", "a\nb", true},
    {"the first to end wins", {"abcd", "bc"}, "xabcd", "xa", true},
    {"of those that end together the longest wins", {"bc", "abc"}, "xabcd", "x", true},
    {"a stop inside another's beginning", {"abcabd", "ca"}, "abcabd", "ab", true},
    {"four stops", {"1", "2", "3", "4"}, "a4b", "a", true},
    {"stop of several bytes a character", {"\xE2\x82\xAC"}, "5\xE2\x82\xAC.", "5", true},
    {"a character that begins like the stop", {"\xC3\xA9"}, "\xC3\xA8\xC3\xA9", "\xC3\xA8", true},
    {"a stop of what was replaced",
     {FFFD "b"},
     "a\x80"
     "bc",
     "a",
     true},
    {"a cut character completes no stop", {"a" FFFD}, "xa\xE2\x82", "xa", false},
};

static size_t stops_of(const struct row *row, struct fm_stop *stops) {
    size_t count = 0;
    while (count < FM_STOPS_MAX && row->stops[count]) {
        stops[count] = (struct fm_stop){.text = row->stops[count], .len = strlen(row->stops[count])};
        count++;
    }
    return count;
}

/* Bit i of `cuts` set: a token ends after byte i. */
static void check_cut(const struct row *row, uint32_t cuts) {
    struct fm_stop stops[FM_STOPS_MAX];
    struct fm_text_stream stream;
    struct fm_buf out;
    enum fm_text_status status = FM_TEXT_MORE;
    size_t len = strlen(row->input);
    size_t from = 0;
    fm_buf_init(&out, 4096);
    assert_true(fm_text_stream_init(&stream, stops, stops_of(row, stops)));
    for (size_t i = 0; i < len && status == FM_TEXT_MORE; i++) {
        if (i + 1 == len || (cuts >> (i % 32) & 1)) {
            status = fm_text_stream_push(&stream, row->input + from, i + 1 - from, &out);
            from = i + 1;
        }
    }
    if (status == FM_TEXT_MORE) {
        status = fm_text_stream_flush(&stream, &out);
    }
    if (out.len != strlen(row->output) || (out.len && memcmp(out.data, row->output, out.len) != 0) ||
        status != (row->stopped ? FM_TEXT_STOPPED : FM_TEXT_MORE)) {
        fail_msg("%s, cuts %#x: got \"%.*s\", status %d", row->name, (unsigned)cuts, (int)out.len, out.data,
                 (int)status);
    }
    fm_text_stream_free(&stream);
    fm_buf_free(&out);
}

static void every_cut_gives_the_same(void **state) {
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        uint32_t ways = UINT32_C(1) << (strlen(rows[r].input) % 32);
        for (uint32_t cuts = 0; cuts < ways; cuts++) {
            check_cut(&rows[r], cuts);
        }
    }
}

static void push(struct fm_text_stream *stream, const char *bytes, const char *expected) {
    struct fm_buf out;
    fm_buf_init(&out, 4096);
    assert_int_equal(fm_text_stream_push(stream, bytes, strlen(bytes), &out), FM_TEXT_MORE);
    assert_int_equal(out.len, strlen(expected));
    if (out.len) {
        assert_memory_equal(out.data, expected, out.len);
    }
    fm_buf_free(&out);
}

/* Only text that may become a stop string is held back, and no character is ever cut. */
static void holds_back_the_least(void **state) {
    (void)state;
    const struct fm_stop stops[] = {{"STOP", 4}, {"\xE2\x82\xAC!", 4}};
    struct fm_text_stream stream;
    assert_true(fm_text_stream_init(&stream, stops, 2));
    push(&stream, "one", "one");
    push(&stream, " ST", " ");
    push(&stream, "O", "");
    push(&stream, "ne", "STOne");
    push(&stream, "\xE2\x82", "");
    push(&stream, "\xAC", "");
    push(&stream, "?", "\xE2\x82\xAC?");
    push(&stream, "\xF0\x9F", "");
    push(&stream, "\x98\x80", "\xF0\x9F\x98\x80");
    fm_text_stream_free(&stream);
}

static void nothing_comes_after_a_stop(void **state) {
    (void)state;
    const struct fm_stop stop = {"\n", 1};
    struct fm_text_stream stream;
    struct fm_buf out;
    fm_buf_init(&out, 4096);
    assert_true(fm_text_stream_init(&stream, &stop, 1));
    assert_int_equal(fm_text_stream_push(&stream, "a\nb", 3, &out), FM_TEXT_STOPPED);
    assert_int_equal(fm_text_stream_push(&stream, "c", 1, &out), FM_TEXT_STOPPED);
    assert_int_equal(fm_text_stream_flush(&stream, &out), FM_TEXT_STOPPED);
    assert_int_equal(out.len, 1);
    fm_text_stream_free(&stream);
    fm_buf_free(&out);
}

static void a_full_output_is_told(void **state) {
    (void)state;
    struct fm_text_stream stream;
    struct fm_buf out;
    fm_buf_init(&out, 4);
    assert_true(fm_text_stream_init(&stream, NULL, 0));
    assert_int_equal(fm_text_stream_push(&stream, "12345", 5, &out), FM_TEXT_NO_MEMORY);
    fm_text_stream_free(&stream);
    fm_buf_free(&out);
}

static void a_nul_is_text(void **state) {
    (void)state;
    const struct fm_stop stop = {"\0x", 2};
    struct fm_text_stream stream;
    struct fm_buf out;
    fm_buf_init(&out, 64);
    assert_true(fm_text_stream_init(&stream, &stop, 1));
    assert_int_equal(fm_text_stream_push(&stream, "a\0b\0xc", 6, &out), FM_TEXT_STOPPED);
    assert_int_equal(out.len, 3);
    assert_memory_equal(out.data, "a\0b", 3);
    fm_text_stream_free(&stream);
    fm_buf_free(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cut_gives_the_same),
        cmocka_unit_test(holds_back_the_least),
        cmocka_unit_test(nothing_comes_after_a_stop),
        cmocka_unit_test(a_full_output_is_told),
        cmocka_unit_test(a_nul_is_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
