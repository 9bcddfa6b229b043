/* The embeddings API: which bodies are accepted, what the engine gets, and how its vectors appear in the reply. */
#include "protocol/frame.h"
#include "protocol/vector.h"
#include "test_surface.h"

#include <math.h>

static void bodies_are_taken_or_refused(void **state) {
    static const struct {
        const char *body;
        const char *code; /* NULL: accepted */
        const char *param;
    } rows[] = {
        {"{\"input\":\"x\"}", NULL, NULL},
        {"{\"input\":[\"x\"]}", NULL, NULL},
        {"{\"input\":[\"x\",\"\\u0000\"],\"model\":\"m\",\"encoding_format\":\"float\",\"dimensions\":1,"
         "\"user\":\"me\",\"fm\":{\"timeout_ms\":5,\"repeatable\":true}}",
         NULL, NULL},
        {"{\"input\":\"x\",\"model\":null,\"encoding_format\":null,\"dimensions\":null,\"user\":null,\"fm\":null}",
         NULL, NULL},
        {"{\"input\":\"x\",\"encoding_format\":\"base64\",\"dimensions\":2147483647}", NULL, NULL},
        {"{}", "missing_required_parameter", "input"},
        {"{\"input\":null}", "missing_required_parameter", "input"},
        {"{\"input\":\"\"}", "invalid_value", "input"},
        {"{\"input\":[]}", "invalid_value", "input"},
        {"{\"input\":[\"x\",\"\"]}", "invalid_value", "input[1]"},
        {"{\"input\":[\"x\",null]}", "invalid_type", "input[1]"},
        {"{\"input\":[\"x\",{}]}", "invalid_type", "input[1]"},
        {"{\"input\":5}", "invalid_type", "input"},
        {"{\"input\":{}}", "invalid_type", "input"},
        {"{\"input\":[1,2]}", "unsupported_value", "input[0]"},
        {"{\"input\":[[1,2]]}", "unsupported_value", "input[0]"},
        {"{\"input\":[\"x\",[1]]}", "unsupported_value", "input[1]"},
        {"{\"input\":\"x\",\"model\":1}", "invalid_type", "model"},
        {"{\"input\":\"x\",\"model\":\"a\\u0000\"}", "invalid_value", "model"},
        {"{\"input\":\"x\",\"encoding_format\":\"int8\"}", "invalid_value", "encoding_format"},
        {"{\"input\":\"x\",\"encoding_format\":1}", "invalid_type", "encoding_format"},
        {"{\"input\":\"x\",\"dimensions\":0}", "integer_below_min_value", "dimensions"},
        {"{\"input\":\"x\",\"dimensions\":2147483648}", "integer_above_max_value", "dimensions"},
        {"{\"input\":\"x\",\"dimensions\":1.0}", "invalid_type", "dimensions"},
        {"{\"input\":\"x\",\"user\":1}", "invalid_type", "user"},
        {"{\"input\":\"x\",\"fm\":{\"grammar\":null}}", "unknown_parameter", "fm.grammar"},
        {"{\"input\":\"x\",\"fm\":{\"timeout_ms\":0}}", "integer_below_min_value", "fm.timeout_ms"},
        {"{\"input\":\"x\",\"stream\":true}", "unsupported_parameter", "stream"},
        {"{\"input\":\"x\",\"temperature\":0}", "unsupported_parameter", "temperature"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check_body(&fm_surface_embeddings, rows[i].body, rows[i].code, rows[i].param);
    }
}

/* A body with `count` inputs. */
static void check_count(size_t count, const char *code) {
    struct fm_buf body;
    fm_buf_init(&body, 1u << 16);
    fm_buf_append_str(&body, "{\"input\":[\"x\"");
    for (size_t i = 1; i < count; i++) {
        fm_buf_append_str(&body, ",\"x\"");
    }
    fm_buf_append(&body, "]}", 3);
    check_body(&fm_surface_embeddings, body.data, code, "input");
    fm_buf_free(&body);
}

static void at_most_2048_inputs(void **state) {
    (void)state;
    check_count(2048, NULL);
    check_count(2049, "array_above_max_length");
}

static void the_job(void **state) {
    (void)state;
    check_job(&fm_surface_embeddings, "{\"input\":\"x\",\"dimensions\":2,\"user\":\"me\"}", "\"embed\":[\"x\"]");
    check_job(&fm_surface_embeddings, "{\"encoding_format\":\"base64\",\"input\":[\"a\",\"\\u0000b\"]}",
              "\"embed\":[\"a\",\"\\u0000b\"]");
}

static void params_are_the_hosts(void **state) {
    static const struct {
        const char *body;
        const char *engine;
        const char *host;
    } rows[] = {
        {"{\"input\":[\"a\",\"b\"]}", "embed[1]", "input[1]"},
        {"{\"input\":[\"a\"]}", "embed[0]", "input[0]"},
        {"{\"input\":\"a\"}", "embed[0]", "input"},
        {"{\"input\":\"a\"}", "embed", "input"},
        {"{\"input\":[\"a\"]}", "embed", "input"},
        {"{\"input\":\"a\"}", "model", "model"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fm_request request = request_of(&fm_surface_embeddings, rows[i].body);
        struct fm_error error = {.code = FM_INVALID_REQUEST};
        snprintf(error.param, sizeof error.param, "%s", rows[i].engine);
        fm_request_rename_param(&request, &error);
        assert_string_equal(error.param, rows[i].host);
        fm_request_free(&request);
    }
}

/* ---- answers ---- */

static void begin(struct fm_answer *answer, const char *body) {
    struct fm_request request = request_of(&fm_surface_embeddings, body);
    struct fm_error error;
    assert_int_equal(fm_answer_init(answer, &fm_surface_embeddings, &request, "tiny", &error), FM_OK);
}

static enum fm_code add(struct fm_answer *answer, const float *values, size_t count, struct fm_error *error) {
    struct fm_buf buf;
    fm_buf_init(&buf, 1u << 20);
    struct fm_json_writer w = fm_json_writer_on(&buf);
    fm_vector_write(values, count, &w);
    enum fm_code code = fm_answer_vector(answer, buf.data + 1, buf.len - 2, error);
    fm_buf_free(&buf);
    return code;
}

/* The object for two vectors of three numbers. */
static struct json_object *two_vectors(const char *body) {
    static const float vectors[2][3] = {{0.6f, 0, -0.8f}, {0, 1, 0}};
    struct fm_answer answer;
    struct fm_cursor cursor = {0};
    struct fm_error error;
    begin(&answer, body);
    assert_int_equal(fm_answer_expect_vectors(&answer, 3, &error), FM_OK);
    fm_answer_open(&answer, 5);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(add(&answer, vectors[i], 3, &error), FM_OK);
    }
    assert_false(fm_answer_has_event(&answer, &cursor));
    fm_answer_finish(&answer, FM_FINISH_STOP, NULL);
    assert_false(fm_answer_has_event(&answer, &cursor));
    assert_true(fm_answer_backlog(&answer, NULL) > 0);
    struct json_object *object = object_now(&answer);
    fm_answer_free(&answer);
    return object;
}

static void the_object(void **state) {
    (void)state;
    struct json_object *object = two_vectors("{\"input\":[\"a\",\"b\"]}");
    assert_json(object, "object", "\"list\"");
    assert_json(object, "data.0", "{\"object\":\"embedding\",\"index\":0,\"embedding\":[0.600000024,0,-0.800000012]}");
    assert_json(object, "data.1", "{\"object\":\"embedding\",\"index\":1,\"embedding\":[0,1,0]}");
    assert_int_equal(json_object_array_length(at(object, "data")), 2);
    assert_json(object, "model", "\"tiny\"");
    assert_json(object, "usage", "{\"prompt_tokens\":5,\"total_tokens\":5}");
    json_object_put(object);
}

static void base64(void **state) {
    (void)state;
    struct json_object *object = two_vectors("{\"input\":[\"a\",\"b\"],\"encoding_format\":\"base64\"}");
    assert_json(object, "data.0.embedding", "\"mpkZPwAAAADNzEy/\"");
    assert_json(object, "data.1.index", "1");
    json_object_put(object);
}

static void fewer_dimensions_have_length_one(void **state) {
    (void)state;
    struct json_object *object = two_vectors("{\"input\":[\"a\",\"b\"],\"dimensions\":2}");
    assert_json(object, "data.0.embedding", "[1,0]");
    assert_json(object, "data.1.embedding", "[0,1]");
    json_object_put(object);
}

static void before_a_vector(void **state) {
    (void)state;
    struct fm_answer answer;
    begin(&answer, "{\"input\":[\"a\",\"b\"]}");
    struct json_object *object = object_now(&answer);
    assert_json(object, "data", "[]");
    json_object_put(object);
    fm_answer_free(&answer);
}

static void no_vectors(void **state) {
    static const float good[] = {0, 1};
    struct fm_answer answer;
    struct fm_error error;
    (void)state;
    begin(&answer, "{\"input\":\"a\",\"dimensions\":1}");
    assert_int_equal(fm_answer_expect_vectors(&answer, 2, &error), FM_OK);
    fm_answer_open(&answer, 1);
    assert_int_equal(add(&answer, good, 1, &error), FM_INTERNAL); /* too short */
    assert_int_equal(fm_answer_vector(&answer, "", 0, &error), FM_INTERNAL);
    assert_int_equal(add(&answer, good, 2, &error), FM_INVALID_REQUEST); /* nothing of the vector is kept */
    assert_string_equal(error.param, "dimensions");
    assert_int_equal(answer.entry_count, 0);
    assert_int_equal(answer.output.len, 0);
    static const float other[] = {1, 0};
    assert_int_equal(add(&answer, other, 2, &error), FM_OK);
    assert_int_equal(add(&answer, other, 2, &error), FM_INTERNAL); /* one vector too many */
    assert_int_equal(answer.entry_count, 1);
    fm_answer_free(&answer);
}

/* The engine's values for the length of its vectors, and what happens to the request then. */
static void dimensions(void **state) {
    static const struct {
        int64_t dimension;
        enum fm_code code;
        const char *param;
    } rows[] = {
        {4, FM_OK, ""},
        {3, FM_INVALID_REQUEST, "dimensions"},
        {0, FM_INTERNAL, ""},
        {-1, FM_INTERNAL, ""},
        {65536, FM_OK, ""},
        {65537, FM_INTERNAL, ""},
        {INT64_MAX, FM_INTERNAL, ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fm_answer answer;
        struct fm_error error = {.code = FM_OK};
        begin(&answer, "{\"input\":\"a\",\"dimensions\":4}");
        assert_int_equal(fm_answer_expect_vectors(&answer, rows[i].dimension, &error), rows[i].code);
        assert_string_equal(error.param, rows[i].param);
        fm_answer_free(&answer);
    }
}

/* A reply with as many of the longest vectors as it may have fits into a frame. */
static void check_largest(bool base64_asked, size_t dimension) {
    static float values[65536];
    struct fm_answer answer;
    struct fm_error error;
    begin(&answer, base64_asked ? "{\"input\":\"a\",\"encoding_format\":\"base64\"}" : "{\"input\":\"a\"}");
    size_t count = 1;
    for (; count < 100000; count++) {
        answer.request.input_count = count + 1; /* this may be more than a body can have */
        if (fm_answer_expect_vectors(&answer, (int64_t)dimension, &error) != FM_OK) {
            break;
        }
    }
    assert_string_equal(error.param, "input");
    assert_non_null(strstr(error.detail, "At most "));
    assert_int_equal(strtoul(strstr(error.detail, "At most ") + 8, NULL, 10), count);
    answer.request.input_count = count;
    assert_int_equal(fm_answer_expect_vectors(&answer, (int64_t)dimension, &error), FM_OK);
    fm_answer_open(&answer, 1);
    for (size_t i = 0; i < dimension; i++) {
        values[i] = -1.23456789e-38f;
    }
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(add(&answer, values, dimension, &error), FM_OK);
    }
    struct fm_buf buf;
    fm_buf_init(&buf, 1u << 24);
    struct fm_json_writer w = fm_json_writer_on(&buf);
    answer.surface->write(&answer, &w);
    assert_true(buf.len < FM_FRAME_BODY_MAX - 8192); /* the rest is for ids and the model's name */
    assert_true(buf.len > FM_FRAME_BODY_MAX / 10 * 9 - 16 * dimension);
    fm_buf_free(&buf);
    fm_answer_free(&answer);
}

static void a_reply_fits_into_a_frame(void **state) {
    (void)state;
    check_largest(false, 65536);
    check_largest(false, 384);
    check_largest(true, 1024);
    check_largest(true, 65536);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_are_taken_or_refused),
        cmocka_unit_test(at_most_2048_inputs),
        cmocka_unit_test(the_job),
        cmocka_unit_test(params_are_the_hosts),
        cmocka_unit_test(the_object),
        cmocka_unit_test(base64),
        cmocka_unit_test(fewer_dimensions_have_length_one),
        cmocka_unit_test(before_a_vector),
        cmocka_unit_test(no_vectors),
        cmocka_unit_test(dimensions),
        cmocka_unit_test(a_reply_fits_into_a_frame),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
