/*
 * Converts schemas into Apple's dialect, and Apple's answers back. The tables have both, and what can't be converted.
 */
#include "engine/apple/schema.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <json-c/json.h>
#include <string.h>

#define OBJECT(properties, required) "{\"type\":\"object\",\"properties\":{" properties "},\"required\":[" required "]"
#define A(schema)                    OBJECT("\"a\":" schema, "\"a\"") "}"

/* The host's schema, and the expected value at one place in Apple's schema. */
static const struct row {
    const char *source;
    const char *pointer; /* a place in the dialect */
    const char *expected;
} rows[] = {
    {A("{\"type\":\"string\"}"), "",
     "{\"title\":\"Answer\",\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"}},\"required\":[\"a\"],"
     "\"additionalProperties\":false,\"x-order\":[\"a\"]}"},
    {OBJECT("\"b\":{\"type\":\"integer\"},\"a\":{\"type\":\"boolean\"}", "") "}", "/x-order", "[\"b\",\"a\"]"},
    {OBJECT("\"b\":{\"type\":\"integer\"},\"a\":{\"type\":\"boolean\"}", "") "}", "/required", "[]"},
    {A("{\"type\":\"string\",\"description\":\"d\",\"default\":\"x\",\"examples\":[]}"), "/properties/a",
     "{\"type\":\"string\",\"description\":\"d\"}"},
    {A("{\"enum\":[\"x\",\"y\"]}"), "/properties/a", "{\"type\":\"string\",\"enum\":[\"x\",\"y\"]}"},
    {A("{\"const\":\"x\"}"), "/properties/a", "{\"type\":\"string\",\"enum\":[\"x\"]}"},
    {A("{\"type\":\"integer\",\"minimum\":0.5,\"exclusiveMaximum\":10}"), "/properties/a",
     "{\"type\":\"integer\",\"minimum\":1,\"maximum\":9}"},
    {A("{\"type\":\"integer\",\"minimum\":8,\"exclusiveMinimum\":3}"), "/properties/a",
     "{\"type\":\"integer\",\"minimum\":8}"},
    {A("{\"type\":\"number\",\"minimum\":0.5}"), "/properties/a", "{\"type\":\"number\",\"minimum\":0.5}"},
    {A("{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"minItems\":1,\"maxItems\":2}"), "/properties/a",
     "{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"minItems\":1,\"maxItems\":2}"},
    /* a null value may be left out */
    {A("{\"type\":[\"string\",\"null\"]}"), "/required", "[]"},
    {A("{\"type\":[\"string\",\"null\"]}"), "/properties/a", "{\"type\":\"string\"}"},
    {A("{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"null\"}]}"), "/properties/a", "{\"type\":\"integer\"}"},
    {A("{\"enum\":[\"x\",null]}"), "/required", "[]"},
    {A("{\"type\":\"null\"}"), "/properties", "{}"},
    /* choices */
    {A("{\"type\":[\"string\",\"integer\"]}"), "/properties/a",
     "{\"title\":\"a\",\"anyOf\":[{\"type\":\"string\"},{\"type\":\"integer\"}]}"},
    {A("{\"oneOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]}"), "/properties/a", "{\"type\":\"string\"}"},
    {A("{\"allOf\":[{\"type\":\"string\"}]}"), "/properties/a", "{\"type\":\"string\"}"},
    /* objects are definitions */
    {A(A("{\"type\":\"string\"}")), "/properties/a", "{\"$ref\":\"#/$defs/a\"}"},
    {A(A("{\"type\":\"string\"}")), "/$defs/a/title", "\"a\""},
    {A(A(A("{\"type\":\"string\"}"))), "/$defs/a/properties/a", "{\"$ref\":\"#/$defs/a2\"}"},
    {A("{\"title\":\"My Cat!\",\"type\":\"object\",\"properties\":{\"b\":{\"type\":\"string\"}}}"), "/properties/a",
     "{\"$ref\":\"#/$defs/MyCat\"}"},
    {A("{\"type\":\"array\",\"items\":{\"$ref\":\"#\"}}"), "/properties/a/items", "{\"$ref\":\"#\"}"},
    {"{\"$defs\":{\"x\":{\"type\":\"string\",\"description\":\"d\"}},\"type\":\"object\",\"properties\":{\"a\":{\"$"
     "ref\":"
     "\"#/$defs/x\"}}}",
     "/properties/a", "{\"type\":\"string\",\"description\":\"d\"}"},
    /* a value that is not an object becomes a property of an object */
    {"{\"type\":\"array\",\"items\":{\"type\":\"string\"}}", "/properties/value",
     "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}"},
    {"{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"number\"}]}", "/required", "[\"value\"]"},
};

static struct json_object *parse(const char *text) {
    struct json_object *value = json_tokener_parse(text);
    assert_non_null(value);
    return value;
}

/* Like json_pointer, but only with members and elements, for paths without escapes. */
static struct json_object *at(struct json_object *value, const char *pointer) {
    while (*pointer == '/') {
        char key[64] = "";
        size_t len = strcspn(++pointer, "/");
        assert_true(len < sizeof key);
        memcpy(key, pointer, len);
        value = json_object_object_get(value, key);
        pointer += len;
    }
    return value;
}

static void test_translations(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct json_object *source = parse(rows[i].source);
        struct fm_apple_schema schema;
        struct fm_error error = {0};
        if (fm_apple_schema_make(source, "Answer", true, "format.schema", &schema, &error) != FM_OK) {
            fail_msg("%s: %s: %s", rows[i].source, error.param, error.detail);
        }
        const char *made = json_object_to_json_string_ext(at(schema.root, rows[i].pointer),
                                                          JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
        if (strcmp(made, rows[i].expected) != 0) {
            fail_msg("%s\n at %s is\n %s, not\n %s", rows[i].source, rows[i].pointer, made, rows[i].expected);
        }
        fm_apple_schema_free(&schema);
        json_object_put(source);
    }
}

static void test_refusals(void **state) {
    (void)state;
    static const struct {
        const char *source;
        const char *param;
        const char *checked; /* expected `checked` of the report, if not strict; NULL: an error in both cases */
    } refused[] = {
        {"{\"type\":\"object\"}", "at", NULL},
        {"{}", "at", NULL},
        {A("{\"type\":\"string\",\"minLength\":1}"), "at.properties.a.minLength", "[\"properties.a.minLength\"]"},
        {A("{\"type\":\"number\",\"exclusiveMinimum\":1}"), "at.properties.a.exclusiveMinimum",
         "[\"properties.a.exclusiveMinimum\"]"},
        {A("{\"oneOf\":[{\"type\":\"string\"},{\"type\":\"integer\"}]}"), "at.properties.a.oneOf",
         "[\"properties.a.oneOf\"]"},
        {A("{\"type\":\"array\"}"), "at.properties.a.items", NULL},
        {A("{\"type\":\"array\",\"items\":{\"enum\":[1]}}"), "at.properties.a.items.enum", NULL},
        {A("{\"anyOf\":[{\"type\":\"string\"},true]}"), "at.properties.a.anyOf[1]", NULL},
        {A("{\"allOf\":[{\"type\":\"string\"},{\"minLength\":1}]}"), "at.properties.a.allOf", NULL},
        {A("{\"$ref\":\"other.json\"}"), "at.properties.a.$ref", NULL},
        {A("{\"$ref\":\"#/$defs/x\"}"), "at.properties.a.$ref", NULL},
        {OBJECT("\"a\":{\"type\":\"string\"}", "\"b\"") "}", "at.required", NULL},
        {"{\"type\":\"array\",\"items\":{\"$ref\":\"#\"}}", NULL, NULL},
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct json_object *source = parse(refused[i].source);
        struct fm_apple_schema schema;
        struct fm_error error = {0};
        assert_int_equal(fm_apple_schema_make(source, "Answer", true, "at", &schema, &error), FM_INVALID_REQUEST);
        assert_true(error.elsewhere);
        assert_null(schema.root);
        if (refused[i].param) {
            assert_string_equal(error.param, refused[i].param);
        }
        enum fm_code loose = fm_apple_schema_make(source, "Answer", false, "at", &schema, &error);
        assert_int_equal(loose, refused[i].checked ? FM_OK : FM_INVALID_REQUEST);
        if (refused[i].checked) {
            fm_buf_append_char(&schema.report, '\0');
            assert_non_null(strstr(schema.report.data, refused[i].checked));
            fm_apple_schema_free(&schema);
        }
        json_object_put(source);
    }
}

static void test_answers(void **state) {
    (void)state;
    static const struct {
        const char *source;
        const char *answer;
        const char *restored; /* NULL: an error */
    } answers[] = {
        {A("{\"type\":[\"string\",\"null\"]}"), "{}", "{\"a\":null}"},
        {A("{\"type\":\"null\"}"), "{}", "{\"a\":null}"},
        {A("{\"type\":[\"string\",\"null\"]}"), "{\"a\":\"x\"}", "{\"a\":\"x\"}"},
        {OBJECT("\"a\":{\"type\":[\"string\",\"null\"]}", "") "}", "{}", "{}"},
        {OBJECT("\"b\":{\"type\":\"integer\"},\"a\":{\"type\":\"number\"}", "\"a\",\"b\"") "}",
         "{ \"a\": 1.50, \"b\": 2 }", "{\"b\":2,\"a\":1.50}"},
        {A(A("{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]}")), "{\"a\":{}}", "{\"a\":{\"a\":null}}"},
        {A("{\"type\":\"array\",\"items\":" A("{\"type\":[\"null\",\"string\"]}") "}"), "{\"a\":[{},{\"a\":\"x\"}]}",
         "{\"a\":[{\"a\":null},{\"a\":\"x\"}]}"},
        {"{\"type\":\"array\",\"items\":{\"type\":\"string\"}}", "{\"value\":[\"x\"]}", "[\"x\"]"},
        {"{\"type\":\"string\"}", "{\"value\":\"x\"}", "\"x\""},
        {"{\"type\":\"string\"}", "{\"other\":\"x\"}", NULL},
        {A("{\"type\":\"string\"}"), "{\"a\":", NULL},
        {A("{\"type\":\"string\"}"), "[]", NULL},
        {A("{\"type\":\"string\"}"), "", NULL},
        {A("{\"type\":\"string\"}"), "{\"a\":\"x\"} more", NULL},
    };
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        struct json_object *source = parse(answers[i].source);
        struct fm_apple_schema schema;
        struct fm_error error = {0};
        struct fm_buf out;
        fm_buf_init(&out, 4096);
        assert_int_equal(fm_apple_schema_make(source, "Answer", true, "at", &schema, &error), FM_OK);
        enum fm_code code =
            fm_apple_schema_restore(&schema, answers[i].answer, strlen(answers[i].answer), &out, &error);
        assert_int_equal(code, answers[i].restored ? FM_OK : FM_INTERNAL);
        if (answers[i].restored) {
            fm_buf_append_char(&out, '\0');
            assert_string_equal(out.data, answers[i].restored);
        }
        fm_buf_free(&out);
        fm_apple_schema_free(&schema);
        json_object_put(source);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_translations),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
