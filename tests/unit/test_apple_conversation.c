/* Jobs in the form of Apple's library: transcripts, prompts and options, and what is refused. */
#include "engine/apple/options.h"
#include "engine/apple/transcript.h"
#include "engine/kit/job_read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#define SYSTEM        "{\"role\":\"system\",\"content\":\"Be brief.\"}"
#define USER          "{\"role\":\"user\",\"content\":\"Hi \\\"you\\\"\"}"
#define ASSISTANT     "{\"role\":\"assistant\",\"content\":\"Hello.\"}"
#define CALL(text)    "{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"c1\",\"name\":\"f\",\"arguments\":" text "}]}"
#define OUTPUT        "{\"role\":\"tool\",\"content\":\"18\",\"tool_call_id\":\"c1\"}"
#define JOB(messages) "{\"messages\":[" messages "]}"

/* The roles of the entries, a text that must be in the JSON, and the prompt. */
static const struct row {
    const char *job;
    const char *roles;
    const char *part;
    const char *prompt;
} rows[] = {
    {JOB(USER), "", "\"entries\":[]", "Hi \"you\""},
    {JOB(SYSTEM "," USER), "instructions,", "\"text\":\"Be brief.\"", "Hi \"you\""},
    {JOB(SYSTEM "," SYSTEM "," USER), "instructions,", "\"text\":\"\\n\\n\"", "Hi \"you\""},
    {JOB(USER "," SYSTEM "," ASSISTANT "," USER), "instructions,user,response,", "\"text\":\"Hi \\\"you\\\"\"",
     "Hi \"you\""},
    {JOB(USER "," ASSISTANT), "user,response,", "\"text\":\"Hello.\"", FM_APPLE_GO_ON},
    {JOB(USER "," ASSISTANT "," SYSTEM), "instructions,user,response,", "", FM_APPLE_GO_ON},
    {JOB(SYSTEM), "instructions,", "", FM_APPLE_GO_ON},
    {JOB(USER "," CALL("\"{\\\"a\\\":1}\"") "," OUTPUT), "user,response,tool,", "\"toolName\":\"f\"",
     FM_APPLE_AFTER_TOOLS},
    {JOB(USER "," CALL("\"{\\\"a\\\":1}\"") "," OUTPUT), "user,response,tool,", "\"arguments\":\"{\\\"a\\\":1}\"",
     FM_APPLE_AFTER_TOOLS},
    {JOB(USER "," CALL("\"no JSON\"") "," OUTPUT "," USER), "user,response,tool,",
     "\"arguments\":\"{\\\"arguments\\\":\\\"no JSON\\\"}\"", "Hi \"you\""},
    {JOB(USER "," CALL("\"{} {}\"") "," OUTPUT "," USER), "user,response,tool,",
     "\"arguments\":\"{\\\"arguments\\\":\\\"{} {}\\\"}\"", "Hi \"you\""},
};

static void read_job(struct fm_kit_job *job, struct json_object *params) {
    struct fm_error error = {0};
    *job = (struct fm_kit_job){0};
    if (fm_kit_job_read(job, params, &error) != FM_OK) {
        fail_msg("%s: %s", error.param, error.detail);
    }
}

static void check_roles(const char *json, const char *expected) {
    struct json_object *root = json_tokener_parse(json);
    struct json_object *entries = json_object_object_get(json_object_object_get(root, "transcript"), "entries");
    struct fm_buf roles;
    fm_buf_init(&roles, 1024);
    for (size_t i = 0; i < json_object_array_length(entries); i++) {
        struct json_object *role = json_object_object_get(json_object_array_get_idx(entries, i), "role");
        fm_buf_append_str(&roles, json_object_get_string(role));
        fm_buf_append_char(&roles, ',');
    }
    fm_buf_append_char(&roles, '\0');
    assert_string_equal(roles.data, expected);
    fm_buf_free(&roles);
    json_object_put(root);
}

static void test_transcripts(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct json_object *params = json_tokener_parse(rows[i].job);
        struct fm_kit_job job;
        struct fm_buf json;
        const struct fm_apple_extras none = {0};
        const char *prompt;
        size_t len;
        read_job(&job, params);
        fm_buf_init(&json, 1u << 20);
        fm_apple_transcript(&job, &none, false, &json, &prompt, &len);
        assert_false(json.failed);
        check_roles(json.data, rows[i].roles);
        if (!strstr(json.data, rows[i].part)) {
            fail_msg("%s\n is not in %s", rows[i].part, json.data);
        }
        assert_true(len == strlen(rows[i].prompt) && memcmp(prompt, rows[i].prompt, len) == 0);
        fm_buf_free(&json);
        fm_kit_job_free_lists(&job);
        json_object_put(params);
    }
}

/* The prompt is an entry of the counted transcript, with the schema of its answer; tools are in the instructions. */
static void test_extras(void **state) {
    (void)state;
    struct json_object *params = json_tokener_parse(JOB(USER));
    struct fm_apple_extras extras = {.tools = json_tokener_parse("[{\"type\":\"function\"}]"),
                                     .format = json_tokener_parse("{\"title\":\"Cat\"}"),
                                     .instructions = "Call it."};
    struct fm_kit_job job;
    struct fm_buf json;
    const char *prompt;
    size_t len;
    read_job(&job, params);
    fm_buf_init(&json, 1u << 20);
    fm_apple_transcript(&job, &extras, true, &json, &prompt, &len);
    check_roles(json.data, "instructions,user,");
    assert_non_null(strstr(json.data, "\"tools\":[{\"type\":\"function\"}]"));
    assert_non_null(strstr(json.data, "\"jsonSchema\":{\"name\":\"Cat\",\"schema\":{\"title\":\"Cat\"}}"));
    assert_non_null(strstr(json.data, "\"text\":\"Call it.\""));
    json_object_put(extras.tools);
    json_object_put(extras.format);
    fm_buf_free(&json);
    fm_kit_job_free_lists(&job);
    json_object_put(params);
}

static void test_options(void **state) {
    (void)state;
    static const struct {
        const char *members;
        const char *options; /* NULL: refused */
        const char *param;
    } jobs[] = {
        {"", "{\"temperature\":1}", ""},
        {",\"temperature\":0", "{\"sampling\":{\"mode\":\"greedy\"}}", ""},
        {",\"temperature\":0,\"seed\":5", "{\"sampling\":{\"mode\":\"greedy\"}}", ""},
        {",\"temperature\":0.5,\"top_p\":0.25",
         "{\"sampling\":{\"mode\":\"random\",\"top_p\":0.25},\"temperature\":0.5}", ""},
        {",\"seed\":7", "{\"sampling\":{\"mode\":\"random\",\"top_p\":1,\"seed\":7},\"temperature\":1}", ""},
        {",\"seed\":-1",
         "{\"sampling\":{\"mode\":\"random\",\"top_p\":1,\"seed\":9223372036854775807},\"temperature\":1}", ""},
        {",\"max_tokens\":9", "{\"temperature\":1,\"maximum_response_tokens\":9}", ""},
        {",\"temperature\":1.01", NULL, "temperature"},
        {",\"format\":{\"type\":\"json_object\"}", NULL, "format"},
    };
    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++) {
        char text[512];
        struct fm_kit_job job;
        struct fm_error error = {0};
        struct fm_buf options;
        snprintf(text, sizeof text, "{\"messages\":[" USER "]%s}", jobs[i].members);
        struct json_object *params = json_tokener_parse(text);
        read_job(&job, params);
        fm_buf_init(&options, 4096);
        if (jobs[i].options) {
            assert_int_equal(fm_apple_check(&job, &error), FM_OK);
            fm_apple_options(&job, &options);
            assert_string_equal(options.data, jobs[i].options);
        } else {
            assert_int_equal(fm_apple_check(&job, &error), FM_INVALID_REQUEST);
            assert_string_equal(error.param, jobs[i].param);
            assert_true(error.elsewhere);
        }
        fm_buf_free(&options);
        fm_kit_job_free_lists(&job);
        json_object_put(params);
    }
}

static void test_nul(void **state) {
    (void)state;
    static const char *const texts[] = {JOB(SYSTEM ",{\"role\":\"user\",\"content\":\"a\\u0000b\"}")};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct json_object *params = json_tokener_parse(texts[i]);
        struct fm_kit_job job;
        struct fm_error error = {0};
        read_job(&job, params);
        assert_int_equal(fm_apple_check(&job, &error), FM_INVALID_REQUEST);
        assert_string_equal(error.param, "messages[1]");
        fm_kit_job_free_lists(&job);
        json_object_put(params);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transcripts),
        cmocka_unit_test(test_extras),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_nul),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
