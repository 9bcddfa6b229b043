/* Log probabilities are sent with the text of their tokens: with stop strings, parts of characters, and any rhythm. */
#include "engine/kit/logprobs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define FFFD     "\xEF\xBF\xBD"
#define GRIN     "\xF0\x9F\x98\x80"
#define OUT_MAX  (1u << 20)
#define TOKENS   8
#define TEXT_MAX 64

static const struct row {
    const char *name;
    const char *stops[FM_STOPS_MAX];
    const char *tokens[TOKENS];
    const char *entries; /* bytes of the expected entries, with "|" after each */
} rows[] = {
    {"plain", {0}, {"Hel", "lo", " you"}, "Hel|lo| you|"},
    {"a token without bytes is none", {0}, {"a", "", "b"}, "a|b|"},
    {"a character in two tokens", {0}, {"a", "\xC3", "\xA9", "b"}, "a|\xC3|\xA9|b|"},
    {"in four, with text around it", {0}, {"a\xF0", "\x9F", "\x98", "\x80z", "."}, "a\xF0|\x9F|\x98|\x80z|.|"},
    {"two in three", {0}, {"\xF0\x9F", "\x98\x80\xF0\x9F", "\x98\x80"}, "\xF0\x9F|\x98\x80\xF0\x9F|\x98\x80|"},
    {"a stop string as a token", {"STOP"}, {"ab", "STOP", "x"}, "ab|"},
    {"at once", {"STOP"}, {"STOP"}, ""},
    {"over tokens", {"STOP"}, {"ab", "cSTO", "Pd"}, "ab|c|"},
    {"over three", {"STOP"}, {"abS", "TO", "P"}, "ab|"},
    {"inside one", {"\n\n"}, {"a", "b\n\nc", "d"}, "a|b|"},
    {"that does not come", {"STOP"}, {"a", "ST", "O", "b"}, "a|ST|O|b|"},
    {"that does not come any more", {"STOP"}, {"a", "ST"}, "a|ST|"},
    {"after a character in two tokens", {"!"}, {"\xC3", "\xA9!", "x"}, "\xC3|\xA9|"},
    {"that is a character in two tokens", {GRIN}, {"a", "\xF0\x9F", "\x98\x80", "x"}, "a|"},
    {"that begins with one", {"\xC3\xA9!"}, {"a", "\xC3", "\xA9", "?"}, "a|\xC3|\xA9|?|"},
    {"what is no character", {0}, {"a", "\xF0\x9F", "b"}, "a|\xF0\x9F|b|"},
    {"a character that ends too early", {0}, {"a", "\xF0\x9F"}, "a|"},
    {"and begins in a token with text", {0}, {"a", "b\xF0\x9F"}, "a|b|"},
};

/* The entries and text of all cuts of a row, joined. */
struct outcome {
    char entries[TEXT_MAX];
    size_t entries_len;
    char text[TEXT_MAX];
    size_t text_len;
};

/* Checks that the entries of a cut have the bytes of its text, unless these bytes are not UTF-8. */
static void take_cut(struct outcome *outcome, struct fm_logprob_queue *queue, const struct fm_logprob_cut *cut,
                     struct fm_buf *out) {
    char joined[TEXT_MAX];
    size_t joined_len = 0;
    struct fm_buf json;
    fm_buf_init(&json, OUT_MAX);
    struct fm_json_writer w = fm_json_writer_on(&json);
    fm_logprob_queue_write(queue, cut, &w);
    fm_buf_append_char(&json, '\0');
    struct json_object *list = json_tokener_parse(json.data);
    assert_non_null(list);
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        struct json_object *bytes = json_object_object_get(json_object_array_get_idx(list, i), "bytes");
        for (size_t b = 0; b < json_object_array_length(bytes); b++) {
            char byte = (char)json_object_get_int(json_object_array_get_idx(bytes, b));
            outcome->entries[outcome->entries_len++] = byte;
            joined[joined_len++] = byte;
        }
        outcome->entries[outcome->entries_len++] = '|';
    }
    memcpy(outcome->text + outcome->text_len, out->data, cut->len);
    outcome->text_len += cut->len;
    if (!memmem(out->data, cut->len, FFFD, 3)) {
        assert_int_equal(joined_len, cut->len);
        assert_memory_equal(joined, out->data, cut->len);
    }
    json_object_put(list);
    fm_buf_free(&json);
    fm_logprob_queue_drop(queue, cut, out);
}

static void take_cuts(struct outcome *outcome, struct fm_logprob_queue *queue, const struct fm_text_stream *stream,
                      struct fm_buf *out, bool all) {
    struct fm_logprob_cut cut = fm_logprob_queue_cut(queue, stream, out, all);
    while (cut.len > 0) {
        take_cut(outcome, queue, &cut, out);
        cut = fm_logprob_queue_cut(queue, stream, out, all);
    }
}

static struct fm_token_logprobs token_of(const char *text) {
    return (struct fm_token_logprobs){.token = {.bytes = text, .len = strlen(text), .logprob = -1}};
}

/* `rhythm`: text is sent after this many tokens. `late`: a token's bytes come with the next token. */
static void run(const struct row *row, size_t rhythm, bool late, struct outcome *outcome) {
    struct fm_stop stops[FM_STOPS_MAX] = {{row->stops[0], row->stops[0] ? strlen(row->stops[0]) : 0}};
    struct fm_logprob_queue queue;
    struct fm_text_stream stream;
    struct fm_buf out;
    *outcome = (struct outcome){0};
    fm_logprob_queue_init(&queue);
    fm_buf_init(&out, OUT_MAX);
    assert_true(fm_text_stream_init(&stream, stops, row->stops[0] ? 1 : 0));
    enum fm_text_status status = FM_TEXT_MORE;
    for (size_t i = 0; i < TOKENS && row->tokens[i] && status == FM_TEXT_MORE; i++) {
        struct fm_token_logprobs token = token_of(row->tokens[i]);
        fm_logprob_queue_add(&queue, &token);
        const char *bytes = late ? (i > 0 ? row->tokens[i - 1] : "") : row->tokens[i];
        status = fm_logprob_queue_push(&queue, &stream, bytes, strlen(bytes), &out);
        bool last = late && (i + 1 == TOKENS || !row->tokens[i + 1]);
        if (last && status == FM_TEXT_MORE) {
            status = fm_logprob_queue_push(&queue, &stream, row->tokens[i], strlen(row->tokens[i]), &out);
        }
        if (i % rhythm == rhythm - 1) {
            take_cuts(outcome, &queue, &stream, &out, stream.stopped);
        }
    }
    assert_int_not_equal(fm_text_stream_flush(&stream, &out), FM_TEXT_NO_MEMORY);
    take_cuts(outcome, &queue, &stream, &out, true);
    assert_int_equal(out.len, 0);
    fm_text_stream_free(&stream);
    fm_logprob_queue_free(&queue);
    fm_buf_free(&out);
}

static void entries_have_the_bytes_of_the_text(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (size_t rhythm = 1; rhythm <= TOKENS; rhythm++) {
            for (int late = 0; late <= 1; late++) {
                struct outcome outcome;
                run(&rows[i], rhythm, late, &outcome);
                if (outcome.entries_len != strlen(rows[i].entries) ||
                    memcmp(outcome.entries, rows[i].entries, outcome.entries_len) != 0) {
                    fail_msg("%s, after %zu: %.*s", rows[i].name, rhythm, (int)outcome.entries_len, outcome.entries);
                }
            }
        }
    }
}

/* Text is sent in whole tokens, although a part of a token could be sent earlier. */
static void a_token_is_not_split(void **state) {
    (void)state;
    static const struct row row = {"", {"STOP"}, {"abST", "x"}, "abST|x|"};
    struct fm_stop stop = {"STOP", 4};
    struct fm_logprob_queue queue;
    struct fm_text_stream stream;
    struct fm_buf out;
    fm_logprob_queue_init(&queue);
    fm_buf_init(&out, OUT_MAX);
    assert_true(fm_text_stream_init(&stream, &stop, 1));
    struct fm_token_logprobs token = token_of(row.tokens[0]);
    fm_logprob_queue_add(&queue, &token);
    assert_int_equal(fm_logprob_queue_push(&queue, &stream, "abST", 4, &out), FM_TEXT_MORE);
    assert_int_equal(out.len, 2);
    assert_int_equal(fm_logprob_queue_cut(&queue, &stream, &out, false).len, 0);
    fm_text_stream_free(&stream);
    fm_logprob_queue_free(&queue);
    fm_buf_free(&out);
}

static void the_members(void **state) {
    (void)state;
    static const struct {
        double logprob;
        const char *told;
    } numbers[] = {
        {-0.69314718, "-0.693147"}, {0, "0"},       {1e-9, "0"},        {0.5, "0"},
        {-1e300, "-9999"},          {NAN, "-9999"}, {-12.25, "-12.25"}, {-INFINITY, "-9999"},
        {-9998.5, "-9998.5"},       {-1e-9, "0"},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct fm_token_logprobs token = {.token = {"a\xFF", 2, numbers[i].logprob},
                                          .top = {{"b", 1, numbers[i].logprob}, {"", 0, -2}},
                                          .top_count = 2};
        struct fm_logprob_queue queue;
        struct fm_text_stream stream;
        struct fm_buf out;
        struct fm_buf json;
        char expected[256];
        fm_logprob_queue_init(&queue);
        fm_buf_init(&out, OUT_MAX);
        fm_buf_init(&json, OUT_MAX);
        assert_true(fm_text_stream_init(&stream, NULL, 0));
        fm_logprob_queue_add(&queue, &token);
        assert_int_equal(fm_logprob_queue_push(&queue, &stream, "a\xFF", 2, &out), FM_TEXT_MORE);
        struct fm_logprob_cut cut = fm_logprob_queue_cut(&queue, &stream, &out, false);
        struct fm_json_writer w = fm_json_writer_on(&json);
        fm_logprob_queue_write(&queue, &cut, &w);
        snprintf(expected, sizeof expected,
                 "[{\"bytes\":[97,255],\"logprob\":%s,\"top\":[{\"bytes\":[98],\"logprob\":%s},"
                 "{\"bytes\":[],\"logprob\":-2}]}]",
                 numbers[i].told, numbers[i].told);
        assert_int_equal(json.len, strlen(expected));
        assert_memory_equal(json.data, expected, json.len);
        fm_text_stream_free(&stream);
        fm_logprob_queue_free(&queue);
        fm_buf_free(&out);
        fm_buf_free(&json);
    }
}

/* Entries that were held for long are sent in several messages, each with no more values than a front accepts. */
static void a_cut_is_bounded(void **state) {
    (void)state;
    enum { COUNT = 500 };
    struct fm_logprob_queue queue;
    struct fm_text_stream stream;
    struct fm_buf out;
    fm_logprob_queue_init(&queue);
    fm_buf_init(&out, OUT_MAX);
    assert_true(fm_text_stream_init(&stream, NULL, 0));
    struct fm_token_logprobs token = token_of("0123456789");
    token.top_count = FM_TOP_LOGPROBS_MAX;
    for (size_t i = 0; i < FM_TOP_LOGPROBS_MAX; i++) {
        token.top[i] = token.token;
    }
    for (int i = 0; i < COUNT; i++) {
        fm_logprob_queue_add(&queue, &token);
        assert_int_equal(fm_logprob_queue_push(&queue, &stream, "0123456789", 10, &out), FM_TEXT_MORE);
    }
    size_t cuts = 0;
    size_t entries = 0;
    struct fm_logprob_cut cut = fm_logprob_queue_cut(&queue, &stream, &out, true);
    for (; cut.len > 0; cut = fm_logprob_queue_cut(&queue, &stream, &out, true)) {
        assert_in_range(cut.count, 1, FM_LOGPROB_VALUES_MAX / 200);
        assert_int_equal(cut.len, 10 * cut.count);
        entries += cut.count;
        cuts++;
        fm_logprob_queue_drop(&queue, &cut, &out);
    }
    assert_in_range(cuts, 7, 20);
    assert_int_equal(entries, COUNT);
    fm_text_stream_free(&stream);
    fm_logprob_queue_free(&queue);
    fm_buf_free(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_have_the_bytes_of_the_text),
        cmocka_unit_test(a_token_is_not_split),
        cmocka_unit_test(the_members),
        cmocka_unit_test(a_cut_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
