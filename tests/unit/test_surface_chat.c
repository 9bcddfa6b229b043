/* The completion object, its chunks, and errors in OpenAI's words. */
#include "test_surface.h"

#define BODY "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],\"stream\":true"
#define USAGE                                                                                                          \
    "{\"prompt_tokens\":11,\"completion_tokens\":7,\"total_tokens\":18,\"prompt_tokens_details\":"                     \
    "{\"cached_tokens\":3},\"completion_tokens_details\":{\"reasoning_tokens\":2}}"

static const char *const greeting[] = {"He\"llo", " w\xc3\xb6rld", NULL};

/* Checks the members that are the same in every chunk of a stream. */
static void check_chunk(const struct stream *stream, size_t i, size_t keys) {
    struct json_object *chunk = stream->events[i];
    assert_int_equal(json_object_object_length(chunk), keys);
    assert_string_equal(str_at(chunk, "object"), "chat.completion.chunk");
    assert_string_equal(str_at(chunk, "id"), str_at(stream->events[0], "id"));
    assert_int_equal(strncmp(str_at(chunk, "id"), "chatcmpl-", 9), 0);
    assert_int_equal(int_at(chunk, "created"), int_at(stream->events[0], "created"));
    assert_string_equal(str_at(chunk, "model"), "tiny");
}

static void check_choice(struct json_object *chunk, const char *delta, const char *reason) {
    assert_int_equal(json_object_array_length(at(chunk, "choices")), 1);
    assert_int_equal(json_object_object_length(at(chunk, "choices.0")), 4);
    assert_int_equal(int_at(chunk, "choices.0.index"), 0);
    assert_json(chunk, "choices.0.delta", delta);
    assert_json(chunk, "choices.0.logprobs", "null");
    assert_json(chunk, "choices.0.finish_reason", reason);
}

struct ending {
    enum fm_finish finish;
    const char *const *deltas;
    const char *reason; /* as JSON */
};

static const struct ending endings[] = {
    {FM_FINISH_STOP, greeting, "\"stop\""},     {FM_FINISH_STOP, no_deltas, "\"stop\""},
    {FM_FINISH_LENGTH, greeting, "\"length\""}, {FM_FINISH_CONTENT_FILTER, greeting, "\"content_filter\""},
    {FM_FINISH_CANCELLED, greeting, "null"},    {FM_FINISH_FAILED, no_deltas, "null"},
    {FM_FINISH_FAILED, greeting, "null"},
};

static void check_ending(const struct ending *ending, bool include_usage) {
    struct fm_error error;
    fm_fail(&error, FM_INTERNAL, "The engine died.");
    struct script script = {.surface = &fm_surface_chat,
                            .body = include_usage ? BODY ",\"stream_options\":{\"include_usage\":true}}" : BODY "}",
                            .deltas = ending->deltas,
                            .finish = ending->finish,
                            .error = &error};
    struct stream stream;
    struct json_object *object = run(&script, &stream);
    bool with_text = ending->deltas == greeting;
    bool finished = strcmp(ending->reason, "null") != 0;
    size_t keys = include_usage ? 6 : 5;
    size_t deltas = !with_text ? 0 : slow_host ? 1 : 2;
    assert_int_equal(stream.count, 1 + deltas + (finished ? 1 : 0) + (finished && include_usage ? 1 : 0));
    for (size_t i = 0; i < stream.count; i++) {
        check_chunk(&stream, i, keys);
    }
    size_t i = 0;
    check_choice(stream.events[i++], "{\"role\":\"assistant\",\"content\":null}", "null");
    if (deltas == 1) {
        check_choice(stream.events[i++], "{\"content\":\"He\\\"llo w\xc3\xb6rld\"}", "null");
    } else if (deltas == 2) {
        check_choice(stream.events[i++], "{\"content\":\"He\\\"llo\"}", "null");
        check_choice(stream.events[i++], "{\"content\":\" w\xc3\xb6rld\"}", "null");
    }
    if (finished) {
        check_choice(stream.events[i++], "{}", ending->reason);
    }
    for (size_t k = 0; k < i; k++) {
        assert_json(stream.events[k], "usage", "null");
    }
    if (i < stream.count) {
        assert_json(stream.events[i], "choices", "[]");
        assert_json(stream.events[i], "usage", USAGE);
    }
    assert_string_equal(str_at(object, "id"), str_at(stream.events[0], "id"));
    json_object_put(object);
    stream_free(&stream);
}

static void test_stream(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        check_ending(&endings[i], false);
        check_ending(&endings[i], true);
    }
}

static void test_completion(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        struct script script = {.surface = &fm_surface_chat,
                                .body = "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}",
                                .deltas = endings[i].deltas,
                                .finish = endings[i].finish};
        struct stream stream;
        struct json_object *object = run(&script, &stream);
        assert_int_equal(stream.count, 0);
        assert_int_equal(json_object_object_length(object), 7);
        assert_string_equal(str_at(object, "object"), "chat.completion");
        assert_true(int_at(object, "created") > 1600000000);
        assert_string_equal(str_at(object, "model"), "tiny");
        assert_string_equal(str_at(object, "service_tier"), "default");
        assert_int_equal(int_at(object, "choices.0.index"), 0);
        bool with_text = endings[i].deltas == greeting;
        assert_json(object, "choices.0.message",
                    with_text ? "{\"role\":\"assistant\",\"content\":\"He\\\"llo w\xc3\xb6rld\",\"refusal\":null,"
                                "\"annotations\":[]}"
                              : "{\"role\":\"assistant\",\"content\":\"\",\"refusal\":null,\"annotations\":[]}");
        assert_json(object, "choices.0.logprobs", "null");
        assert_json(object, "choices.0.finish_reason", endings[i].reason);
        assert_json(object, "usage", USAGE);
        json_object_put(object);
    }
}

static void test_never_opened(void **state) {
    (void)state;
    struct script script = {.surface = &fm_surface_chat, .body = BODY "}", .finish = FM_FINISH_CANCELLED};
    struct stream stream;
    struct json_object *object = run(&script, &stream);
    assert_int_equal(stream.count, 0);
    json_object_put(object);
}

/* The completion has the schema report; a chunk never has it. */
static void test_report(void **state) {
    (void)state;
    struct script script = {.surface = &fm_surface_chat,
                            .body =
                                BODY ",\"fm\":{\"schema_report\":true},\"response_format\":{\"type\":\"json_schema\","
                                     "\"json_schema\":{\"name\":\"n\",\"schema\":{}}}}",
                            .deltas = greeting,
                            .finish = FM_FINISH_STOP,
                            .report = "\"enforced\":[\"type\"],\"checked\":[]",
                            .mismatch = "a"};
    struct stream stream;
    struct json_object *object = run(&script, &stream);
    assert_int_equal(json_object_object_length(object), 8);
    assert_json(object, "fm", "{\"schema\":{\"enforced\":[\"type\"],\"checked\":[],\"valid\":false,\"error\":\"a\"}}");
    for (size_t i = 0; i < stream.count; i++) {
        check_chunk(&stream, i, 5);
    }
    json_object_put(object);
    stream_free(&stream);
}

/* ---- errors ---- */

static void check_error(const struct fm_error *error, const char *expected) {
    struct fm_buf buf;
    fm_buf_init(&buf, 4096);
    struct fm_json_writer w = fm_json_writer_on(&buf);
    fm_error_write(error, &w);
    if (buf.len != strlen(expected) || memcmp(buf.data, expected, buf.len) != 0) {
        fail_msg("expected %s, got %.*s", expected, (int)buf.len, buf.data);
    }
    fm_buf_free(&buf);
}

static void test_error_table(void **state) {
    (void)state;
    static const struct {
        enum fm_code code;
        const char *name;
        int status;
        const char *type;
        const char *openai_code;
    } rows[] = {
        {FM_UNAVAILABLE, "UNAVAILABLE", 404, "server_error", "model_unavailable"},
        {FM_TIMEOUT, "TIMEOUT", 408, "timeout_error", "timeout"},
        {FM_CANCELLED, "CANCELLED", 499, "cancelled", "cancelled"},
        {FM_INTERNAL, "INTERNAL", 500, "server_error", "server_error"},
        {FM_INVALID_REQUEST, "INVALID_REQUEST", 400, "invalid_request_error", "invalid_value"},
        {FM_NOT_FOUND, "NOT_FOUND", 404, "invalid_request_error", "model_not_found"},
        {FM_RATE_LIMITED, "RATE_LIMITED", 429, "rate_limit_error", "rate_limit_exceeded"},
        {FM_OVERLOADED, "OVERLOADED", 503, "server_error", "overloaded"},
        {FM_GUARDRAIL, "GUARDRAIL", 400, "invalid_request_error", "content_filter"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fm_error error;
        char expected[512];
        fm_fail(&error, rows[i].code, "Oh \"no\".");
        snprintf(expected, sizeof expected,
                 "{\"code\":\"%s\",\"detail\":\"Oh \\\"no\\\".\",\"openai\":{\"status\":%d,\"type\":\"%s\","
                 "\"code\":\"%s\",\"message\":\"Oh \\\"no\\\".\",\"param\":null}}",
                 rows[i].name, rows[i].status, rows[i].type, rows[i].openai_code);
        check_error(&error, expected);
    }
}

static void test_error_details(void **state) {
    (void)state;
    struct fm_error error;
    fm_fail(&error, FM_NOT_FOUND, "No response runs by that id.");
    error.reason = "response_not_found";
    snprintf(error.param, sizeof error.param, "id");
    check_error(&error, "{\"code\":\"NOT_FOUND\",\"detail\":\"No response runs by that id.\","
                        "\"openai\":{\"status\":404,\"type\":\"invalid_request_error\","
                        "\"code\":\"response_not_found\",\"message\":\"No response runs by that id.\","
                        "\"param\":\"id\"}}");
    fm_fail(&error, FM_TIMEOUT, "Late.");
    error.limit = "first_token";
    error.limit_ms = 200;
    check_error(&error, "{\"code\":\"TIMEOUT\",\"detail\":\"Late.\",\"limit\":\"first_token\",\"limit_ms\":200,"
                        "\"openai\":{\"status\":408,\"type\":\"timeout_error\",\"code\":\"timeout\",\"message\":"
                        "\"Late.\",\"param\":null}}");
}

/* Clients recognise an overflow by the words "maximum context length" in its message, whatever the engine's text is. */
static void test_overflow(void **state) {
    (void)state;
    struct fm_error error;
    fm_fail(&error, FM_CONTEXT_OVERFLOW, "9 tokens, room for 5.");
    check_error(&error, "{\"code\":\"CONTEXT_OVERFLOW\",\"detail\":\"9 tokens, room for 5.\","
                        "\"openai\":{\"status\":400,\"type\":\"invalid_request_error\","
                        "\"code\":\"context_length_exceeded\",\"message\":"
                        "\"The prompt is beyond the model's maximum context length: 9 tokens, room for 5.\","
                        "\"param\":null}}");
    fm_fail(&error, FM_CONTEXT_OVERFLOW, "The maximum context length is 5.");
    check_error(&error, "{\"code\":\"CONTEXT_OVERFLOW\",\"detail\":\"The maximum context length is 5.\",\"openai\":"
                        "{\"status\":400,\"type\":\"invalid_request_error\",\"code\":\"context_length_exceeded\","
                        "\"message\":\"The maximum context length is 5.\",\"param\":null}}");
    char longest[sizeof error.detail];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    fm_fail(&error, FM_CONTEXT_OVERFLOW, "%s", longest);
    struct fm_buf buf;
    fm_buf_init(&buf, 4096);
    struct fm_json_writer w = fm_json_writer_on(&buf);
    fm_error_write(&error, &w);
    struct json_object *value = json_of(buf.data, buf.len);
    assert_non_null(strstr(str_at(value, "openai.message"), longest));
    json_object_put(value);
    fm_buf_free(&buf);
}

/* PROTOCOL.md: choice i uses the seed plus i. */
static void test_seeds_of_choices(void **state) {
    (void)state;
    struct fm_request request = request_of(&fm_surface_chat, "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],"
                                                             "\"seed\":9223372036854775806,\"n\":3}");
    struct fm_answer answer;
    struct fm_error error;
    assert_int_equal(fm_answer_init(&answer, &fm_surface_chat, &request, "tiny", &error), FM_OK);
    assert_true(answer.request.has_seed);
    assert_true(fm_answer_seed(&answer) == INT64_MAX - 1);
    fm_answer_open(&answer, 3);
    assert_true(fm_answer_has_next(&answer));
    assert_int_equal(fm_answer_next(&answer, FM_FINISH_STOP, &error), FM_OK);
    assert_true(fm_answer_seed(&answer) == INT64_MAX);
    assert_int_equal(fm_answer_next(&answer, FM_FINISH_LENGTH, &error), FM_OK);
    assert_true(fm_answer_seed(&answer) == INT64_MIN);
    assert_false(fm_answer_has_next(&answer));
    fm_answer_free(&answer);
}

/* ---- an answer that starts again ---- */

static void say_all(struct fm_answer *answer, const char *text) {
    struct json_object *entries = json_tokener_parse("[{\"bytes\":[97],\"logprob\":-1,\"top\":[]}]");
    struct fm_error error;
    assert_int_equal(fm_answer_reason(answer, "hm", 2, &error), FM_OK);
    assert_int_equal(fm_answer_state(answer, "S", 1, &error), FM_OK);
    assert_int_equal(fm_answer_say(answer, FM_PART_TEXT, text, strlen(text), &error), FM_OK);
    assert_int_equal(fm_answer_logprobs(answer, entries, &error), FM_OK);
    assert_int_equal(fm_answer_call(answer, "f", &error), FM_OK);
    assert_true(fm_answer_append(answer, "{}", 2));
    json_object_put(entries);
    fm_answer_mismatch(answer, "no");
}

static void assert_alike(const struct fm_answer *answer, const struct fm_answer *other) {
    assert_int_equal(answer->choice, other->choice);
    assert_int_equal(answer->opened, other->opened);
    assert_int_equal(answer->part_count, other->part_count);
    assert_int_equal(answer->call_count, other->call_count);
    assert_int_equal(answer->state_count, other->state_count);
    assert_int_equal(answer->state_bytes, other->state_bytes);
    assert_int_equal(answer->output.len, other->output.len);
    assert_int_equal(answer->output_json, other->output_json);
    assert_int_equal(answer->output_max, other->output_max);
    assert_int_equal(answer->logprobs.len, other->logprobs.len);
    assert_int_equal(answer->logprobs.max, other->logprobs.max);
    assert_int_equal(answer->marks.len, other->marks.len);
    assert_int_equal(answer->mismatch, other->mismatch);
    assert_true(answer->usage.output == other->usage.output);
}

/* After a restart the answer is as it was before: at the beginning of the choice, or of the whole answer. */
static void test_made_anew(void **state) {
    static const char body[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],\"n\":3,\"logprobs\":true,\"tools\":"
                               "[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]}";
    struct fm_answer answers[2];
    struct fm_error error;
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct fm_request request = request_of(&fm_surface_chat, body);
        assert_int_equal(fm_answer_init(&answers[i], &fm_surface_chat, &request, "tiny", &error), FM_OK);
        answers[i].any_order = true;
    }
    struct fm_answer *answer = &answers[0];
    struct fm_answer *other = &answers[1];
    for (int all = 0; all < 2; all++) {
        fm_answer_open(answer, 3);
        say_all(answer, "\"first\"");
        answer->usage.output = 7;
        fm_answer_restart(answer, all);
        assert_alike(answer, other);
    }
    fm_answer_open(answer, 3);
    fm_answer_open(other, 3);
    say_all(answer, "a");
    say_all(other, "a");
    assert_alike(answer, other);
    assert_int_equal(fm_answer_next(answer, FM_FINISH_STOP, &error), FM_OK);
    assert_int_equal(fm_answer_next(other, FM_FINISH_STOP, &error), FM_OK);
    say_all(answer, "\"second\"");
    fm_answer_restart(answer, false);
    assert_alike(answer, other);
    say_all(answer, "b");
    fm_answer_restart(answer, true);
    fm_answer_restart(other, true);
    assert_alike(answer, other);
    assert_int_equal(answer->choice, 0);
    assert_false(answer->opened);
    fm_answer_free(answer);
    fm_answer_free(other);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stream),   cmocka_unit_test(test_completion),       cmocka_unit_test(test_never_opened),
        cmocka_unit_test(test_report),   cmocka_unit_test(test_error_table),      cmocka_unit_test(test_error_details),
        cmocka_unit_test(test_overflow), cmocka_unit_test(test_seeds_of_choices),
        cmocka_unit_test(test_made_anew),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed + cmocka_run_group_tests(tests, with_slow_host, NULL);
}
