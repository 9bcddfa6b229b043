/* `return_progress`: the reports of a stream on how much of its prompt is computed. */
#include "test_surface.h"

#define MEMBERS    "\"stream\":true,\"return_progress\":true}"
#define RESPONSE   "{\"input\":\"x\"," MEMBERS
#define CHAT       "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]," MEMBERS
#define COMPLETION "{\"prompt\":[\"x\",\"y\"]," MEMBERS

static const struct body_row rows[] = {
    {RESPONSE, NULL, NULL},
    {"{\"input\":\"x\",\"return_progress\":false}", NULL, NULL},
    {"{\"input\":\"x\",\"return_progress\":null}", NULL, NULL},
    {"{\"input\":\"x\",\"return_progress\":true}", "invalid_value", "return_progress"},
    {"{\"input\":\"x\",\"return_progress\":true,\"stream\":false}", "invalid_value", "return_progress"},
    {"{\"input\":\"x\",\"return_progress\":1,\"stream\":true}", "invalid_type", "return_progress"},
};

static void only_a_stream_has_it(void **state) {
    (void)state;
    check_bodies(&fm_surface_responses, rows, sizeof rows / sizeof rows[0]);
    check_body(&fm_surface_chat, CHAT, NULL, NULL);
    check_body(&fm_surface_completions, COMPLETION, NULL, NULL);
    check_body(&fm_surface_embeddings, "{\"input\":\"x\",\"return_progress\":true}", "unsupported_parameter",
               "return_progress");
}

static void open_answer(struct fm_answer *answer, const struct fm_surface *surface, const char *body) {
    struct fm_request request = request_of(surface, body);
    struct fm_error error;
    assert_int_equal(fm_answer_init(answer, surface, &request, "tiny", &error), FM_OK);
    fm_answer_open(answer, 20);
}

/* Reports progress, and returns how many events that makes. */
static size_t progress(struct fm_answer *answer, struct stream *stream, int64_t processed) {
    size_t before = stream->count;
    answer->usage.cached = 4;
    fm_answer_progress(answer, processed, processed * 10);
    pull(answer, stream);
    return stream->count - before;
}

static void assert_last(const struct stream *stream, const char *expected) {
    assert_json(stream->events[stream->count - 1], "prompt_progress", expected);
}

/* Each report comes once, after the stream's first events, and none after the first output. */
static void reports_come_before_the_output(void **state) {
    static const struct {
        const struct fm_surface *surface;
        const char *body;
        size_t first; /* events before the first report */
    } apis[] = {
        {&fm_surface_responses, RESPONSE, 2}, {&fm_surface_chat, CHAT, 1}, {&fm_surface_completions, COMPLETION, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof apis / sizeof apis[0]; i++) {
        struct fm_answer answer;
        struct stream stream = {0};
        open_answer(&answer, apis[i].surface, apis[i].body);
        assert_int_equal(progress(&answer, &stream, 10), apis[i].first + 1);
        assert_last(&stream, "{\"total\":20,\"cache\":4,\"processed\":10,\"time_ms\":100}");
        assert_int_equal(progress(&answer, &stream, 10), 0);
        assert_int_equal(progress(&answer, &stream, 20), 1);
        assert_true(fm_answer_append(&answer, "a", 1));
        answer.usage.output = 1;
        size_t outputs = progress(&answer, &stream, 21);
        assert_null(at(stream.events[stream.count - 1], "prompt_progress"));
        assert_int_equal(outputs, apis[i].surface == &fm_surface_responses ? 3 : 1);
        fm_answer_finish(&answer, FM_FINISH_STOP, NULL);
        pull(&answer, &stream);
        stream_free(&stream);
        fm_answer_free(&answer);
    }
}

/* A keepalive event has the number of the event before it, so all readers see the same numbers. */
static void numbers_stay(void **state) {
    (void)state;
    struct fm_answer answer;
    struct stream early = {0};
    struct stream late = {0};
    open_answer(&answer, &fm_surface_responses, RESPONSE);
    progress(&answer, &early, 10);
    progress(&answer, &early, 15);
    assert_int_equal(early.count, 4);
    for (size_t i = 2; i < early.count; i++) {
        assert_string_equal(str_at(early.events[i], "type"), "keepalive");
        assert_int_equal(int_at(early.events[i], "sequence_number"), 1);
    }
    assert_true(fm_answer_append(&answer, "a", 1));
    answer.usage.output = 1;
    fm_answer_finish(&answer, FM_FINISH_STOP, NULL);
    pull(&answer, &early);
    pull(&answer, &late);
    assert_int_equal(early.count, late.count + 2);
    for (size_t i = 2; i < late.count; i++) {
        assert_int_equal(int_at(late.events[i], "sequence_number"), (int64_t)i);
        assert_int_equal(int_at(early.events[i + 2], "sequence_number"), (int64_t)i);
    }
    stream_free(&early);
    stream_free(&late);
    fm_answer_free(&answer);
}

/* Another prompt begins anew, and so does an answer that is made anew. */
static void another_prompt_begins_anew(void **state) {
    (void)state;
    struct fm_answer answer;
    struct stream stream = {0};
    struct fm_error error;
    open_answer(&answer, &fm_surface_completions, COMPLETION);
    assert_int_equal(progress(&answer, &stream, 20), 1);
    assert_int_equal(fm_answer_next(&answer, FM_FINISH_STOP, &error), FM_OK);
    fm_answer_open(&answer, 20);
    assert_int_equal(progress(&answer, &stream, 5), 2); /* the end of the first choice, and the report */
    assert_last(&stream, "{\"total\":20,\"cache\":4,\"processed\":5,\"time_ms\":50}");
    fm_answer_restart(&answer, true);
    struct stream again = {0};
    pull(&answer, &again);
    assert_int_equal(again.count, 0);
    stream_free(&stream);
    fm_answer_free(&answer);
}

/* Nobody is told what he did not ask for, or what the engine does not know. */
static void silence(void **state) {
    (void)state;
    struct fm_answer answer;
    struct stream stream = {0};
    open_answer(&answer, &fm_surface_chat, "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"stream\":true}");
    assert_int_equal(progress(&answer, &stream, 10), 1); /* the role */
    assert_null(at(stream.events[0], "prompt_progress"));
    stream_free(&stream);
    fm_answer_free(&answer);
    stream = (struct stream){0};
    open_answer(&answer, &fm_surface_chat, CHAT);
    answer.usage.input = FM_UNKNOWN_COUNT;
    assert_int_equal(progress(&answer, &stream, 10), 1);
    stream_free(&stream);
    fm_answer_free(&answer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_a_stream_has_it),
        cmocka_unit_test(reports_come_before_the_output),
        cmocka_unit_test(numbers_stay),
        cmocka_unit_test(another_prompt_begins_anew),
        cmocka_unit_test(silence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
