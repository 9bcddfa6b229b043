/* Legacy completions: bodies, the job, the object and its chunks. */
#include "test_surface.h"

#define P    "\"prompt\":\"hi\""
#define BODY "{" P ",\"stream\":true"
#define USAGE                                                                                                          \
    "{\"prompt_tokens\":11,\"completion_tokens\":7,\"total_tokens\":18,\"prompt_tokens_details\":"                     \
    "{\"cached_tokens\":3},\"completion_tokens_details\":{\"reasoning_tokens\":2}}"

static const char *const greeting[] = {"He\"llo", " w\xc3\xb6rld", NULL};

/* ---- bodies ---- */

static const struct {
    const char *body;
    const char *code; /* the error's code; NULL: accepted */
    const char *param;
} rows[] = {
    {"{" P "}", NULL, NULL},
    {"{\"prompt\":\"\"}", NULL, NULL},
    {"{\"prompt\":[\"hi\"]}", NULL, NULL},
    {"{" P ",\"model\":null,\"suffix\":null,\"max_tokens\":null,\"temperature\":0.5,\"top_p\":0.5,\"seed\":1,\"stop\":["
     "\"x\"],"
     "\"stream\":true,\"stream_options\":{\"include_usage\":true,\"include_obfuscation\":false},\"echo\":true,\"n\":1,"
     "\"best_of\":1,\"presence_penalty\":0,\"frequency_penalty\":0,\"logprobs\":null,\"logit_bias\":{},\"user\":\"u\","
     "\"fm\":{\"timeout_ms\":5}}",
     NULL, NULL},
    {"{}", "missing_required_parameter", "prompt"},
    {"{\"prompt\":null}", "missing_required_parameter", "prompt"},
    {"{\"prompt\":5}", "invalid_type", "prompt"},
    {"{\"prompt\":[]}", "invalid_value", "prompt"},
    {"{\"prompt\":[\"a\",\"b\"]}", "unsupported_value", "prompt"},
    {"{\"prompt\":[1,2]}", "unsupported_value", "prompt"},
    {"{\"prompt\":[1]}", "unsupported_value", "prompt"},
    {"{\"prompt\":[[1,2]]}", "unsupported_value", "prompt"},
    {"{\"prompt\":[true]}", "invalid_type", "prompt[0]"},
    {"{\"prompt\":[null]}", "invalid_type", "prompt[0]"},
    {"{" P ",\"suffix\":5}", "invalid_type", "suffix"},
    {"{" P ",\"max_tokens\":0}", NULL, NULL},
    {"{" P ",\"max_tokens\":-1}", "integer_below_min_value", "max_tokens"},
    {"{" P ",\"max_tokens\":2147483648}", "integer_above_max_value", "max_tokens"},
    {"{" P ",\"echo\":1}", "invalid_type", "echo"},
    {"{" P ",\"n\":2}", "unsupported_parameter", "n"},
    {"{" P ",\"best_of\":3}", "unsupported_parameter", "best_of"},
    {"{" P ",\"logprobs\":0}", "unsupported_parameter", "logprobs"},
    {"{" P ",\"logit_bias\":{\"5\":1}}", "unsupported_parameter", "logit_bias"},
    {"{" P ",\"temperature\":3}", "decimal_above_max_value", "temperature"},
    {"{" P ",\"stream_options\":{\"x\":1}}", IGNORED, "stream_options.x"},
    {"{" P ",\"fm\":{\"x\":1}}", "unknown_parameter", "fm.x"},
    {"{" P ",\"fm\":{\"grammar\":{\"syntax\":\"lark\",\"definition\":\"x\"}},\"stop\":\"y\"}", NULL, NULL},
    {"{" P ",\"messages\":[]}", "unsupported_parameter", "messages"},
    {"{" P ",\"tools\":[]}", "unsupported_parameter", "tools"},
    {"{" P ",\"metadata\":{}}", "unsupported_parameter", "metadata"},
    {"{" P ",\"store\":false}", "unsupported_parameter", "store"},
    {"{" P ",\"max_completion_tokens\":5}", "unsupported_parameter", "max_completion_tokens"},
    {"{" P ",\"response_format\":{\"type\":\"text\"}}", "unsupported_parameter", "response_format"},
};

static void test_bodies(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check_body(&fm_surface_completions, rows[i].body, rows[i].code, rows[i].param);
    }
}

/* With `echo`, the answer begins with the prompt. So the prompt has to fit into the answer. */
static void test_long_echo(void **state) {
    (void)state;
    static const char open[] = "{\"echo\":true,\"prompt\":\"";
    for (size_t over = 0; over <= 1; over++) {
        size_t len = FM_OUTPUT_MAX + over;
        char *body = malloc(len + sizeof open + 2);
        memcpy(body, open, sizeof open - 1);
        memset(body + sizeof open - 1, 'x', len);
        memcpy(body + sizeof open - 1 + len, "\"}", 3);
        check_body(&fm_surface_completions, body, over ? "invalid_value" : NULL, "echo");
        free(body);
    }
}

static void test_jobs(void **state) {
    (void)state;
    check_job(&fm_surface_completions, "{" P "}", "\"prompt\":\"hi\",\"max_tokens\":16");
    check_job(&fm_surface_completions, "{\"prompt\":[\"a\\u0000b\"],\"suffix\":\"\",\"echo\":true}",
              "\"prompt\":\"a\\u0000b\",\"max_tokens\":16");
    check_job(&fm_surface_completions,
              "{" P ",\"suffix\":\"s\",\"max_tokens\":0,\"temperature\":0,\"top_p\":1,\"seed\":3,\"stop\":\"x\"}",
              "\"prompt\":\"hi\",\"suffix\":\"s\",\"max_tokens\":0,\"temperature\":0,\"top_p\":1,\"stop\":["
              "\"x\"]");
    check_job(&fm_surface_completions, "{" P ",\"fm\":{\"grammar\":{\"syntax\":\"lark\",\"definition\":\"x\"}}}",
              "\"prompt\":\"hi\",\"max_tokens\":16,\"format\":{\"type\":\"grammar\",\"syntax\":\"lark\",\"definition\":"
              "\"x\"}");
}

/* ---- what comes back ---- */

static void check_choice(struct json_object *object, const char *text, const char *reason) {
    assert_string_equal(str_at(object, "object"), "text_completion");
    assert_int_equal(strncmp(str_at(object, "id"), "cmpl-", 5), 0);
    assert_string_equal(str_at(object, "model"), "tiny");
    assert_int_equal(json_object_array_length(at(object, "choices")), 1);
    char choice[256];
    snprintf(choice, sizeof choice, "[{\"index\":0,\"text\":\"%s\",\"logprobs\":null,\"finish_reason\":%s}]", text,
             reason);
    assert_json(object, "choices", choice);
}

struct ending {
    enum fm_finish finish;
    const char *const *deltas;
    const char *reason; /* as JSON */
};

static const struct ending endings[] = {
    {FM_FINISH_STOP, greeting, "\"stop\""},     {FM_FINISH_STOP, no_deltas, "\"stop\""},
    {FM_FINISH_LENGTH, greeting, "\"length\""}, {FM_FINISH_CONTENT_FILTER, no_deltas, "\"content_filter\""},
    {FM_FINISH_CANCELLED, greeting, "null"},    {FM_FINISH_FAILED, greeting, "null"},
};

static void test_object(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        struct script script = {.surface = &fm_surface_completions,
                                .body = "{" P "}",
                                .deltas = endings[i].deltas,
                                .finish = endings[i].finish};
        struct stream stream;
        struct json_object *object = run(&script, &stream);
        assert_int_equal(stream.count, 0);
        assert_int_equal(json_object_object_length(object), 6);
        check_choice(object, endings[i].deltas == greeting ? "He\\\"llo w\xc3\xb6rld" : "", endings[i].reason);
        assert_true(int_at(object, "created") > 1600000000);
        assert_json(object, "usage", USAGE);
        json_object_put(object);
    }
}

static void check_stream(const struct ending *ending, bool include_usage) {
    struct script script = {.surface = &fm_surface_completions,
                            .body = include_usage ? BODY ",\"stream_options\":{\"include_usage\":true}}" : BODY "}",
                            .deltas = ending->deltas,
                            .finish = ending->finish};
    struct stream stream;
    struct json_object *object = run(&script, &stream);
    bool finished = strcmp(ending->reason, "null") != 0;
    size_t i = 0;
    if (ending->deltas == greeting && slow_host) {
        check_choice(stream.events[i++], "He\\\"llo w\xc3\xb6rld", "null");
    } else if (ending->deltas == greeting) {
        check_choice(stream.events[i++], "He\\\"llo", "null");
        check_choice(stream.events[i++], " w\xc3\xb6rld", "null");
    }
    if (finished) {
        check_choice(stream.events[i++], "", ending->reason);
    }
    for (size_t k = 0; k < i; k++) {
        assert_int_equal(json_object_object_length(stream.events[k]), include_usage ? 6 : 5);
        assert_json(stream.events[k], "usage", "null");
        assert_string_equal(str_at(stream.events[k], "id"), str_at(object, "id"));
    }
    assert_int_equal(stream.count, i + (finished && include_usage));
    if (i < stream.count) {
        assert_json(stream.events[i], "choices", "[]");
        assert_json(stream.events[i], "usage", USAGE);
    }
    json_object_put(object);
    stream_free(&stream);
}

static void test_stream(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        check_stream(&endings[i], false);
        check_stream(&endings[i], true);
    }
}

/* The prompt comes first, in the object and in the stream, but not before the engine has accepted it. */
static void test_echo(void **state) {
    (void)state;
    struct script script = {.surface = &fm_surface_completions,
                            .body = "{\"prompt\":\"\xc3\xa9\\n \",\"echo\":true,\"stream\":true}",
                            .deltas = greeting,
                            .finish = FM_FINISH_STOP};
    struct stream stream;
    struct json_object *object = run(&script, &stream);
    check_choice(object, "\xc3\xa9\\n He\\\"llo w\xc3\xb6rld", "\"stop\"");
    struct fm_buf text;
    fm_buf_init(&text, 4096);
    for (size_t i = 0; i < stream.count; i++) {
        fm_buf_append_str(&text, str_at(stream.events[i], "choices.0.text"));
    }
    fm_buf_append(&text, "", 1);
    assert_string_equal(text.data, str_at(object, "choices.0.text"));
    fm_buf_free(&text);
    json_object_put(object);
    stream_free(&stream);
    script.deltas = NULL;
    script.finish = FM_FINISH_CANCELLED;
    object = run(&script, &stream);
    check_choice(object, "", "null");
    assert_int_equal(stream.count, 0);
    json_object_put(object);
}

/* The echoed prompt counts towards an answer's maximum, and takes no room before the answer begins. */
static void test_room_after_an_echo(void **state) {
    (void)state;
    static char body[(1u << 20) + 64];
    int len = snprintf(body, sizeof body, "{\"echo\":true,\"stream\":true,\"prompt\":\"");
    for (size_t i = 0; i < 1u << 20; i += 2) {
        memcpy(body + len + i, "\\n", 2); /* its JSON is twice as long */
    }
    snprintf(body + len + (1u << 20), 16, "\"}");
    struct fm_request request = request_of(&fm_surface_completions, body);
    struct fm_answer answer;
    struct fm_cursor cursor = {0};
    struct fm_error error;
    assert_int_equal(fm_answer_init(&answer, &fm_surface_completions, &request, "tiny", &error), FM_OK);
    assert_int_equal(fm_answer_backlog(&answer, &cursor), 0);
    fm_answer_open(&answer, 1);
    assert_int_equal(fm_answer_backlog(&answer, &cursor), 1u << 19);
    char *rest = malloc(FM_OUTPUT_MAX);
    memset(rest, 'y', FM_OUTPUT_MAX);
    assert_true(fm_answer_append(&answer, rest, FM_OUTPUT_MAX - (1u << 20)));
    assert_false(fm_answer_append(&answer, rest, 1));
    free(rest);
    fm_answer_free(&answer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_long_echo),
        cmocka_unit_test(test_jobs),
        cmocka_unit_test(test_object),
        cmocka_unit_test(test_stream),
        cmocka_unit_test(test_echo),
        cmocka_unit_test(test_room_after_an_echo),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed + cmocka_run_group_tests(tests, with_slow_host, NULL);
}
