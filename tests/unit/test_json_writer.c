/* JSON written into a buffer: the output is the expected text, and the strict check and json-c can read it. */
#include "protocol/json_check.h"
#include "protocol/json_writer.h"
#include "wire.h"

#include <float.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <math.h>

static struct fm_buf buf;
static struct fm_json_writer w;

static void fresh(void) {
    fm_buf_free(&buf);
    fm_buf_init(&buf, 1u << 20);
    w = fm_json_writer_on(&buf);
}

static void expect_bytes(const char *expected, size_t len) {
    assert_false(buf.failed);
    if (buf.len != len || memcmp(buf.data, expected, len) != 0) {
        fail_msg("expected %s\n  got %.*s", expected, (int)buf.len, buf.data);
    }
    size_t offset;
    assert_null(fm_json_check(buf.data, buf.len, FM_JSON_VALUES_MAX, &offset));
}

static void expect(const char *expected) {
    expect_bytes(expected, strlen(expected));
}

static void commas(void **state) {
    (void)state;
    fresh();
    fm_json_object_begin(&w);
    fm_json_object_end(&w);
    expect("{}");

    fresh();
    fm_json_array_begin(&w);
    for (int i = 0; i < 3; i++) {
        fm_json_array_begin(&w);
        fm_json_array_end(&w);
    }
    fm_json_array_end(&w);
    expect("[[],[],[]]");

    fresh();
    fm_json_object_begin(&w);
    fm_json_key(&w, "a");
    fm_json_array_begin(&w);
    fm_json_int(&w, 1);
    fm_json_object_begin(&w);
    fm_json_key_null(&w, "b");
    fm_json_key_bool(&w, "c", true);
    fm_json_key_bool(&w, "d", false);
    fm_json_object_end(&w);
    fm_json_str(&w, "x");
    fm_json_raw(&w, "[7]", 3);
    fm_json_null(&w);
    fm_json_array_end(&w);
    fm_json_key_int(&w, "e", -5);
    fm_json_key_double(&w, "f", 0.5);
    fm_json_key_str(&w, "g", "text");
    fm_json_key_str(&w, "h", NULL);
    fm_json_key(&w, "i");
    fm_json_object_begin(&w);
    fm_json_object_end(&w);
    fm_json_key_int(&w, "j", 0);
    fm_json_object_end(&w);
    expect("{\"a\":[1,{\"b\":null,\"c\":true,\"d\":false},\"x\",[7],null],\"e\":-5,\"f\":0.5,\"g\":\"text\",\"h\":null,"
           "\"i\":{},\"j\":0}");
}

/* fm_json_string_size returns the bytes of a text before it is written. */
static void sizes(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t len;
    } rows[] = {
        {BYTES("")},
        {BYTES("plain")},
        {BYTES("\"")},
        {BYTES("\\")},
        {BYTES("\b\t\n\f\r")},
        {BYTES("\0\x01\x0B\x1F")},
        {BYTES("\xC3\xA9\x7F/")},
        {BYTES("a\"b\\c\nd\x02")},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        fresh();
        fm_json_string(&w, rows[i].text, rows[i].len);
        assert_int_equal(fm_json_string_size(rows[i].text, rows[i].len), buf.len);
    }
}

static void appends_after_what_is_there(void **state) {
    (void)state;
    fresh();
    fm_buf_append_str(&buf, "[1,");
    w = fm_json_writer_on(&buf);
    fm_json_int(&w, 2);
    fm_buf_append_char(&buf, ']');
    expect("[1,2]");
}

static void strings(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t len;
        const char *expected;
    } rows[] = {
        {BYTES(""), "\"\""},
        {BYTES("abc"), "\"abc\""},
        {BYTES("\""), "\"\\\"\""},
        {BYTES("\\"), "\"\\\\\""},
        {BYTES("/"), "\"/\""},
        {BYTES("\b\t\n\f\r"), "\"\\b\\t\\n\\f\\r\""},
        {BYTES("\0"), "\"\\u0000\""},
        {BYTES("a\0b"), "\"a\\u0000b\""},
        {BYTES("\x01\x07\v\x0E\x1F"), "\"\\u0001\\u0007\\u000b\\u000e\\u001f\""},
        {BYTES("\x7F"), "\"\x7F\""},
        {BYTES("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"), "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\""},
        {BYTES("a\"b\"c"), "\"a\\\"b\\\"c\""},
        {BYTES("\n\n"), "\"\\n\\n\""},
        {BYTES("\\u0041"), "\"\\\\u0041\""},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        fresh();
        char *text = exact_copy(rows[i].text, rows[i].len);
        fm_json_string(&w, text, rows[i].len);
        free(text);
        expect(rows[i].expected);
        struct json_object *read = json_tokener_parse(rows[i].expected);
        assert_int_equal(json_object_get_string_len(read), rows[i].len);
        assert_memory_equal(json_object_get_string(read), rows[i].text, rows[i].len);
        json_object_put(read);
    }
}

/* A file's name or a shortened message may contain any bytes; the wire is still UTF-8. */
static void what_is_not_utf8(void **state) {
    (void)state;
#define FFFD "\xEF\xBF\xBD"
    static const struct {
        const char *text;
        size_t len;
        const char *expected;
    } rows[] = {
        {BYTES("caf\xE9.gguf"), "\"caf" FFFD ".gguf\""}, /* latin-1 */
        {BYTES("cut \xC3"), "\"cut " FFFD "\""},
        {BYTES("cut \xF0\x9F\x98"), "\"cut " FFFD FFFD FFFD "\""},
        {BYTES("\xC0\x80"), "\"" FFFD FFFD "\""},
        {BYTES("\xED\xA0\x80\n"), "\"" FFFD FFFD FFFD "\\n\""},
        {BYTES("\xC3\xA9\xFF\xC3\xA9"), "\"\xC3\xA9" FFFD "\xC3\xA9\""},
        {BYTES("\xE2\"\x82"), "\"" FFFD "\\\"" FFFD "\""},
        {BYTES(FFFD), "\"" FFFD "\""},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        fresh();
        char *text = exact_copy(rows[i].text, rows[i].len);
        fm_json_string(&w, text, rows[i].len);
        free(text);
        expect(rows[i].expected);
    }
}

/* All characters below a space are escaped, because JSON has no other way to write them. */
static void every_control_character(void **state) {
    (void)state;
    static const char short_forms[] = "\b\t\n\f\r";
    for (int c = 0; c < 0x20; c++) {
        char text[] = {(char)c};
        char expected[16];
        const char *found = c ? strchr(short_forms, c) : NULL;
        if (found) {
            snprintf(expected, sizeof expected, "\"\\%c\"", "btnfr"[found - short_forms]);
        } else {
            snprintf(expected, sizeof expected, "\"\\u%04x\"", (unsigned)c);
        }
        fresh();
        fm_json_string(&w, text, 1);
        expect(expected);
    }
}

static void integers(void **state) {
    (void)state;
    static const struct {
        int64_t value;
        const char *expected;
    } rows[] = {
        {0, "0"},
        {-1, "-1"},
        {9007199254740991, "9007199254740991"},
        {INT64_MAX, "9223372036854775807"},
        {INT64_MIN, "-9223372036854775808"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        fresh();
        fm_json_int(&w, rows[i].value);
        expect(rows[i].expected);
    }
}

static void doubles_as_text(void **state) {
    (void)state;
    static const struct {
        double value;
        const char *expected;
    } rows[] = {
        {0, "0"},
        {-0.0, "-0"},
        {1, "1"},
        {0.5, "0.5"},
        {0.1, "0.1"},
        {0.7, "0.7"},
        {-2.25, "-2.25"},
        {100000, "100000"},
        {1e22, "1e+22"},
        {0.1234567, "0.1234567"},
        {1e-7, "1e-07"},
        {0.1 + 0.2, "0.30000000000000004"},
        {1.0 / 3, "0.3333333333333333"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        fresh();
        fm_json_double(&w, rows[i].value);
        expect(rows[i].expected);
    }
}

static void expect_round_trip(double value) {
    fresh();
    fm_json_double(&w, value);
    fm_buf_append_char(&buf, '\0');
    if (strtod(buf.data, NULL) != value) {
        fail_msg("%.17g is written as %s", value, buf.data);
    }
    size_t offset;
    assert_null(fm_json_check(buf.data, buf.len - 1, FM_JSON_VALUES_MAX, &offset));
    assert_in_range(buf.len, 2, 25);
}

static void doubles_round_trip(void **state) {
    (void)state;
    static const double edges[] = {DBL_MAX,
                                   -DBL_MAX,
                                   DBL_MIN,
                                   DBL_TRUE_MIN,
                                   -DBL_TRUE_MIN,
                                   DBL_EPSILON,
                                   1 + DBL_EPSILON,
                                   9007199254740993.0,
                                   1e15,
                                   1e16,
                                   1e17,
                                   123456789012345678.0,
                                   2.2250738585072011e-308};
    for (size_t i = 0; i < COUNT(edges); i++) {
        expect_round_trip(edges[i]);
    }
    uint64_t bits = 88172645463325252u; /* xorshift64: random bit patterns, the same each time */
    for (int i = 0; i < 20000; i++) {
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        double value;
        memcpy(&value, &bits, sizeof value);
        if (isfinite(value)) {
            expect_round_trip(value);
        }
    }
}

static void trees(void **state) {
    (void)state;
    static const char *const texts[] = {
        "{\"a\":[1,2.50,-0.1e3,null,true,\"x/y \\u0000 \\\" \xC3\xA9\"],\"b\":{}}",
        "[]",
        "\"\"",
        "12345678901234567",
        "0.1",
        "false",
    };
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct json_object *tree = json_tokener_parse(texts[i]);
        assert_non_null(tree);
        fresh();
        fm_json_array_begin(&w);
        fm_json_value(&w, tree);
        fm_json_value(&w, NULL);
        fm_json_array_end(&w);
        json_object_put(tree);
        char expected[256];
        snprintf(expected, sizeof expected, "[%s,null]", texts[i]);
        expect(expected);
    }
    fresh();
    fm_json_object_begin(&w);
    fm_json_key_value(&w, "a", NULL);
    fm_json_object_end(&w);
    expect("{\"a\":null}");
}

/* After a failure at any place the buffer reports it at the end, and still has everything that was complete. */
static void failure_is_sticky(void **state) {
    (void)state;
    static const char whole[] = "{\"a\":\"0123456789\",\"b\":[1,2,3],\"c\":0.25,\"d\":{\"x\":1}}";
    for (size_t max = 0; max <= sizeof whole - 1; max++) {
        struct fm_buf small;
        fm_buf_init(&small, max);
        struct fm_json_writer writer = fm_json_writer_on(&small);
        struct json_object *tree = json_tokener_parse("{\"x\":1}");
        fm_json_object_begin(&writer);
        fm_json_key_str(&writer, "a", "0123456789");
        fm_json_key(&writer, "b");
        fm_json_array_begin(&writer);
        for (int i = 1; i <= 3; i++) {
            fm_json_int(&writer, i);
        }
        fm_json_array_end(&writer);
        fm_json_key_double(&writer, "c", 0.25);
        fm_json_key_value(&writer, "d", tree);
        fm_json_object_end(&writer);
        json_object_put(tree);
        assert_int_equal(small.failed, max < sizeof whole - 1);
        assert_true(small.len <= max);
        if (small.len) {
            assert_memory_equal(small.data, whole, small.len);
        }
        fm_buf_free(&small);
    }
}

static int free_buf(void **state) {
    (void)state;
    fm_buf_free(&buf);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commas),
        cmocka_unit_test(sizes),
        cmocka_unit_test(appends_after_what_is_there),
        cmocka_unit_test(strings),
        cmocka_unit_test(what_is_not_utf8),
        cmocka_unit_test(every_control_character),
        cmocka_unit_test(integers),
        cmocka_unit_test(doubles_as_text),
        cmocka_unit_test(doubles_round_trip),
        cmocka_unit_test(trees),
        cmocka_unit_test(failure_is_sticky),
    };
    return cmocka_run_group_tests_name("json_writer", tests, NULL, free_buf);
}
