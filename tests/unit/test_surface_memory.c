/* Each of our own allocations fails once, in turn (the linker wraps them): no crash, no leak, only an error. */
#include "allocations.h"
#include "protocol/vector.h"
#include "test_surface.h"

/* Makes one whole answer. Returns true if no allocation failed. */
static bool attempt(const struct fm_surface *surface, struct json_object *params, int allocations) {
    struct fm_request request;
    struct fm_answer answer;
    struct fm_error error;
    allocations_left = allocations;
    if (surface->parse(params, &request, &error) != FM_OK ||
        fm_answer_init(&answer, surface, &request, "tiny", &error) != FM_OK) {
        allocations_left = -1;
        assert_int_equal(error.code, FM_INTERNAL);
        fm_request_free(&request); /* harmless after any failure */
        return false;
    }
    struct fm_buf report;
    fm_buf_init(&report, 1u << 20);
    fm_buf_append_str(&report, "\"enforced\":[\"type\"],\"checked\":[]");
    bool reported = !report.failed; /* if the report failed, the front fails the job */
    fm_answer_report(&answer, &report);
    fm_answer_open(&answer, 1);
    bool ok = reported && fm_answer_append(&answer, "Hello", 5);
    if (answer.request.tools.len > 0) {
        ok = ok && fm_answer_call(&answer, "f", &error) == FM_OK && fm_answer_append(&answer, "{}", 2);
    }
    fm_answer_finish(&answer, ok ? FM_FINISH_STOP : FM_FINISH_FAILED, NULL);
    struct fm_buf buf;
    fm_buf_init(&buf, 1u << 20);
    struct fm_json_writer w = fm_json_writer_on(&buf);
    struct fm_cursor cursor = {0};
    while (answer.request.stream && fm_answer_has_event(&answer, &cursor)) {
        fm_answer_write_event(&answer, &cursor, &w);
    }
    surface->write(&answer, &w);
    ok = ok && !buf.failed;
    allocations_left = -1;
    fm_buf_free(&buf);
    fm_answer_free(&answer);
    return ok;
}

#define DIMENSION 1000 /* so many numbers that the text of a vector needs several allocations */

/* Makes one whole answer with vectors. Returns true if no allocation failed. */
static bool attempt_vectors(struct json_object *params, const struct fm_buf *vector, int allocations) {
    struct fm_request request;
    struct fm_answer answer;
    struct fm_error error;
    allocations_left = allocations;
    if (fm_surface_embeddings.parse(params, &request, &error) != FM_OK ||
        fm_answer_init(&answer, &fm_surface_embeddings, &request, "tiny", &error) != FM_OK) {
        allocations_left = -1;
        assert_int_equal(error.code, FM_INTERNAL);
        fm_request_free(&request);
        return false;
    }
    bool ok = fm_answer_expect_vectors(&answer, DIMENSION, &error) == FM_OK;
    fm_answer_open(&answer, 1);
    for (size_t i = 0; i < 2 && ok; i++) {
        ok = fm_answer_vector(&answer, vector->data + 1, vector->len - 2, &error) == FM_OK;
    }
    assert_true(ok || error.code == FM_INTERNAL);
    fm_answer_finish(&answer, ok ? FM_FINISH_STOP : FM_FINISH_FAILED, NULL);
    allocations_left = -1;
    struct fm_buf buf;
    fm_buf_init(&buf, 1u << 20);
    struct fm_json_writer w = fm_json_writer_on(&buf);
    answer.surface->write(&answer, &w);
    json_object_put(json_of(buf.data, buf.len)); /* each entry is whole, however many there are */
    fm_buf_free(&buf);
    fm_answer_free(&answer);
    return ok;
}

static void test_vectors(void **state) {
    static const char body[] = "{\"model\":\"m\",\"input\":[\"hi\",\"ho\"]}";
    static const float values[DIMENSION] = {1};
    struct fm_buf vector;
    (void)state;
    fm_buf_init(&vector, 1u << 20);
    struct fm_json_writer w = fm_json_writer_on(&vector);
    fm_vector_write(values, DIMENSION, &w);
    struct json_object *params = json_of(body, strlen(body));
    int failed = 0;
    while (!attempt_vectors(params, &vector, failed)) {
        failed++;
        assert_true(failed < 1000);
    }
    assert_true(failed > 5);
    json_object_put(params);
    fm_buf_free(&vector);
}

static void check_surface(const struct fm_surface *surface, const char *body) {
    struct json_object *params = json_of(body, strlen(body));
    int failed = 0;
    while (!attempt(surface, params, failed)) {
        failed++;
        assert_true(failed < 1000);
    }
    assert_true(failed > 5); /* some allocations have failed */
    json_object_put(params);
}

static void test_each_allocation(void **state) {
    (void)state;
    check_surface(&fm_surface_responses, "{\"model\":\"m\",\"stream\":true,\"instructions\":\"do\","
                                         "\"metadata\":{\"a\":\"b\"},\"input\":[{\"role\":\"user\","
                                         "\"content\":[{\"type\":\"input_text\",\"text\":\"hi\"}]}],\"stop\":[\"x\"]}");
    check_surface(&fm_surface_chat, "{\"model\":\"m\",\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":"
                                    "[{\"type\":\"text\",\"text\":\"hi\"}]}],\"stop\":\"x\"}");
    check_surface(&fm_surface_completions, "{\"model\":\"m\",\"stream\":true,\"prompt\":\"hi\",\"echo\":true}");
    check_surface(&fm_surface_responses, "{\"input\":\"hi\",\"fm\":{\"schema_report\":true},\"text\":{\"format\":"
                                         "{\"type\":\"json_schema\",\"name\":\"n\",\"schema\":{\"a\":[{}]}}}}");
    check_surface(&fm_surface_responses,
                  "{\"stream\":true,\"tools\":[{\"type\":\"function\",\"name\":\"f\",\"parameters\":{\"a\":[{}]}}],"
                  "\"input\":[{\"type\":\"function_call\",\"call_id\":\"1\",\"name\":\"f\",\"arguments\":\"{}\"},"
                  "{\"type\":\"function_call_output\",\"call_id\":\"1\",\"output\":[{\"type\":\"input_text\","
                  "\"text\":\"hi\"}]}]}");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_allocation), cmocka_unit_test(test_vectors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
