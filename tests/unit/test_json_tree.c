/* The tree of a checked body: exact bytes of strings, exact digits of numbers, and the last of equal keys. */
#include "protocol/json_tree.h"
#include "wire.h"

#include <json-c/json.h>

static struct json_object *tree_of(const char *text, size_t len) {
    struct fm_buf scratch;
    struct json_object *root = NULL;
    char *copy = exact_copy(text, len);
    fm_buf_init(&scratch, 1 << 20);
    assert_true(fm_json_tree(copy, len, &scratch, &root));
    fm_buf_free(&scratch);
    free(copy);
    return root;
}

static void strings(void **state) {
    (void)state;
    static const struct {
        const char *text;
        const char *bytes;
        size_t len;
    } rows[] = {
        {"\"\"", BYTES("")},
        {"\"plain \xC3\xA9\"", BYTES("plain \xC3\xA9")},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", BYTES("\"\\/\b\f\n\r\t")},
        {"\"a\\u0000b\"", BYTES("a\0b")},
        {"\"\\u007f\\u0080\\u07FF\\u0800\\uffff\"", BYTES("\x7F\xC2\x80\xDF\xBF\xE0\xA0\x80\xEF\xBF\xBF")},
        {"\"\\ud800\\udc00\\uDBFF\\uDFFF\"", BYTES("\xF0\x90\x80\x80\xF4\x8F\xBF\xBF")},
        {"\"\\ud83d\\ude00 \\ud83d\\ude00\"", BYTES("\xF0\x9F\x98\x80 \xF0\x9F\x98\x80")},
        {"\"\\ud836\\ude00\"", BYTES("\xF0\x9D\xA8\x80")}, /* U+1DA00, which json-c 0.16 turns into U+FFFD */
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct json_object *root = tree_of(rows[i].text, strlen(rows[i].text));
        assert_int_equal(json_object_get_string_len(root), (int)rows[i].len);
        assert_memory_equal(json_object_get_string(root), rows[i].bytes, rows[i].len);
        json_object_put(root);
    }
}

/* A text, and how it is written again. */
static void values(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"null", "null"},
        {" [ true , false , null ] ", "[true,false,null]"},
        {"-0", "0"},
        {"9223372036854775807", "9223372036854775807"},
        {"18446744073709551615", "18446744073709551615"},
        {"18446744073709551616", "18446744073709551616"},
        {"-9223372036854775809", "-9223372036854775809"},
        {"[100000000000000000000000,1]", "[100000000000000000000000,1]"},
        {"[1.50,1e2,-0.0,5E-324]", "[1.50,1e2,-0.0,5E-324]"},
        {"{\"a\":1,\"b\":{},\"a\":[2]}", "{\"a\":[2],\"b\":{}}"},
        {"[[[]],{\"\":{\"x\":null}}]", "[[[]],{\"\":{\"x\":null}}]"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct json_object *root = tree_of(rows[i][0], strlen(rows[i][0]));
        assert_string_equal(json_object_to_json_string_ext(root, JSON_C_TO_STRING_PLAIN), rows[i][1]);
        json_object_put(root);
    }
}

/* Read as numbers, integers beyond 64 bits become the nearest one that fits. */
static void large_integers(void **state) {
    (void)state;
    struct json_object *root = tree_of(BYTES("[18446744073709551616,-9223372036854775809]"));
    assert_true(json_object_get_uint64(json_object_array_get_idx(root, 0)) == UINT64_MAX);
    assert_true(json_object_get_int64(json_object_array_get_idx(root, 0)) == INT64_MAX);
    assert_true(json_object_get_int64(json_object_array_get_idx(root, 1)) == INT64_MIN);
    json_object_put(root);
}

static void no_memory(void **state) {
    (void)state;
    struct fm_buf scratch;
    struct json_object *root = NULL;
    fm_buf_init(&scratch, 4);
    assert_false(fm_json_tree(BYTES("[\"short\",\"much \\n longer\"]"), &scratch, &root));
    assert_null(root);
    fm_buf_free(&scratch);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings),
        cmocka_unit_test(values),
        cmocka_unit_test(large_integers),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
