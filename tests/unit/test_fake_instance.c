/* The instance that the fake engine makes for a schema. In the tables, ' stands for ". */
#include "engine/fake/instance.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define D4   "'$schema':'http://json-schema.org/draft-04/schema#'"
#define TEXT " The quick\nbr\xC3\xB8wn fox "

static const struct {
    const char *schema;
    const char *expected; /* NULL: refused */
    const char *detail;   /* a part of the refusal's text */
} rows[] = {
    {"true", "'The'", NULL},
    {"{}", "'The'", NULL},
    {"false", NULL, "nothing fits false"},
    {"{'type':['null','string']}", "null", NULL},
    {"{'type':'boolean'}", "true", NULL},
    {"{'type':'array','items':{'type':'string'}}", "['The']", NULL},
    {"{'type':'array'}", "[]", NULL},
    {"{'minItems':6,'items':{'type':'string'}}", "['The','quick','br\xC3\xB8wn','fox','The','quick']", NULL},
    {"{'minItems':1001}", NULL, "minItems"},
    {"{'minItems':2,'maxItems':1}", NULL, "minItems"},
    {"{'items':{},'maxItems':0}", "[]", NULL},
    {"{'items':true}", "['The']", NULL},
    {"{'items':false}", "[]", NULL},
    {"{'items':false,'minItems':1}", NULL, "nothing fits false"},
    {"{'items':[{'type':'null'}]}", NULL, "items"},
    /* objects */
    {"{'type':'object'}", "{}", NULL},
    {"{'properties':{'b':{'type':'integer'},'a':{'type':'string'}},'required':['a','c']}",
     "{'b':0,'a':'The','c':'quick'}", NULL},
    {"{'properties':{'b':false,'a':true}}", "{'a':'The'}", NULL},
    {"{'required':['b'],'properties':{'b':false}}", NULL, "nothing fits false"},
    {"{'required':['b'],'additionalProperties':false}", NULL, "nothing fits false"},
    {"{'required':['b'],'additionalProperties':{'type':'null'}}", "{'b':null}", NULL},
    {"{'properties':{'a \\\\b':{'type':'null'}}}", "{'a \\\\b':null}", NULL},
    {"{'unevaluatedProperties':false,'type':'object'}", NULL, "unevaluatedProperties"},
    /* enum, const */
    {"{'enum':['b','a']}", "'b'", NULL},
    {"{'enum':[1,'a'],'type':'string'}", "'a'", NULL},
    {"{'enum':[1.5,2],'type':'integer'}", "2", NULL},
    {"{'enum':['a',2],'type':'number'}", "2", NULL},
    {"{'enum':['abc','a'],'maxLength':2}", NULL, "enum or const"},
    {"{'enum':['a'],'const':'a'}", NULL, "enum or const"},
    {"{'const':{'a':[1]}}", "{'a':[1]}", NULL},
    {"{'const':null}", "null", NULL},
    {"{'const':1,'type':'string'}", NULL, "enum or const"},
    {"{'const':{'a':1},'properties':{}}", NULL, "enum or const"},
    {"{'const':'a','format':'date'}", NULL, "enum or const"},
    /* in place */
    {"{'anyOf':[{'type':'integer'},{'type':'string'}]}", "0", NULL},
    {"{'oneOf':[{'type':'null'},{'type':'string'}]}", "null", NULL},
    {"{'title':'t','anyOf':[{'type':'integer'}],'description':'d'}", "0", NULL},
    {"{'type':'string','anyOf':[{'type':'integer'}]}", NULL, "beside"},
    {"{'anyOf':[{'required':['a']}],'properties':{}}", NULL, "beside"},
    {"{'anyOf':[{}],'oneOf':[{}]}", NULL, "beside"},
    /* $ref */
    {"{'$ref':'#/$defs/a~1b','$defs':{'a/b':{'type':'null'}}}", "null", NULL},
    {"{'$ref':'#/$defs/x'}", NULL, "$ref"},
    {"{'$ref':'http://example.com'}", NULL, "$ref"},
    {"{'type':'object','properties':{'n':{'$ref':'#'},'v':{'type':'null'}},'required':['v']}",
     "{'n':{'n':{'n':{'n':{'n':{'v':null},'v':null},'v':null},'v':null},'v':null},'v':null}", NULL},
    {"{'type':'array','items':{'$ref':'#'}}", "[[[[[[]]]]]]", NULL},
    {"{'required':['n'],'properties':{'n':{'$ref':'#'}}}", NULL, "too deep"},
    {"{'$ref':'#'}", NULL, "too deep"},
    {"{'$ref':'#/$defs','$defs':[]}", NULL, "not a schema"},
    /* numbers */
    {"{'type':'integer'}", "0", NULL},
    {"{'minimum':3}", "3", NULL},
    {"{'exclusiveMinimum':3}", "4", NULL},
    {"{'maximum':-3}", "-3", NULL},
    {"{'exclusiveMaximum':-3}", "-4", NULL},
    {"{'minimum':-3.5,'maximum':-2.5}", "-3", NULL},
    {"{'type':'number','exclusiveMinimum':0,'exclusiveMaximum':1}", NULL, "minimum"},
    {"{'type':'integer','exclusiveMinimum':0,'exclusiveMaximum':1}", NULL, "minimum"},
    {"{" D4 ",'minimum':3,'exclusiveMinimum':true}", NULL, "minimum"},
    {"{'minimum':2,'maximum':1}", NULL, "minimum"},
    {"{'minimum':1e300}", NULL, "minimum"},
    /* strings */
    {"{'minLength':6}", "'The quick'", NULL},
    {"{'maxLength':2}", "'Th'", NULL},
    {"{'type':'array','minItems':3,'items':{'maxLength':3}}", "['The','qui','br\xC3\xB8']", NULL},
    {"{'minLength':30,'maxLength':31}", "'The quick br\xC3\xB8wn fox The quick b'", NULL},
    {"{'minLength':5,'maxLength':3}", NULL, "minLength"},
    {"{'maxLength':0}", "''", NULL},
    {"{'minLength':10001}", NULL, "minLength"},
    {"{'format':'date'}", NULL, "format"},
    {"{'type':'integer','format':'int32'}", "0", NULL},
    /* the engine refuses these */
    {"{'pattern':'a'}", NULL, "pattern"},
    {"{'properties':{'a':{'not':{}}}}", NULL, "not"},
    {"{'if':true}", NULL, "if"},
    {"{'contains':{}}", NULL, "contains"},
    {"{'propertyNames':{}}", NULL, "propertyNames"},
    {"{'patternProperties':{}}", NULL, "patternProperties"},
    {"{'dependentRequired':{}}", NULL, "dependentRequired"},
    {"{'dependentSchemas':{}}", NULL, "dependentSchemas"},
    {"{'dependencies':{}}", NULL, "dependencies"},
    {"{'$dynamicRef':'#'}", NULL, "$dynamicRef"},
    {"{'unevaluatedItems':false}", NULL, "unevaluatedItems"},
    {"{'allOf':[{}]}", NULL, "allOf"},
    {"{'prefixItems':[{}]}", NULL, "prefixItems"},
    {"{'uniqueItems':true}", NULL, "uniqueItems"},
    {"{'minProperties':1}", NULL, "minProperties"},
    {"{'maxProperties':1}", NULL, "maxProperties"},
    {"{'multipleOf':2}", NULL, "multipleOf"},
    {"{'$recursiveRef':'#'}", NULL, "$recursiveRef"},
};

static char *quoted(const char *text) {
    char *copy = strdup(text);
    assert_non_null(copy);
    for (char *c = strchr(copy, '\''); c; c = strchr(c, '\'')) {
        *c = '"';
    }
    return copy;
}

static enum fm_code write_instance(const char *schema, const char *text, struct fm_buf *out, struct fm_error *error) {
    char *json = quoted(schema);
    struct json_object *value = json_tokener_parse(json);
    free(json);
    assert_non_null(value);
    *error = (struct fm_error){0};
    fm_buf_reset(out);
    enum fm_code code = fm_instance_write(value, text, strlen(text), out, error);
    json_object_put(value);
    return code;
}

static void test_rows(void **state) {
    (void)state;
    struct fm_buf out;
    struct fm_error error;
    fm_buf_init(&out, 1u << 20);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        enum fm_code code = write_instance(rows[i].schema, TEXT, &out, &error);
        if (!rows[i].expected) {
            bool told = code == FM_INVALID_REQUEST && (strstr(error.detail, rows[i].detail));
            if (!told) {
                fail_msg("%s: expected a refusal with %s, got %d %s", rows[i].schema, rows[i].detail, code,
                         error.detail);
            }
            continue;
        }
        char *expected = quoted(rows[i].expected);
        fm_buf_append_char(&out, '\0');
        if (code != FM_OK || strcmp(out.data, expected) != 0) {
            fail_msg("%s: expected %s, got %d %s %s", rows[i].schema, expected, code, error.detail, out.data);
        }
        free(expected);
    }
    fm_buf_free(&out);
}

static void test_texts(void **state) {
    (void)state;
    struct fm_buf out;
    struct fm_error error;
    fm_buf_init(&out, 64);
    assert_int_equal(write_instance("{'minItems':2,'items':{'type':'string'}}", " \n", &out, &error), FM_OK);
    assert_int_equal(out.len, strlen("[\"word\",\"word\"]"));
    assert_memory_equal(out.data, "[\"word\",\"word\"]", out.len);
    assert_int_equal(write_instance("{'minLength':100}", "a", &out, &error), FM_INTERNAL); /* larger than the buffer */
    assert_int_equal(write_instance("{'type':'null'}", "", &out, &error), FM_OK);
    fm_buf_free(&out);
}

/* A schema that branches at each $ref is refused at a limit, and not followed to its end. */
static void test_size(void **state) {
    (void)state;
    struct fm_buf out;
    struct fm_error error;
    fm_buf_init(&out, 64u << 20);
    enum fm_code code = write_instance(
        "{'$ref':'#/$defs/a','$defs':{'a':{'required':['a','b'],'properties':{'a':{'$ref':'#/$defs/a'},'b':{'$ref':"
        "'#/$defs/a'}}}}}",
        TEXT, &out, &error);
    assert_int_equal(code, FM_INVALID_REQUEST);
    fm_buf_free(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
