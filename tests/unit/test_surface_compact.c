/* A conversation's summary: its job, its two tries, and the end of a summary that was cut. */
#include "test_surface.h"

#define BODY "{\"input\":\"hi\",\"model\":\"m\"}"
#define CAP  1024

static struct fm_answer begun(void) {
    struct fm_request request = request_of(&fm_surface_compact, BODY);
    struct fm_answer answer;
    struct fm_error error;
    assert_int_equal(fm_answer_init(&answer, &fm_surface_compact, &request, "tiny", &error), FM_OK);
    fm_answer_open(&answer, 5);
    return answer;
}

/* The answer's object; the caller puts it. */
static struct json_object *result_of(const struct fm_answer *answer) {
    struct fm_buf buf;
    fm_buf_init(&buf, 4096);
    struct fm_json_writer w = fm_json_writer_on(&buf);
    fm_json_object_begin(&w);
    answer->surface->write(answer, &w);
    fm_json_object_end(&w);
    struct json_object *object = json_of(buf.data, buf.len);
    fm_buf_free(&buf);
    return object;
}

static void test_the_cap(void **state) {
    (void)state;
    struct fm_request request = request_of(&fm_surface_compact, BODY);
    char *members = strndup(request.job_members.data, request.job_members.len);
    assert_non_null(strstr(members, "\"max_tokens\":1024"));
    assert_int_equal(request.choices, 2);
    free(members);
    fm_request_free(&request);
}

static void check_own(const struct fm_answer *answer, const char *expected) {
    struct fm_buf buf;
    fm_buf_init(&buf, 4096);
    struct fm_json_writer w = fm_json_writer_on(&buf);
    fm_answer_write_choice(answer, &w);
    fm_buf_append(&buf, "", 1);
    assert_string_equal(buf.data, expected);
    fm_buf_free(&buf);
}

/* Only a cut leads to a second try, once, with a penalty; the usage is the sum of both. */
static void test_tries(void **state) {
    (void)state;
    struct fm_answer answer = begun();
    struct fm_error error;
    check_own(&answer, "");
    assert_true(fm_answer_goes_on(&answer, FM_FINISH_LENGTH));
    assert_false(fm_answer_goes_on(&answer, FM_FINISH_STOP));
    assert_false(fm_answer_goes_on(&answer, FM_FINISH_CONTENT_FILTER));
    assert_true(fm_answer_append(&answer, "first", 5));
    answer.usage = (struct fm_usage){.input = 5, .output = CAP};
    assert_int_equal(fm_answer_next(&answer, FM_FINISH_LENGTH, &error), FM_OK);
    check_own(&answer, "\"frequency_penalty\":0.5");
    assert_false(fm_answer_goes_on(&answer, FM_FINISH_LENGTH));
    assert_true(fm_answer_append(&answer, "second", 6));
    answer.usage = (struct fm_usage){.input = 5, .cached = 4, .output = 3};
    fm_answer_finish(&answer, FM_FINISH_STOP, NULL);
    struct json_object *object = result_of(&answer);
    assert_string_equal(str_at(object, "output.0.encrypted_content"), "fm1:second");
    assert_int_equal(json_object_get_int64(at(object, "usage.output_tokens")), CAP + 3);
    assert_int_equal(json_object_get_int64(at(object, "usage.input_tokens")), 5);
    json_object_put(object);
    fm_answer_free(&answer);
}

static void test_where_a_cut_text_ends(void **state) {
    (void)state;
    static const struct {
        const char *text;
        const char *summary; /* the summary from a cut text; NULL: there was no room, so an overflow */
    } rows[] = {
        {"One. Two. Thr", "One. Two."},
        {"One! Two? Thr", "One! Two?"},
        {"One. Two costs 3.5", "One."},
        {"He said \"no.\" And th", "He said \"no.\""},
        {"It is (so.) An", "It is (so.)"},
        {"**Bold.** mo", "**Bold.**"},
        {"Whole.", "Whole."},
        {"- one\n- two\n- thr", "- one\n- two"},
        {"\n \nno end", NULL},
        {"One. Two\n\n", "One. Two"},
        {"\xe4\xb8\x80\xe3\x80\x82\xe4\xba\x8c", "\xe4\xb8\x80\xe3\x80\x82"},
        {"no end", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int room = 0; room < 2; room++) {
            struct fm_answer answer = begun();
            struct fm_error error;
            assert_true(fm_answer_append(&answer, rows[i].text, strlen(rows[i].text)));
            answer.usage = (struct fm_usage){.input = 5, .output = room ? CAP : CAP - 1};
            enum fm_code code = answer.surface->check_cut(&answer, &error);
            assert_int_equal(code, room || rows[i].summary ? FM_OK : FM_CONTEXT_OVERFLOW);
            fm_answer_finish(&answer, FM_FINISH_LENGTH, NULL);
            struct json_object *object = result_of(&answer);
            const char *summary = rows[i].summary ? rows[i].summary : rows[i].text; /* the whole text */
            assert_string_equal(str_at(object, "output.0.encrypted_content") + strlen("fm1:"), summary);
            json_object_put(object);
            fm_answer_free(&answer);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_cap),
        cmocka_unit_test(test_tries),
        cmocka_unit_test(test_where_a_cut_text_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
