/* Custom tools in both APIs: the function that stands for one, and the text of its calls. */
#include "test_surface.h"

#include "surface/custom.h"

#define IN  "\"input\":\"x\""
#define MSG "\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]"

#define FLAT(format)   "{" IN ",\"tools\":[{\"type\":\"custom\",\"name\":\"f\"" format "}]}"
#define NESTED(format) "{" MSG ",\"tools\":[{\"type\":\"custom\",\"custom\":{\"name\":\"f\"" format "}}]}"

#define GRAMMAR(members)        ",\"format\":{\"type\":\"grammar\"," members "}"
#define NESTED_GRAMMAR(members) ",\"format\":{\"type\":\"grammar\",\"grammar\":{" members "}}"
#define REGEX                   "\"syntax\":\"regex\",\"definition\":\"[ab]+\""
#define LARK                    "\"syntax\":\"lark\",\"definition\":\"start: /a/\""

static const struct body_row flat[] = {
    {FLAT(""), NULL, NULL},
    {FLAT(",\"description\":\"d\",\"format\":{\"type\":\"text\"}"), NULL, NULL},
    {FLAT(GRAMMAR(REGEX)), NULL, NULL},
    {FLAT(",\"async\":false,\"defer_loading\":false,\"allowed_callers\":[\"direct\"]"), NULL, NULL},
    {FLAT(",\"async\":true"), "unsupported_parameter", "tools[0].async"},
    {FLAT(",\"parameters\":{}"), IGNORED, "tools[0].parameters"},
    {FLAT(GRAMMAR(LARK)), "unsupported_value", "tools[0].format.syntax"},
    {FLAT(GRAMMAR("\"syntax\":\"gbnf\",\"definition\":\"x\"")), "invalid_value", "tools[0].format.syntax"},
    {FLAT(GRAMMAR("\"definition\":\"x\"")), "missing_required_parameter", "tools[0].format.syntax"},
    {FLAT(GRAMMAR("\"syntax\":\"regex\"")), "missing_required_parameter", "tools[0].format.definition"},
    {FLAT(GRAMMAR("\"syntax\":\"regex\",\"definition\":\"\"")), "invalid_value", "tools[0].format.definition"},
    {FLAT(",\"format\":{\"type\":\"json\"}"), "invalid_value", "tools[0].format.type"},
    {"{" IN ",\"tools\":[{\"type\":\"custom\"}]}", "missing_required_parameter", "tools[0].name"},
};

static const struct body_row nested[] = {
    {NESTED(""), NULL, NULL},
    {NESTED(NESTED_GRAMMAR(REGEX)), NULL, NULL},
    {NESTED(NESTED_GRAMMAR(LARK)), "unsupported_value", "tools[0].custom.format.grammar.syntax"},
    {NESTED(GRAMMAR(REGEX)), "missing_required_parameter", "tools[0].custom.format.grammar"},
    {"{" MSG ",\"tools\":[{\"type\":\"custom\",\"name\":\"f\"}]}", "missing_required_parameter", "tools[0].custom"},
};

#define TOOLS "\"tools\":[{\"type\":\"custom\",\"name\":\"f\"},{\"type\":\"function\",\"name\":\"g\"}]"

static const struct body_row choices[] = {
    {"{" IN "," TOOLS ",\"tool_choice\":{\"type\":\"custom\",\"name\":\"f\"}}", NULL, NULL},
    {"{" IN "," TOOLS ",\"tool_choice\":{\"type\":\"custom\",\"name\":\"g\"}}", "invalid_value", "tool_choice.name"},
    {"{" IN "," TOOLS ",\"tool_choice\":{\"type\":\"function\",\"name\":\"f\"}}", "invalid_value", "tool_choice.name"},
    {"{" IN "," TOOLS ",\"tool_choice\":{\"type\":\"custom\",\"name\":\"h\"}}", "invalid_value", "tool_choice.name"},
    {"{" IN "," TOOLS ",\"tool_choice\":{\"type\":\"allowed_tools\",\"mode\":\"auto\",\"tools\":[{\"type\":\"custom\","
     "\"name\":\"f\"},{\"type\":\"function\",\"name\":\"g\"}]}}",
     NULL, NULL},
    {"{" IN ",\"tools\":[{\"type\":\"custom\",\"name\":\"f\"},{\"type\":\"function\",\"name\":\"f\"}]}",
     "invalid_value", "tools[1].name"},
};

static void rows_are_taken_or_refused(void **state) {
    (void)state;
    check_bodies(&fm_surface_responses, flat, sizeof flat / sizeof flat[0]);
    check_bodies(&fm_surface_chat, nested, sizeof nested / sizeof nested[0]);
    check_bodies(&fm_surface_responses, choices, sizeof choices / sizeof choices[0]);
    check_body(&fm_surface_chat,
               "{" MSG ",\"tools\":[{\"type\":\"custom\",\"custom\":{\"name\":\"f\"}}],\"tool_choice\":{\"type\":"
               "\"custom\",\"custom\":{\"name\":\"g\"}}}",
               "invalid_value", "tool_choice.custom.name");
}

#define STRING(more)                                                                                                   \
    "{\"type\":\"object\",\"properties\":{\"input\":{\"type\":\"string\"" more "}},\"required\":[\"input\"],"
#define PATTERN ",\"description\":\"A text that matches this regular expression: [ab]+\",\"pattern\":\"^(?:[ab]+)$\""
#define JOB(description, more)                                                                                         \
    "\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"tools\":[{\"name\":\"f\"" description                      \
    ",\"parameters\":" STRING(more) "\"additionalProperties\":false}}]"

static void a_tool_is_a_function_with_one_string(void **state) {
    (void)state;
    check_job(&fm_surface_responses, FLAT(""), JOB("", ""));
    check_job(&fm_surface_responses, FLAT(",\"description\":\"d\""), JOB(",\"description\":\"d\"", ""));
    check_job(&fm_surface_responses, FLAT(GRAMMAR(REGEX)), JOB("", PATTERN));
    check_job(&fm_surface_chat, NESTED(NESTED_GRAMMAR(REGEX)), JOB("", PATTERN));
}

#define CALLED "{\"id\":\"c\",\"name\":\"f\",\"arguments\":\"{\\\"input\\\":\\\"a\\\\\\\"b\\\"}\"}"

static void earlier_calls_are_calls_of_the_function(void **state) {
    (void)state;
    check_job(&fm_surface_responses,
              "{\"input\":[{\"type\":\"custom_tool_call\",\"call_id\":\"c\",\"name\":\"f\",\"input\":\"a\\\"b\",\"id\":"
              "\"ctc_1\"},{\"type\":\"custom_tool_call_output\",\"call_id\":\"c\",\"output\":\"so\"}]}",
              "\"messages\":[{\"role\":\"assistant\",\"tool_calls\":[" CALLED "]},{\"role\":\"tool\",\"content\":"
              "\"so\",\"tool_call_id\":\"c\"}]");
    check_job(&fm_surface_chat,
              "{\"messages\":[{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"c\",\"type\":\"custom\",\"custom\":{"
              "\"name\":\"f\",\"input\":\"a\\\"b\"}}]},{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":\"so\"}]}",
              "\"messages\":[{\"role\":\"assistant\",\"tool_calls\":[" CALLED "]},{\"role\":\"tool\",\"content\":"
              "\"so\",\"tool_call_id\":\"c\"}]");
    check_body(&fm_surface_responses,
               "{\"input\":[{\"type\":\"custom_tool_call_output\",\"call_id\":\"c\",\"output\":\"so\"}]}", "", "input");
}

/* The arguments of a call, and the text that they have, however they are cut into pieces. */
static void the_text_is_read_piece_by_piece(void **state) {
    static const struct {
        const char *arguments;
        const char *text;
    } rows[] = {
        {"{\"input\":\"\"}", ""},
        {"{\"input\":\"abc\"}", "abc"},
        {"  { \"input\" :\n \"a b\" } ", "a b"},
        {"{\"input\":\"a\\\"b\\\\c\\/d\\b\\f\\n\\r\\te\"}", "a\"b\\c/d\b\f\n\r\te"},
        {"{\"input\":\"\\u0041\\u00e9\xc3\xa9\"}", "A\xc3\xa9\xc3\xa9"},
        {"{\"input\":\"\\ud83d\\ude00!\"}", "\xf0\x9f\x98\x80!"},
        {"{\"input\":\"\\ud83d!\"}", "\xef\xbf\xbd!"},
        {"{\"input\":\"\\ud83d\\n\"}", "\xef\xbf\xbd\n"},
        {"{\"input\":\"\\ud83d\"}", "\xef\xbf\xbd"},
        {"{\"input\":\"\\ude00\"}", "\xef\xbf\xbd"},
        {"{\"input\":\"a\",\"more\":\"b\"}", "a"},
        {"{\"input\":\"cut", "cut"},
        {"{\"inp", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t len = strlen(rows[i].arguments);
        for (size_t step = 1; step <= len; step++) {
            struct fm_custom_reader reader = {0};
            struct fm_buf text;
            fm_buf_init(&text, 1000);
            for (size_t at = 0; at < len; at += step) {
                fm_custom_read(&reader, rows[i].arguments + at, len - at < step ? len - at : step, &text);
            }
            assert_false(text.failed);
            if (text.len != strlen(rows[i].text) || memcmp(text.data ? text.data : "", rows[i].text, text.len) != 0) {
                fail_msg("%s in steps of %zu: %.*s", rows[i].arguments, step, (int)text.len, text.data);
            }
            fm_buf_free(&text);
        }
    }
}

static const char *const calls_it[] = {"@f", "{\"inp", "ut\":\"a\\", "nb", "\"}", NULL};

/* Appends a delta to the text that was streamed so far. */
static void append_delta(char text[16], const char *delta) {
    size_t len = strlen(text);
    snprintf(text + len, 16 - len, "%s", delta);
}

static const char *type_at(const struct stream *stream, size_t index) {
    return str_at(stream->events[index], "type");
}

static void an_answer_has_the_text(void **state) {
    (void)state;
    const struct script script = {.surface = &fm_surface_responses,
                                  .body = "{" IN ",\"stream\":true," TOOLS "}",
                                  .deltas = calls_it,
                                  .finish = FM_FINISH_STOP};
    struct stream stream;
    struct json_object *object = run(&script, &stream);
    struct json_object *item = at(object, "output.0");
    assert_string_equal(str_at(item, "type"), "custom_tool_call");
    assert_string_equal(str_at(item, "input"), "a\nb");
    assert_string_equal(str_at(item, "name"), "f");
    assert_int_equal(strncmp(str_at(item, "id"), "ctc_", 4), 0);
    assert_null(at(item, "arguments"));
    assert_json(object, "tools.0", "{\"type\":\"custom\",\"name\":\"f\",\"format\":{\"type\":\"text\"}}");
    char text[16] = "";
    for (size_t i = 0; i < stream.count; i++) {
        if (strcmp(type_at(&stream, i), "response.custom_tool_call_input.delta") == 0) {
            append_delta(text, str_at(stream.events[i], "delta"));
        }
    }
    assert_string_equal(text, "a\nb");
    assert_string_equal(type_at(&stream, stream.count - 3), "response.custom_tool_call_input.done");
    assert_string_equal(str_at(stream.events[stream.count - 3], "input"), "a\nb");
    assert_null(at(stream.events[stream.count - 3], "name"));
    json_object_put(object);
    stream_free(&stream);
}

static void a_completion_has_the_text(void **state) {
    (void)state;
    const struct script script = {.surface = &fm_surface_chat,
                                  .body =
                                      "{" MSG ",\"stream\":true,\"tools\":[{\"type\":\"custom\",\"custom\":{\"name\":"
                                      "\"f\"}}]}",
                                  .deltas = calls_it,
                                  .finish = FM_FINISH_STOP};
    struct stream stream;
    struct json_object *object = run(&script, &stream);
    struct json_object *call = at(object, "choices.0.message.tool_calls.0");
    assert_json(call, "custom", "{\"name\":\"f\",\"input\":\"a\\nb\"}");
    assert_string_equal(str_at(call, "type"), "custom");
    assert_json(stream.events[1], "choices.0.delta.tool_calls.0.custom", "{\"name\":\"f\",\"input\":\"\"}");
    char text[16] = "";
    for (size_t i = 2; i < stream.count; i++) {
        struct json_object *piece = at(stream.events[i], "choices.0.delta.tool_calls.0.custom.input");
        append_delta(text, piece ? json_object_get_string(piece) : "");
    }
    assert_string_equal(text, "a\nb");
    assert_string_equal(str_at(stream.events[stream.count - 1], "choices.0.finish_reason"), "tool_calls");
    json_object_put(object);
    stream_free(&stream);
}

/* What the engine says of the function is said of the grammar. */
static void an_engine_s_error_names_the_grammar(void **state) {
    static const struct {
        const struct fm_surface *surface;
        const char *body;
        const char *param;
        const char *expected;
    } rows[] = {
        {&fm_surface_responses, FLAT(GRAMMAR(REGEX)), "tools[0].parameters.properties.input.pattern",
         "tools[0].format.definition"},
        {&fm_surface_chat, NESTED(NESTED_GRAMMAR(REGEX)), "tools[0].parameters",
         "tools[0].custom.format.grammar.definition"},
        {&fm_surface_responses, "{" IN "," TOOLS "}", "tools[1].parameters", "tools[1].parameters"},
        {&fm_surface_responses, FLAT(""), "tools", "tools"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fm_request request = request_of(rows[i].surface, rows[i].body);
        struct fm_error error;
        fm_fail(&error, FM_INVALID_REQUEST, "no");
        snprintf(error.param, sizeof error.param, "%s", rows[i].param);
        fm_request_rename_param(&request, &error);
        assert_string_equal(error.param, rows[i].expected);
        fm_request_free(&request);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_taken_or_refused),
        cmocka_unit_test(a_tool_is_a_function_with_one_string),
        cmocka_unit_test(earlier_calls_are_calls_of_the_function),
        cmocka_unit_test(the_text_is_read_piece_by_piece),
        cmocka_unit_test(an_answer_has_the_text),
        cmocka_unit_test(a_completion_has_the_text),
        cmocka_unit_test(an_engine_s_error_names_the_grammar),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
