/* How objects show counts that an engine does not report: never as a number, and details never as null. */
#include "surface/usage.h"
#include "test_surface.h"

#define U FM_UNKNOWN_COUNT

#define RESPONSE(input, cached, output, reasoning, total)                                                              \
    "{\"input_tokens\":" input ",\"input_tokens_details\":{\"cached_tokens\":" cached ",\"cache_write_tokens\":0},"    \
    "\"output_tokens\":" output ",\"output_tokens_details\":{\"reasoning_tokens\":" reasoning                          \
    "},\"total_tokens\":" total "}"
#define CHAT(cached, reasoning)                                                                                        \
    "{\"prompt_tokens\":7,\"completion_tokens\":3,\"total_tokens\":10,\"prompt_tokens_details\":{" cached              \
    "},\"completion_tokens_details\":{" reasoning "}}"

static const struct row {
    const struct fm_surface *surface;
    const char *body;
    struct fm_usage counts; /* input, cached, output, reasoning */
    const char *usage;      /* NULL: null */
    const char *fm;         /* NULL: absent */
} rows[] = {
    {&fm_surface_responses, "{\"input\":\"x\"}", {7, 2, 3, 1}, RESPONSE("7", "2", "3", "1", "10"), NULL},
    {&fm_surface_responses, "{\"input\":\"x\"}", {7, 0, 3, 0}, RESPONSE("7", "0", "3", "0", "10"), NULL},
    {&fm_surface_responses,
     "{\"input\":\"x\"}",
     {7, U, 3, 1},
     RESPONSE("7", "0", "3", "1", "10"),
     "{\"uncounted\":[\"cached_tokens\"]}"},
    {&fm_surface_responses,
     "{\"input\":\"x\"}",
     {7, 2, 3, U},
     RESPONSE("7", "2", "3", "0", "10"),
     "{\"uncounted\":[\"reasoning_tokens\"]}"},
    {&fm_surface_responses,
     "{\"input\":\"x\"}",
     {7, U, 3, U},
     RESPONSE("7", "0", "3", "0", "10"),
     "{\"uncounted\":[\"cached_tokens\",\"reasoning_tokens\"]}"},
    {&fm_surface_responses, "{\"input\":\"x\"}", {U, U, U, U}, NULL, NULL},
    {&fm_surface_responses, "{\"input\":\"x\"}", {7, 2, U, U}, NULL, NULL},
    {&fm_surface_responses, "{\"input\":\"x\"}", {U, U, 3, 1}, NULL, NULL},
    {&fm_surface_compact,
     "{\"model\":\"m\",\"input\":\"x\"}",
     {7, U, 3, U},
     RESPONSE("7", "0", "3", "0", "10"),
     "{\"uncounted\":[\"cached_tokens\",\"reasoning_tokens\"]}"},
    {&fm_surface_chat,
     "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}",
     {7, 2, 3, 1},
     CHAT("\"cached_tokens\":2", "\"reasoning_tokens\":1"),
     NULL},
    {&fm_surface_chat,
     "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}",
     {7, U, 3, 1},
     CHAT("", "\"reasoning_tokens\":1"),
     NULL},
    {&fm_surface_chat, "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}", {7, U, 3, U}, CHAT("", ""), NULL},
    {&fm_surface_chat, "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}", {7, 2, U, U}, NULL, NULL},
    {&fm_surface_completions, "{\"prompt\":\"x\"}", {7, U, 3, U}, CHAT("", ""), NULL},
};

/* The members of an answer's object with these counts. Adds brackets if the surface only writes members. */
static struct json_object *object_of(const struct row *row) {
    struct fm_request request = request_of(row->surface, row->body);
    struct fm_answer answer;
    struct fm_error error;
    struct fm_buf buf;
    fm_buf_init(&buf, 1u << 20);
    struct fm_json_writer w = fm_json_writer_on(&buf);
    assert_int_equal(fm_answer_init(&answer, row->surface, &request, "tiny", &error), FM_OK);
    fm_answer_open(&answer, row->counts.input);
    produce(&answer, "One sentence.");
    answer.usage = row->counts;
    fm_answer_finish(&answer, FM_FINISH_STOP, NULL);
    if (!row->surface->result_member) {
        fm_json_object_begin(&w);
    }
    row->surface->write(&answer, &w);
    if (!row->surface->result_member) {
        fm_json_object_end(&w);
    }
    fm_buf_append_char(&buf, '\0');
    struct json_object *object = json_tokener_parse(buf.data);
    assert_non_null(object);
    fm_buf_free(&buf);
    fm_answer_free(&answer);
    return object;
}

static void assert_member(struct json_object *object, size_t row, const char *name, const char *expected) {
    struct json_object *value = json_object_object_get(object, name);
    const char *text = value ? json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN) : NULL;
    if ((text == NULL) != (expected == NULL) || (text && strcmp(text, expected) != 0)) {
        fail_msg("row %zu: %s: expected %s, got %s", row, name, expected, text);
    }
}

static void what_is_not_known_passes_for_no_count(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct json_object *object = object_of(&rows[i]);
        assert_true(json_object_object_get_ex(object, "usage", NULL));
        assert_member(object, i, "usage", rows[i].usage);
        assert_member(object, i, "fm", rows[i].fm);
        json_object_put(object);
    }
}

/* A stored response that is read again has the same counts, and the same gaps. */
static void a_stored_response_has_the_same_counts(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bool known = fm_usage_known(&rows[i].counts);
        if (rows[i].surface != &fm_surface_responses) {
            continue;
        }
        struct json_object *object = object_of(&rows[i]);
        struct json_object *fm = json_object_object_get(object, "fm");
        struct fm_usage again =
            fm_usage_restore(json_object_object_get(object, "usage"), json_object_object_get(fm, "uncounted"));
        assert_int_equal(again.input, known ? rows[i].counts.input : U);
        assert_int_equal(again.cached, known ? rows[i].counts.cached : U);
        assert_int_equal(again.output, known ? rows[i].counts.output : U);
        assert_int_equal(again.reasoning, known ? rows[i].counts.reasoning : U);
        json_object_put(object);
    }
}

/* The counts of two choices are added: the prompt is counted once, and other counts are added if both are known. */
static void several_choices(void **state) {
    static const struct {
        struct fm_usage first, second, sum;
    } sums[] = {
        {{7, 2, 3, 1}, {7, 6, 5, 4}, {7, 2, 8, 5}},
        {{7, 2, U, 1}, {7, 6, 5, U}, {7, 2, U, U}},
        {{U, U, 3, U}, {7, 6, U, 4}, {U, U, U, U}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof sums / sizeof sums[0]; i++) {
        struct fm_answer first = {.usage = sums[i].first};
        struct fm_answer *earlier[] = {&first};
        struct fm_answer second = {.usage = sums[i].second, .request.choices = 2, .choice = 1, .earlier = earlier};
        struct fm_usage sum = fm_answer_usage(&second);
        assert_int_equal(sum.input, sums[i].sum.input);
        assert_int_equal(sum.cached, sums[i].sum.cached);
        assert_int_equal(sum.output, sums[i].sum.output);
        assert_int_equal(sum.reasoning, sums[i].sum.reasoning);
    }
}

static void vectors(void **state) {
    static const struct {
        int64_t input;
        const char *usage;
    } counts[] = {
        {5, "{\"prompt_tokens\":5,\"total_tokens\":5}"}, {0, "{\"prompt_tokens\":0,\"total_tokens\":0}"}, {U, NULL}};
    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        struct fm_usage usage = {.input = counts[i].input};
        struct fm_buf buf;
        fm_buf_init(&buf, 1024);
        struct fm_json_writer w = fm_json_writer_on(&buf);
        fm_json_object_begin(&w);
        fm_embeddings_write_usage(&usage, &w);
        fm_json_object_end(&w);
        fm_buf_append_char(&buf, '\0');
        struct json_object *object = json_tokener_parse(buf.data);
        assert_member(object, i, "usage", counts[i].usage);
        json_object_put(object);
        fm_buf_free(&buf);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_known_passes_for_no_count),
        cmocka_unit_test(a_stored_response_has_the_same_counts),
        cmocka_unit_test(several_choices),
        cmocka_unit_test(vectors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
