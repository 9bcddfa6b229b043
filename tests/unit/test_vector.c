/*
 * Vectors as base64 of little-endian floats: reading gives the numbers that were written, and other texts are refused.
 */
#include "protocol/vector.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* As Python's base64.b64encode(struct.pack("<...f", ...)) writes them. */
static const struct {
    float values[3];
    size_t count;
    const char *text;
} rows[] = {
    {{1}, 1, "AACAPw=="},
    {{1, -2}, 2, "AACAPwAAAMA="},
    {{1, -2, 0.1f}, 3, "AACAPwAAAMDNzMw9"},
    {{3.4028234e38f}, 1, "//9/fw=="},
    {{-1e-45f}, 1, "AQAAgA=="},
};

static void there_and_back(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fm_buf buf;
        char quoted[32];
        float values[3];
        fm_buf_init(&buf, 100);
        struct fm_json_writer w = fm_json_writer_on(&buf);
        fm_vector_write(rows[i].values, rows[i].count, &w);
        snprintf(quoted, sizeof quoted, "\"%s\"", rows[i].text);
        assert_int_equal(buf.len, strlen(quoted));
        assert_memory_equal(buf.data, quoted, buf.len);
        assert_int_equal(fm_vector_text_size(rows[i].count), strlen(rows[i].text));
        assert_true(fm_vector_read(rows[i].text, strlen(rows[i].text), values, rows[i].count));
        assert_memory_equal(values, rows[i].values, rows[i].count * sizeof *values);
        fm_buf_free(&buf);
    }
}

static void a_value_among_others(void **state) {
    (void)state;
    struct fm_buf buf;
    fm_buf_init(&buf, 100);
    struct fm_json_writer w = fm_json_writer_on(&buf);
    fm_json_array_begin(&w);
    fm_vector_write(rows[0].values, 1, &w);
    fm_vector_write(rows[0].values, 1, &w);
    fm_json_array_end(&w);
    assert_memory_equal(buf.data, "[\"AACAPw==\",\"AACAPw==\"]", buf.len);
    fm_buf_free(&buf);
    fm_buf_init(&buf, 5); /* without room, writing a vector fails like any other value */
    w = fm_json_writer_on(&buf);
    fm_vector_write(rows[0].values, 1, &w);
    assert_true(buf.failed);
    fm_buf_free(&buf);
}

static void what_is_no_vector(void **state) {
    static const struct {
        const char *text;
        size_t count;
    } bad[] = {
        {"", 1},
        {"AACAPw==", 2},
        {"AACAPw==AAAA", 2},
        {"AACAPwAAAMA=", 1},
        {"AACAPw==AAAA", 1},
        {"AACAPw=", 1},
        {"AACAPw", 1},
        {"AACA Pw=", 1},
        {"AACAPw=A", 1},
        {"AAC-Pw==", 1},
        {"=ACAPw==", 1},
        {"AACAPx==", 1},     /* bits after the last byte */
        {"AACAPwAAAMB=", 2}, /* the same */
        {"AADAfw==", 1},     /* NaN */
        {"AACAfw==", 1},     /* infinity */
        {"AACA/w==", 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        float values[2];
        if (fm_vector_read(bad[i].text, strlen(bad[i].text), values, bad[i].count)) {
            fail_msg("taken: %s", bad[i].text);
        }
    }
}

static void length_one(void **state) {
    (void)state;
    float values[] = {3, 0, -4};
    assert_true(fm_vector_normalise(values, 3));
    assert_true(fabsf(values[0] - 0.6f) < 1e-6f && values[1] == 0 && fabsf(values[2] + 0.8f) < 1e-6f);
    float tiny[] = {1e-40f, 1e-40f};
    assert_true(fm_vector_normalise(tiny, 2));
    assert_true(fabsf(tiny[0] - 0.70710678f) < 1e-4f);
    float large[] = {3e38f, 3e38f};
    assert_true(fm_vector_normalise(large, 2));
    assert_true(fabsf(large[1] - 0.70710678f) < 1e-6f);
}

static void no_length(void **state) {
    (void)state;
    float zero[] = {0, -0.0f};
    float broken[] = {1, NAN};
    float endless[] = {1, INFINITY};
    assert_false(fm_vector_normalise(zero, 2));
    assert_false(fm_vector_normalise(broken, 2));
    assert_false(fm_vector_normalise(endless, 2));
    assert_true(broken[0] == 1 && endless[0] == 1); /* they are unchanged */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_and_back),    cmocka_unit_test(a_value_among_others),
        cmocka_unit_test(what_is_no_vector), cmocka_unit_test(length_one),
        cmocka_unit_test(no_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
