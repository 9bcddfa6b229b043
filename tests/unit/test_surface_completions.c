/* Legacy completions: bodies, the job, the object and its chunks. */
#include "test_surface.h"

#include "surface/usage.h"

#define P    "\"prompt\":\"hi\""
#define BODY "{" P ",\"stream\":true"
#define USAGE                                                                                                          \
    "{\"prompt_tokens\":11,\"completion_tokens\":7,\"total_tokens\":18,\"prompt_tokens_details\":"                     \
    "{\"cached_tokens\":3},\"completion_tokens_details\":{\"reasoning_tokens\":2}}"

#define BAD "\xef\xbf\xbd" /* a part of a character */

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
    {"{\"prompt\":[\"a\",\"\"]}", NULL, NULL},
    {"{\"prompt\":[\"a\",\"b\"],\"n\":128,\"best_of\":128,\"echo\":true}", NULL, NULL},
    {"{\"prompt\":[\"a\",1]}", "unsupported_value", "prompt[1]"},
    {"{\"prompt\":[\"a\",{}]}", "invalid_type", "prompt[1]"},
    {"{\"prompt\":[1,2]}", "unsupported_value", "prompt[0]"},
    {"{\"prompt\":[1]}", "unsupported_value", "prompt[0]"},
    {"{\"prompt\":[[1,2]]}", "unsupported_value", "prompt[0]"},
    {"{\"prompt\":[true]}", "invalid_type", "prompt[0]"},
    {"{\"prompt\":[null]}", "invalid_type", "prompt[0]"},
    {"{" P ",\"suffix\":5}", "invalid_type", "suffix"},
    {"{" P ",\"max_tokens\":0}", NULL, NULL},
    {"{" P ",\"max_tokens\":-1}", "integer_below_min_value", "max_tokens"},
    {"{" P ",\"max_tokens\":2147483648}", "integer_above_max_value", "max_tokens"},
    {"{" P ",\"echo\":1}", "invalid_type", "echo"},
    {"{" P ",\"n\":0}", "integer_below_min_value", "n"},
    {"{" P ",\"n\":129}", "integer_above_max_value", "n"},
    {"{" P ",\"n\":1.5}", "invalid_type", "n"},
    {"{" P ",\"best_of\":3}", "unsupported_parameter", "best_of"},
    {"{" P ",\"n\":2,\"best_of\":3}", "unsupported_parameter", "best_of"},
    {"{" P ",\"n\":2,\"best_of\":1}", "unsupported_parameter", "best_of"},
    {"{" P ",\"logprobs\":0}", NULL, NULL},
    {"{" P ",\"logprobs\":5,\"echo\":false}", NULL, NULL},
    {"{" P ",\"logprobs\":6}", "integer_above_max_value", "logprobs"},
    {"{" P ",\"logprobs\":true}", "invalid_type", "logprobs"},
    {"{" P ",\"logprobs\":0,\"echo\":true}", "unsupported_parameter", "logprobs"},
    {"{" P ",\"logit_bias\":{\"5\":1}}", NULL, NULL},
    {"{" P ",\"logit_bias\":{\"5\":101}}", "decimal_above_max_value", "logit_bias.5"},
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

/* The number of choices is limited, over all prompts. */
static void test_many_choices(void **state) {
    (void)state;
    for (size_t over = 0; over <= 1; over++) {
        struct fm_buf body;
        fm_buf_init(&body, 1u << 16);
        fm_buf_append_str(&body, "{\"prompt\":[\"a\"");
        for (size_t i = 1; i < 2048 + over; i++) {
            fm_buf_append_str(&body, ",\"a\"");
        }
        size_t before = body.len;
        fm_buf_append(&body, "]}", 3);
        check_body(&fm_surface_completions, body.data, over ? "array_above_max_length" : NULL, "prompt");
        body.len = before;
        fm_buf_append(&body, "],\"n\":2}", 9);
        check_body(&fm_surface_completions, body.data, over ? "array_above_max_length" : "invalid_value",
                   over ? "prompt" : "n");
        fm_buf_free(&body);
    }
}

static void test_jobs(void **state) {
    (void)state;
    check_job(&fm_surface_completions, "{" P "}", "\"max_tokens\":16");
    check_job(&fm_surface_completions, "{\"prompt\":[\"a\\u0000b\"],\"suffix\":\"\",\"echo\":true}",
              "\"max_tokens\":16");
    check_job(&fm_surface_completions,
              "{" P ",\"suffix\":\"s\",\"max_tokens\":0,\"temperature\":0,\"top_p\":1,\"seed\":3,\"stop\":\"x\"}",
              "\"suffix\":\"s\",\"max_tokens\":0,\"temperature\":0,\"top_p\":1,\"stop\":[\"x\"]");
    check_job(&fm_surface_completions, "{" P ",\"logprobs\":2,\"logit_bias\":{\"5\":1}}",
              "\"max_tokens\":16,\"logprobs\":2,\"logit_bias\":[[5,1]]");
    check_job(&fm_surface_completions, "{" P ",\"fm\":{\"grammar\":{\"syntax\":\"lark\",\"definition\":\"x\"}}}",
              "\"max_tokens\":16,\"format\":{\"type\":\"grammar\",\"syntax\":\"lark\",\"definition\":\"x\"}");
}

/* ---- log probabilities ---- */

/* A token with a NUL, one that is no character, and a token that is written twice among the alternatives. */
static void test_odd_tokens(void **state) {
    (void)state;
    static const char list[] =
        "[{\"bytes\":[97,0],\"logprob\":-1,\"top\":[{\"bytes\":[97],\"logprob\":-2},{\"bytes\":[97,0],\"logprob\":-1},"
        "{\"bytes\":[97],\"logprob\":-4}]},"
        "{\"bytes\":[130],\"logprob\":-1,\"top\":[{\"bytes\":[131],\"logprob\":-2}]},{\"bytes\":[98],\"logprob\":0,"
        "\"top\":[]}]";
    struct fm_request request = request_of(&fm_surface_completions, "{" P ",\"logprobs\":2}");
    struct fm_answer answer;
    struct fm_error error;
    assert_int_equal(fm_answer_init(&answer, &fm_surface_completions, &request, "tiny", &error), FM_OK);
    fm_answer_open(&answer, 1);
    struct json_object *entries = json_of(list, strlen(list));
    assert_true(fm_answer_append(&answer, "a\0" BAD "b", 6));
    assert_int_equal(fm_answer_logprobs(&answer, entries, &error), FM_OK);
    json_object_put(entries);
    fm_answer_finish(&answer, FM_FINISH_STOP, NULL);
    struct fm_buf buf;
    fm_buf_init(&buf, 1u << 16);
    struct fm_json_writer w = fm_json_writer_on(&buf);
    fm_surface_completions.write(&answer, &w);
    fm_buf_append(&buf, "", 1);
    static const char expected[] = "\"top_logprobs\":[{\"a\\u0000\":-1,\"a\":-2},{\"" BAD "\":-1},{\"b\":0}],"
                                   "\"text_offset\":[0,2,3]";
    assert_non_null(strstr(buf.data, expected));
    fm_buf_free(&buf);
    fm_answer_free(&answer);
}

/* Two deltas, the second one with a character whose bytes are two tokens. */
static void test_logprobs(void **state) {
    (void)state;
    static const char *const lists[] = {
        "[{\"bytes\":[104,195,169],\"logprob\":-0.5,\"top\":[{\"bytes\":[104,195,169],\"logprob\":-0.5},{\"bytes\":["
        "120],"
        "\"logprob\":-2}]}]",
        "[{\"bytes\":[195],\"logprob\":-1,\"top\":[]},{\"bytes\":[182],\"logprob\":0,\"top\":[]},{\"bytes\":[33],"
        "\"logprob\":-3,\"top\":[]}]",
    };
    static const char *const texts[] = {"h\xc3\xa9", "\xc3\xb6!"};
    struct fm_request request = request_of(&fm_surface_completions, "{" P ",\"logprobs\":2,\"stream\":true}");
    struct fm_answer answer;
    struct fm_error error;
    struct stream stream = {.count = 0};
    assert_int_equal(fm_answer_init(&answer, &fm_surface_completions, &request, "tiny", &error), FM_OK);
    fm_answer_open(&answer, 1);
    for (size_t i = 0; i < 2; i++) {
        struct json_object *list = json_of(lists[i], strlen(lists[i]));
        assert_true(fm_answer_append(&answer, texts[i], strlen(texts[i])));
        assert_int_equal(fm_answer_logprobs(&answer, list, &error), FM_OK);
        json_object_put(list);
        pull(&answer, &stream);
    }
    answer.usage.output = 4;
    fm_answer_finish(&answer, FM_FINISH_STOP, NULL);
    pull(&answer, &stream);
    struct json_object *object = object_now(&answer);
    assert_json(object, "choices.0.logprobs",
                "{\"tokens\":[\"h\xc3\xa9\",\"" BAD "\",\"" BAD "\",\"!\"],\"token_logprobs\":[-0.5,-1,0,-3],"
                "\"top_logprobs\":[{\"h\xc3\xa9\":-0.5,\"x\":-2},{\"" BAD "\":-1},{\"" BAD "\":0},{\"!\":-3}],"
                "\"text_offset\":[0,2,3,3]}");
    assert_json(
        stream.events[0], "choices.0.logprobs",
        "{\"tokens\":[\"h\xc3\xa9\"],\"token_logprobs\":[-0.5],\"top_logprobs\":[{\"h\xc3\xa9\":-0.5,\"x\":-2}],"
        "\"text_offset\":[0]}");
    assert_json(stream.events[1], "choices.0.logprobs.text_offset", "[2,3,3]");
    assert_null(at(stream.events[2], "choices.0.logprobs"));
    json_object_put(object);
    stream_free(&stream);
    fm_answer_free(&answer);
}

/* ---- several prompts ---- */

/* What differs between the jobs of an answer. */
static void check_choice_members(const struct fm_answer *answer, const char *expected) {
    struct fm_buf buf;
    fm_buf_init(&buf, 1024);
    struct fm_json_writer w = fm_json_writer_on(&buf);
    fm_json_object_begin(&w);
    fm_answer_write_prompt(answer, &w);
    fm_answer_write_choice(answer, &w);
    fm_json_object_end(&w);
    fm_buf_append(&buf, "", 1);
    assert_string_equal(buf.data, expected);
    fm_buf_free(&buf);
}

/*
 * Two prompts with two choices each: the order of the choices, the prompt of each, and the tokens. A prompt counts
 * once, however many choices it has.
 */
static void test_prompts(void **state) {
    (void)state;
    static const char *const jobs[] = {
        "{\"prompt\":\"a\\u0000\",\"seed\":5}",
        "{\"prompt\":\"a\\u0000\",\"seed\":6}",
        "{\"prompt\":\"\",\"seed\":7}",
        "{\"prompt\":\"\",\"seed\":8}",
    };
    struct fm_request request = request_of(
        &fm_surface_completions, "{\"prompt\":[\"a\\u0000\",\"\"],\"n\":2,\"seed\":5,\"echo\":true,\"stream\":true}");
    struct fm_answer answer;
    struct fm_error error;
    struct stream stream = {.count = 0};
    assert_int_equal(fm_answer_init(&answer, &fm_surface_completions, &request, "tiny", &error), FM_OK);
    for (size_t i = 0; i < 4; i++) {
        char text[] = {(char)('w' + i), 0};
        check_choice_members(&answer, jobs[i]);
        if (i == 2) { /* its prompt has not been read */
            assert_int_equal(fm_answer_usage(&answer).input, 3);
        }
        fm_answer_open(&answer, i < 2 ? 3 : 1);
        assert_true(fm_answer_append(&answer, text, 1));
        pull(&answer, &stream);
        answer.usage.output = 1;
        if (i < 3) {
            assert_true(fm_answer_goes_on(&answer, FM_FINISH_LENGTH));
            assert_int_equal(fm_answer_next(&answer, FM_FINISH_LENGTH, &error), FM_OK);
        }
    }
    fm_answer_finish(&answer, FM_FINISH_STOP, NULL);
    pull(&answer, &stream);
    struct json_object *object = object_now(&answer);
    assert_json(object, "choices",
                "[{\"index\":0,\"text\":\"a\\u0000w\",\"logprobs\":null,\"finish_reason\":\"length\"},"
                "{\"index\":1,\"text\":\"a\\u0000x\",\"logprobs\":null,\"finish_reason\":\"length\"},"
                "{\"index\":2,\"text\":\"y\",\"logprobs\":null,\"finish_reason\":\"length\"},"
                "{\"index\":3,\"text\":\"z\",\"logprobs\":null,\"finish_reason\":\"stop\"}]");
    assert_int_equal(int_at(object, "usage.prompt_tokens"), 4);
    assert_int_equal(int_at(object, "usage.completion_tokens"), 4);
    int64_t finishes = 0;
    for (size_t i = 0; i < stream.count; i++) {
        struct json_object *reason = at(stream.events[i], "choices.0.finish_reason");
        assert_int_equal(int_at(stream.events[i], "choices.0.index"), finishes);
        finishes += reason != NULL;
    }
    assert_int_equal(finishes, 4);
    json_object_put(object);
    stream_free(&stream);
    fm_answer_free(&answer);
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
        cmocka_unit_test(test_many_choices),
        cmocka_unit_test(test_jobs),
        cmocka_unit_test(test_logprobs),
        cmocka_unit_test(test_odd_tokens),
        cmocka_unit_test(test_prompts),
        cmocka_unit_test(test_object),
        cmocka_unit_test(test_stream),
        cmocka_unit_test(test_echo),
        cmocka_unit_test(test_room_after_an_echo),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed + cmocka_run_group_tests(tests, with_slow_host, NULL);
}
