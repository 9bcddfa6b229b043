/* job.start's params: what is taken, what is refused, and under which name. */
#include "engine/kit/kit_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGES         "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]"
#define GRAMMAR(members) "{\"job\":1," MESSAGES ",\"format\":{\"type\":\"grammar\"," members "}}"

static const struct row {
    const char *params;
    const char *param; /* of the error; NULL: accepted; "": refused without one */
} rows[] = {
    {"{\"job\":1," MESSAGES "}", NULL},
    {"{\"job\":1," MESSAGES ",\"max_tokens\":null,\"temperature\":null,\"top_p\":null,\"seed\":null,\"stop\":null}",
     NULL},
    {"{\"job\":1," MESSAGES ",\"max_tokens\":1,\"temperature\":0,\"top_p\":0.5,\"seed\":-1,\"stop\":[\"a\",\"b\"]}",
     NULL},
    {"{\"job\":1," MESSAGES ",\"stop\":[]}", NULL},
    {"{\"job\":1}", "messages"},
    {"{\"job\":1,\"messages\":null}", "messages"},
    {"{\"job\":1,\"messages\":[]}", "messages"},
    {"{\"job\":1,\"messages\":{}}", "messages"},
    {"{\"job\":1,\"messages\":\"hi\"}", "messages"},
    {"{\"job\":1,\"messages\":[null]}", "messages[0]"},
    {"{\"job\":1,\"messages\":[7]}", "messages[0]"},
    {"{\"job\":1,\"messages\":[{\"content\":\"hi\"}]}", "messages[0].role"},
    {"{\"job\":1,\"messages\":[{\"role\":\"user\"}]}", "messages[0].content"},
    {"{\"job\":1,\"messages\":[{\"role\":\"tool\",\"content\":\"hi\"}]}", "messages[0].role"},
    {"{\"job\":1,\"messages\":[{\"role\":3,\"content\":\"hi\"}]}", "messages[0].role"},
    {"{\"job\":1,\"messages\":[{\"role\":\"user\",\"content\":null}]}", "messages[0].content"},
    {"{\"job\":1,\"messages\":[{\"role\":\"user\",\"content\":[]}]}", "messages[0].content"},
    {"{\"job\":1,\"messages\":[{\"role\":\"user\",\"content\":\"hi\",\"name\":\"x\"}]}", "messages[0]"},
    {"{\"job\":1," MESSAGES ",\"max_tokens\":0}", "max_tokens"},
    {"{\"job\":1," MESSAGES ",\"max_tokens\":-5}", "max_tokens"},
    {"{\"job\":1," MESSAGES ",\"max_tokens\":1.5}", "max_tokens"},
    {"{\"job\":1," MESSAGES ",\"max_tokens\":\"1\"}", "max_tokens"},
    {"{\"job\":1," MESSAGES ",\"temperature\":-0.1}", "temperature"},
    {"{\"job\":1," MESSAGES ",\"temperature\":\"hot\"}", "temperature"},
    {"{\"job\":1," MESSAGES ",\"top_p\":1.1}", "top_p"},
    {"{\"job\":1," MESSAGES ",\"top_p\":true}", "top_p"},
    {"{\"job\":1," MESSAGES ",\"seed\":1.5}", "seed"},
    {"{\"job\":1," MESSAGES ",\"stop\":\"a\"}", "stop"},
    {"{\"job\":1," MESSAGES ",\"stop\":[\"\"]}", "stop"},
    {"{\"job\":1," MESSAGES ",\"stop\":[1]}", "stop"},
    {"{\"job\":1," MESSAGES ",\"stop\":[\"1\",\"2\",\"3\",\"4\",\"5\"]}", "stop"},
    {"{\"job\":1," MESSAGES ",\"tools\":[]}", ""},
    {"{\"job\":1,\"messages\":[{\"role\":\"user\\u0000\",\"content\":\"hi\"}]}", "messages[0].role"},
    {"{\"job\":1," MESSAGES ",\"format\":null}", NULL},
    {"{\"job\":1," MESSAGES ",\"format\":{\"type\":\"json_object\"}}", NULL},
    {"{\"job\":1," MESSAGES ",\"format\":{\"type\":\"json_schema\",\"schema\":{}}}", NULL},
    {"{\"job\":1," MESSAGES ",\"format\":{\"strict\":true,\"schema\":{},\"type\":\"json_schema\"}}", NULL},
    {"{\"job\":1," MESSAGES ",\"format\":{\"type\":\"json_schema\",\"schema\":{},\"strict\":null}}", NULL},
    {GRAMMAR("\"syntax\":\"lark\",\"definition\":\"x\""), NULL},
    {GRAMMAR("\"syntax\":\"regex\",\"definition\":\"x\""), NULL},
    {GRAMMAR("\"syntax\":\"gbnf\",\"definition\":\"x\""), NULL},
    {"{\"job\":1," MESSAGES ",\"format\":\"json_object\"}", "format"},
    {"{\"job\":1," MESSAGES ",\"format\":[]}", "format"},
    {"{\"job\":1," MESSAGES ",\"format\":{}}", "format.type"},
    {"{\"job\":1," MESSAGES ",\"format\":{\"type\":null}}", "format.type"},
    {"{\"job\":1," MESSAGES ",\"format\":{\"type\":\"text\"}}", "format.type"},
    {"{\"job\":1," MESSAGES ",\"format\":{\"type\":\"grammar\\u0000\"}}", "format.type"},
    {"{\"job\":1," MESSAGES ",\"format\":{\"type\":\"json_object\",\"schema\":{}}}", "format"},
    {"{\"job\":1," MESSAGES ",\"format\":{\"type\":\"json_object\",\"x\":null}}", "format"},
    {"{\"job\":1," MESSAGES ",\"format\":{\"type\":\"json_schema\"}}", "format.schema"},
    {"{\"job\":1," MESSAGES ",\"format\":{\"type\":\"json_schema\",\"schema\":null}}", "format.schema"},
    {"{\"job\":1," MESSAGES ",\"format\":{\"type\":\"json_schema\",\"schema\":true}}", "format.schema"},
    {"{\"job\":1," MESSAGES ",\"format\":{\"type\":\"json_schema\",\"schema\":[]}}", "format.schema"},
    {"{\"job\":1," MESSAGES ",\"format\":{\"type\":\"json_schema\",\"schema\":{},\"strict\":1}}", "format.strict"},
    {"{\"job\":1," MESSAGES ",\"format\":{\"type\":\"json_schema\",\"schema\":{},\"name\":\"x\"}}", "format"},
    {GRAMMAR("\"definition\":\"x\""), "format.syntax"},
    {GRAMMAR("\"syntax\":\"yacc\",\"definition\":\"x\""), "format.syntax"},
    {GRAMMAR("\"syntax\":1,\"definition\":\"x\""), "format.syntax"},
    {GRAMMAR("\"syntax\":\"lark\""), "format.definition"},
    {GRAMMAR("\"syntax\":\"lark\",\"definition\":\"\""), "format.definition"},
    {GRAMMAR("\"syntax\":\"lark\",\"definition\":\"a\\u0000\""), "format.definition"},
    {GRAMMAR("\"syntax\":\"lark\",\"definition\":1"), "format.definition"},
    {GRAMMAR("\"syntax\":\"lark\",\"definition\":\"x\",\"schema\":{}"), "format"},
};

static enum fm_code read_params(struct fm_job *job, struct json_object *params, struct fm_error *error) {
    assert_non_null(params);
    *job = (struct fm_job){0};
    *error = (struct fm_error){0};
    return fm_job_read(job, params, error);
}

static void rows_are_taken_or_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct json_object *params = json_tokener_parse(rows[i].params);
        struct fm_job job;
        struct fm_error error;
        enum fm_code code = read_params(&job, params, &error);
        enum fm_code expected = rows[i].param ? FM_INVALID_REQUEST : FM_OK;
        if (code != expected || (rows[i].param && strcmp(error.param, rows[i].param) != 0)) {
            fail_msg("%s: code %s, param \"%s\", %s", rows[i].params, fm_code_name(code), error.param, error.detail);
        }
        free(job.messages);
        json_object_put(params);
    }
}

static void values_arrive(void **state) {
    (void)state;
    struct json_object *params = json_tokener_parse(
        "{\"job\":1,\"messages\":[{\"role\":\"system\",\"content\":\"a\\u0000b\"},{\"role\":\"assistant\",\"content\":"
        "\"\"}],"
        "\"max_tokens\":7,\"temperature\":0.5,\"top_p\":1,\"seed\":-9,\"stop\":[\"x\\u0000\",\"yz\"]}");
    struct fm_job job;
    struct fm_error error;
    assert_int_equal(read_params(&job, params, &error), FM_OK);
    assert_int_equal(job.message_count, 2);
    assert_string_equal(job.messages[0].role, "system");
    assert_int_equal(job.messages[0].content_len, 3);
    assert_memory_equal(job.messages[0].content, "a\0b", 3);
    assert_int_equal(job.messages[1].content_len, 0);
    assert_int_equal(job.max_tokens, 7);
    assert_true(job.temperature == 0.5 && job.top_p == 1 && job.has_seed && job.seed == -9);
    assert_int_equal(job.stop_count, 2);
    assert_int_equal(job.stops[0].len, 2);
    assert_memory_equal(job.stops[0].text, "x\0", 2);
    assert_int_equal(job.stops[1].len, 2);
    free(job.messages);
    json_object_put(params);
}

static void formats_arrive(void **state) {
    (void)state;
    static const struct {
        const char *format;
        enum fm_format_kind kind;
        const char *schema; /* as JSON; the rest as it should be */
        bool strict;
        const char *syntax;
        const char *definition;
    } formats[] = {
        {"null", FM_FORMAT_TEXT, NULL, false, NULL, NULL},
        {"{\"type\":\"json_object\"}", FM_FORMAT_JSON_OBJECT, NULL, false, NULL, NULL},
        {"{\"type\":\"json_schema\",\"schema\":{\"a\":1}}", FM_FORMAT_JSON_SCHEMA, "{\"a\":1}", false, NULL, NULL},
        {"{\"type\":\"json_schema\",\"schema\":{},\"strict\":true}", FM_FORMAT_JSON_SCHEMA, "{}", true, NULL, NULL},
        {"{\"type\":\"json_schema\",\"schema\":{},\"strict\":false}", FM_FORMAT_JSON_SCHEMA, "{}", false, NULL, NULL},
        {"{\"type\":\"grammar\",\"syntax\":\"gbnf\",\"definition\":\"a\"}", FM_FORMAT_GRAMMAR, NULL, false, "gbnf",
         "a"},
    };
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        char text[256];
        snprintf(text, sizeof text, "{\"job\":1," MESSAGES ",\"format\":%s}", formats[i].format);
        struct json_object *params = json_tokener_parse(text);
        struct fm_job job;
        struct fm_error error;
        assert_int_equal(read_params(&job, params, &error), FM_OK);
        const struct fm_format *format = &job.format;
        assert_int_equal(format->kind, formats[i].kind);
        assert_int_equal(format->strict, formats[i].strict);
        assert_string_equal(format->syntax ? format->syntax : "none", formats[i].syntax ? formats[i].syntax : "none");
        assert_string_equal(format->definition ? format->definition : "none",
                            formats[i].definition ? formats[i].definition : "none");
        assert_string_equal(json_object_to_json_string_ext(format->schema, JSON_C_TO_STRING_PLAIN),
                            formats[i].schema ? formats[i].schema : "null");
        free(job.messages);
        json_object_put(params);
    }
}

static void absent_values_have_defaults(void **state) {
    (void)state;
    struct json_object *params = json_tokener_parse("{\"job\":1," MESSAGES "}");
    struct fm_job job;
    struct fm_error error;
    assert_int_equal(read_params(&job, params, &error), FM_OK);
    assert_true(job.max_tokens == 0 && job.temperature == 1 && job.top_p == 1 && !job.has_seed && job.stop_count == 0);
    free(job.messages);
    json_object_put(params);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_taken_or_refused),
        cmocka_unit_test(values_arrive),
        cmocka_unit_test(formats_arrive),
        cmocka_unit_test(absent_values_have_defaults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
