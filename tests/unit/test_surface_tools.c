/* Tools and calls in both APIs: what a request may have, what the engine gets, and answers that call tools. */
#include "test_surface.h"

/* ---- requests ---- */

struct row {
    const char *members; /* of the body */
    const char *code;    /* the reason, "" for null; NULL: accepted */
    const char *param;
};

#define F      "{\"type\":\"function\",\"name\":\"f\"}"
#define G      "{\"type\":\"function\",\"name\":\"g\"}"
#define TOOLS  "\"tools\":[" F "," G "]"
#define CHAT_F "{\"type\":\"function\",\"function\":{\"name\":\"f\"}}"
#define CHAT_G "{\"type\":\"function\",\"function\":{\"name\":\"g\"}}"

#define CHAT_TOOLS "\"tools\":[" CHAT_F "," CHAT_G "]"
#define LARK       "\"fm\":{\"grammar\":{\"syntax\":\"lark\",\"definition\":\"x\"}}"

/* Rows for both APIs. %s is the list of tools, with f and g. */
static const struct row shared_rows[] = {
    {"\"tools\":[]", NULL, NULL},
    {"\"tools\":[],\"tool_choice\":\"none\"", NULL, NULL},
    {"\"tools\":null,\"tool_choice\":null,\"parallel_tool_calls\":null", NULL, NULL},
    {"\"tools\":{}", "invalid_type", "tools"},
    {"\"tools\":[null]", "invalid_type", "tools[0]"},
    {"\"tools\":[{}]", "missing_required_parameter", "tools[0].type"},
    {"\"tools\":[{\"type\":1}]", "invalid_type", "tools[0].type"},
    {"\"tools\":[{\"type\":\"web_search\"}]", "unsupported_value", "tools[0].type"},
    {"\"tools\":[{\"type\":\"function\\u0000\",\"name\":\"f\"}]", "unsupported_value", "tools[0].type"},
    {"\"tools\":[{\"type\":\"function\\u0000\",\"name\":\"f\"}]", "unsupported_value", "tools[0].type"},
    {"%s", NULL, NULL},
    {"%s,\"tool_choice\":\"auto\",\"parallel_tool_calls\":false", NULL, NULL},
    {"%s,\"tool_choice\":\"none\"", NULL, NULL},
    {"%s,\"tool_choice\":\"required\"", NULL, NULL},
    {"%s,\"tool_choice\":\"any\"", "invalid_value", "tool_choice"},
    {"%s,\"tool_choice\":\"auto\\u0000\"", "invalid_value", "tool_choice"},
    {"%s,\"tool_choice\":[]", "invalid_type", "tool_choice"},
    {"%s,\"tool_choice\":{}", "missing_required_parameter", "tool_choice.type"},
    {"%s,\"tool_choice\":{\"type\":\"web_search\"}", "invalid_value", "tool_choice.type"},
    {"\"tool_choice\":\"required\"", "invalid_value", "tool_choice"},
    {"\"tools\":[],\"tool_choice\":\"required\"", "invalid_value", "tool_choice"},
    {"\"tool_choice\":\"auto\"", NULL, NULL},
    {"%s," LARK, "invalid_value", "fm.grammar"},
    {"%s,\"tool_choice\":\"none\"," LARK, "invalid_value", "fm.grammar"},
    {"\"tools\":[]," LARK, NULL, NULL},
    {"%s,\"stop\":\"x\"", NULL, NULL},
    {"%s,\"stop\":\"x\",\"tool_choice\":\"none\"", NULL, NULL},
    {"%s,\"stop\":\"x\",\"tool_choice\":\"required\"", "unsupported_parameter", "stop"},
    {NULL, NULL, NULL},
};

#define WITH(member) "\"tools\":[{\"type\":\"function\",\"name\":\"f\"," member "}]"

static const struct row responses_rows[] = {
    {WITH("\"async\":false,\"defer_loading\":false,\"allowed_callers\":[\"direct\"]"), NULL, NULL},
    {WITH("\"async\":null,\"defer_loading\":null,\"allowed_callers\":null"), NULL, NULL},
    {WITH("\"async\":true"), "unsupported_parameter", "tools[0].async"},
    {WITH("\"async\":0"), "unsupported_parameter", "tools[0].async"},
    {WITH("\"defer_loading\":true"), "unsupported_parameter", "tools[0].defer_loading"},
    {WITH("\"allowed_callers\":[\"programmatic\"]"), "unsupported_parameter", "tools[0].allowed_callers"},
    {"\"tools\":[{\"type\":\"function\"}]", "missing_required_parameter", "tools[0].name"},
    {"\"tools\":[" F ",{\"type\":\"function\",\"name\":\"\"}]", "invalid_value", "tools[1].name"},
    {"\"tools\":[{\"type\":\"function\",\"name\":\"a b\"}]", "invalid_value", "tools[0].name"},
    {"\"tools\":[{\"type\":\"function\",\"name\":\"f\\u0000\"}]", "invalid_value", "tools[0].name"},
    {"\"tools\":[{\"type\":\"function\",\"name\":7}]", "invalid_type", "tools[0].name"},
    {"\"tools\":[" G "," F "," F "]", "invalid_value", "tools[2].name"},
    {"\"tools\":[{\"type\":\"function\",\"name\":\"f\",\"description\":\"d\",\"strict\":true,"
     "\"parameters\":{\"$schema\":\"x\",\"type\":\"object\"}}]",
     NULL, NULL},
    {"\"tools\":[{\"type\":\"function\",\"name\":\"f\",\"description\":null,\"parameters\":null,\"strict\":null}]",
     NULL, NULL},
    {"\"tools\":[{\"type\":\"function\",\"name\":\"f\",\"description\":1}]", "invalid_type", "tools[0].description"},
    {"\"tools\":[{\"type\":\"function\",\"name\":\"f\",\"description\":\"\\u0000\"}]", "invalid_value",
     "tools[0].description"},
    {"\"tools\":[{\"type\":\"function\",\"name\":\"f\",\"parameters\":[]}]", "invalid_type", "tools[0].parameters"},
    {"\"tools\":[{\"type\":\"function\",\"name\":\"f\",\"strict\":1}]", "invalid_type", "tools[0].strict"},
    {"\"tools\":[{\"type\":\"function\",\"name\":\"f\",\"x\":1}]", IGNORED, "tools[0].x"},
    {"\"tools\":[" CHAT_F "]", "missing_required_parameter", "tools[0].name"},
    {TOOLS ",\"tool_choice\":" G, NULL, NULL},
    {TOOLS ",\"tool_choice\":{\"type\":\"function\"}", "missing_required_parameter", "tool_choice.name"},
    {TOOLS ",\"tool_choice\":{\"type\":\"function\",\"name\":\"h\"}", "invalid_value", "tool_choice.name"},
    {"\"tool_choice\":" F, "invalid_value", "tool_choice.name"},
    {TOOLS ",\"tool_choice\":" F ",\"stop\":\"x\"", "unsupported_parameter", "stop"},
    {TOOLS ",\"tool_choice\":{\"type\":\"allowed_tools\",\"mode\":\"auto\",\"tools\":[" G "," G "]},\"stop\":\"x\"",
     NULL, NULL},
    {TOOLS ",\"tool_choice\":{\"type\":\"allowed_tools\",\"mode\":\"required\",\"tools\":[" G "]},\"stop\":\"x\"",
     "unsupported_parameter", "stop"},
    {TOOLS ",\"tool_choice\":{\"type\":\"allowed_tools\",\"tools\":[" G "]}", "missing_required_parameter",
     "tool_choice.mode"},
    {TOOLS ",\"tool_choice\":{\"type\":\"allowed_tools\",\"mode\":\"none\",\"tools\":[" G "]}", "invalid_value",
     "tool_choice.mode"},
    {TOOLS ",\"tool_choice\":{\"type\":\"allowed_tools\",\"mode\":\"auto\"}", "missing_required_parameter",
     "tool_choice.tools"},
    {TOOLS ",\"tool_choice\":{\"type\":\"allowed_tools\",\"mode\":\"auto\",\"tools\":[]}", "invalid_value",
     "tool_choice.tools"},
    {TOOLS ",\"tool_choice\":{\"type\":\"allowed_tools\",\"mode\":\"auto\",\"tools\":[" F
           ",{\"type\":\"function\",\"name\":\"h\"}]}",
     "invalid_value", "tool_choice.tools[1].name"},
    {TOOLS ",\"tool_choice\":{\"type\":\"allowed_tools\",\"mode\":\"auto\",\"tools\":[{\"type\":\"mcp\"}]}",
     "unsupported_value", "tool_choice.tools[0].type"},
    {TOOLS ",\"text\":{\"format\":{\"type\":\"json_schema\",\"name\":\"n\",\"schema\":{}}}", NULL, NULL},
    {NULL, NULL, NULL},
};

static const struct row chat_rows[] = {
    {"\"tools\":[{\"type\":\"function\"}]", "missing_required_parameter", "tools[0].function"},
    {"\"tools\":[" F "]", "missing_required_parameter", "tools[0].function"},
    {"\"tools\":[{\"type\":\"function\",\"function\":[]}]", "invalid_type", "tools[0].function"},
    {"\"tools\":[{\"type\":\"function\",\"function\":{}}]", "missing_required_parameter", "tools[0].function.name"},
    {"\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"a.b\"}}]", "invalid_value", "tools[0].function.name"},
    {"\"tools\":[" CHAT_F "," CHAT_F "]", "invalid_value", "tools[1].function.name"},
    {"\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":1}}]", "invalid_type",
     "tools[0].function.parameters"},
    {"\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"description\":\"d\",\"parameters\":{},"
     "\"strict\":"
     "false}}]",
     NULL, NULL},
    {CHAT_TOOLS ",\"tool_choice\":" CHAT_F, NULL, NULL},
    {CHAT_TOOLS ",\"tool_choice\":" F, "missing_required_parameter", "tool_choice.function"},
    {CHAT_TOOLS ",\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":\"h\"}}", "invalid_value",
     "tool_choice.function.name"},
    {CHAT_TOOLS ",\"tool_choice\":{\"type\":\"allowed_tools\",\"allowed_tools\":{\"mode\":\"auto\",\"tools\":[" CHAT_G
                "]}}",
     NULL, NULL},
    {CHAT_TOOLS ",\"tool_choice\":{\"type\":\"allowed_tools\",\"mode\":\"auto\",\"tools\":[" CHAT_G "]}",
     "missing_required_parameter", "tool_choice.allowed_tools"},
    {CHAT_TOOLS
     ",\"tool_choice\":{\"type\":\"allowed_tools\",\"allowed_tools\":{\"mode\":\"auto\",\"tools\":[{\"type\":"
     "\"function\",\"function\":{\"name\":\"h\"}}]}}",
     "invalid_value", "tool_choice.allowed_tools.tools[0].function.name"},
    {NULL, NULL, NULL},
};

/* Replaces the "%s" in `members`, and puts them after the members that a body needs. */
static void check_rows(const struct fm_surface *surface, const char *needed, const char *tools,
                       const struct row *rows) {
    for (const struct row *row = rows; row->members; row++) {
        char body[1024];
        const char *hole = strstr(row->members, "%s");
        int head = hole ? (int)(hole - row->members) : (int)strlen(row->members);
        snprintf(body, sizeof body, "{%s,%.*s%s%s}", needed, head, row->members, hole ? tools : "",
                 hole ? hole + 2 : "");
        check_body(surface, body, row->code, row->param);
    }
}

#define IN  "\"input\":\"hi\""
#define MSG "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]"

static void test_tools(void **state) {
    (void)state;
    check_rows(&fm_surface_responses, IN, TOOLS, shared_rows);
    check_rows(&fm_surface_responses, IN, TOOLS, responses_rows);
    check_rows(&fm_surface_chat, MSG, CHAT_TOOLS, shared_rows);
    check_rows(&fm_surface_chat, MSG, CHAT_TOOLS, chat_rows);
}

/* A body with `count` tools, each with `values` values in its parameters, and a format with `more` values. */
static char *body_of_size(size_t count, size_t values, size_t more) {
    struct fm_buf body;
    fm_buf_init(&body, 1u << 22);
    fm_buf_append_str(&body,
                      "{" IN ",\"text\":{\"format\":{\"type\":\"json_schema\",\"name\":\"n\",\"schema\":{\"a\":[0");
    for (size_t i = 3; i < more; i++) {
        fm_buf_append_str(&body, ",0");
    }
    fm_buf_append_str(&body, "]}}},\"tools\":[");
    for (size_t i = 0; i < count; i++) {
        char tool[80];
        snprintf(tool, sizeof tool, "%s{\"type\":\"function\",\"name\":\"f%zu\",\"parameters\":{\"a\":[0", i ? "," : "",
                 i);
        fm_buf_append_str(&body, tool);
        for (size_t k = 3; k < values; k++) {
            fm_buf_append_str(&body, ",0");
        }
        fm_buf_append_str(&body, "]}}");
    }
    fm_buf_append(&body, "]}", 3);
    assert_false(body.failed);
    return body.data;
}

static void check_size(size_t count, size_t values, size_t more, const char *code, const char *param) {
    char *body = body_of_size(count, values, more);
    check_body(&fm_surface_responses, body, code, param);
    free(body);
}

static void test_sizes(void **state) {
    (void)state;
    check_size(128, 3, 3, NULL, NULL);
    check_size(129, 3, 3, "array_above_max_length", "tools");
    check_size(1, 32765, 3, NULL, NULL);
    check_size(1, 32766, 3, "invalid_value", "tools");
    check_size(2, 16000, 768, NULL, NULL);
    check_size(2, 16000, 769, "invalid_value", "tools");
    check_size(1, 32769, 3, "invalid_value", "tools[0].parameters");
    char name[66];
    for (size_t len = 64; len <= 65; len++) {
        memset(name, 'n', len);
        name[len] = '\0';
        char body[256];
        snprintf(body, sizeof body, "{" IN ",\"tools\":[{\"type\":\"function\",\"name\":\"%s\"}]}", name);
        check_body(&fm_surface_responses, body, len > 64 ? "string_above_max_length" : NULL, "tools[0].name");
    }
}

/* ---- calls in the input ---- */

#define CALL(id)   "{\"type\":\"function_call\",\"call_id\":\"" id "\",\"name\":\"f\",\"arguments\":\"{}\"}"
#define OUTPUT(id) "{\"type\":\"function_call_output\",\"call_id\":\"" id "\",\"output\":\"so\"}"

static const struct row input_rows[] = {
    {CALL("1"), NULL, NULL},
    {CALL("1") "," OUTPUT("1"), NULL, NULL},
    {OUTPUT("1"), "", "input"},
    {OUTPUT("1") "," CALL("1"), "", "input"},
    {CALL("1") "," OUTPUT("2"), "", "input"},
    {"{\"role\":\"user\",\"content\":\"x\"}," OUTPUT("1"), "", "input"},
    {"{\"type\":\"function_call\"}", "missing_required_parameter", "input[0].call_id"},
    {"{\"type\":\"function_call\",\"call_id\":\"\",\"name\":\"f\",\"arguments\":\"\"}", "invalid_value",
     "input[0].call_id"},
    {"{\"type\":\"function_call\",\"call_id\":\"1\\u0000\",\"name\":\"f\",\"arguments\":\"\"}", "invalid_value",
     "input[0].call_id"},
    {"{\"type\":\"function_call\",\"call_id\":1,\"name\":\"f\",\"arguments\":\"\"}", "invalid_type",
     "input[0].call_id"},
    {"{\"type\":\"function_call\",\"call_id\":\"1\",\"arguments\":\"\"}", "missing_required_parameter",
     "input[0].name"},
    {"{\"type\":\"function_call\",\"call_id\":\"1\",\"name\":\"a b\",\"arguments\":\"\"}", "invalid_value",
     "input[0].name"},
    {"{\"type\":\"function_call\",\"call_id\":\"1\",\"name\":\"f\"}", "missing_required_parameter",
     "input[0].arguments"},
    {"{\"type\":\"function_call\",\"call_id\":\"1\",\"name\":\"f\",\"arguments\":{}}", "invalid_type",
     "input[0].arguments"},
    {"{\"type\":\"function_call\",\"call_id\":\"1\",\"name\":\"f\",\"arguments\":\"\\u0000\"}", "invalid_value",
     "input[0].arguments"},
    {"{\"type\":\"function_call\",\"id\":\"fc_1\",\"status\":\"completed\",\"call_id\":\"1\",\"name\":\"f\","
     "\"arguments\":\"\"}",
     NULL, NULL},
    {"{\"type\":\"function_call\",\"call_id\":\"1\",\"name\":\"f\",\"arguments\":\"\",\"x\":1}", IGNORED,
     "input[0].x"},
    /* members that SDKs expect in a call, or add to it */
    {"{\"type\":\"function_call\",\"call_id\":\"1\",\"name\":\"f\",\"arguments\":\"{}\",\"namespace\":null,"
     "\"caller\":null,\"async\":null,\"created_by\":null,\"parsed_arguments\":{}},"
     "{\"type\":\"function_call_output\",\"call_id\":\"1\",\"output\":\"so\",\"created_by\":\"me\",\"caller\":"
     "null}",
     NULL, NULL},
    {"{\"type\":\"function_call\",\"call_id\":\"1\",\"name\":\"f\",\"arguments\":\"\",\"namespace\":\"n\"}",
     "unsupported_parameter", "input[0].namespace"},
    {"{\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"a\",\"parsed\":{}}]}", NULL, NULL},
    {CALL("1") ",{\"type\":\"function_call_output\",\"call_id\":\"1\"}", "missing_required_parameter",
     "input[1].output"},
    {CALL("1") ",{\"type\":\"function_call_output\",\"output\":\"x\"}", "missing_required_parameter",
     "input[1].call_id"},
    {CALL("1") ",{\"type\":\"function_call_output\",\"call_id\":\"1\",\"output\":{}}", "invalid_type",
     "input[1].output"},
    {CALL("1") ",{\"type\":\"function_call_output\",\"call_id\":\"1\",\"output\":[]}", NULL, NULL},
    {CALL("1") ",{\"type\":\"function_call_output\",\"call_id\":\"1\",\"output\":[{\"type\":\"input_text\","
               "\"text\":\"a\"}]}",
     NULL, NULL},
    {CALL("1") ",{\"type\":\"function_call_output\",\"call_id\":\"1\",\"output\":[{\"type\":\"output_text\","
               "\"text\":\"a\",\"annotations\":[],\"logprobs\":[]},{\"type\":\"input_text\",\"text\":\"b\"}]}",
     NULL, NULL},
    {CALL("1") ",{\"type\":\"function_call_output\",\"call_id\":\"1\",\"output\":[{\"type\":\"text\",\"text\":\"a\"}]}",
     "invalid_value", "input[1].output[0].type"},
    {CALL("1") ",{\"type\":\"function_call_output\",\"call_id\":\"1\",\"output\":[{\"type\":\"input_image\"}]}",
     "unsupported_parameter", "input[1].output[0].type"},
    {"{\"type\":\"shell_call\"}", "unsupported_parameter", "input[0].type"},
    {"{\"type\":\"custom_tool_call\"}", "missing_required_parameter", "input[0].call_id"},
    {NULL, NULL, NULL},
};

static void test_input(void **state) {
    (void)state;
    for (const struct row *row = input_rows; row->members; row++) {
        char body[1024];
        snprintf(body, sizeof body, "{\"input\":[%s]}", row->members);
        check_body(&fm_surface_responses, body, row->code, row->param);
    }
}

#define CHAT_CALL(id) "{\"id\":\"" id "\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}"
#define CALLS(calls)  "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[" calls "]}"
#define SAYS(id)      "{\"role\":\"tool\",\"content\":\"so\",\"tool_call_id\":\"" id "\"}"

static void test_messages(void **state) {
    (void)state;
    static const struct row rows[] = {
        {CALLS(CHAT_CALL("1")), NULL, NULL},
        {CALLS(CHAT_CALL("1") "," CHAT_CALL("2")) "," SAYS("2") "," SAYS("1"), NULL, NULL},
        {"{\"role\":\"assistant\",\"tool_calls\":[" CHAT_CALL("1") "]}", NULL, NULL},
        {"{\"role\":\"assistant\",\"content\":\"x\",\"tool_calls\":[" CHAT_CALL("1") "]}", NULL, NULL},
        {"{\"role\":\"assistant\",\"content\":7,\"tool_calls\":[" CHAT_CALL("1") "]}", "invalid_type",
         "messages[0].content"},
        {CALLS(""), "missing_required_parameter", "messages[0].content"},
        {"{\"role\":\"assistant\",\"tool_calls\":{}}", "invalid_type", "messages[0].tool_calls"},
        {CALLS("{}"), "missing_required_parameter", "messages[0].tool_calls[0].type"},
        {CALLS("{\"type\":\"shell\"}"), "unsupported_value", "messages[0].tool_calls[0].type"},
        {CALLS("{\"type\":\"custom\"}"), "missing_required_parameter", "messages[0].tool_calls[0].id"},
        {CALLS("{\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"\"}}"),
         "missing_required_parameter", "messages[0].tool_calls[0].id"},
        {CALLS("{\"type\":\"function\",\"id\":\"1\"}"), "missing_required_parameter",
         "messages[0].tool_calls[0].function"},
        {CALLS("{\"type\":\"function\",\"id\":\"1\",\"function\":{\"name\":\"f\"}}"), "missing_required_parameter",
         "messages[0].tool_calls[0].function.arguments"},
        {CALLS("{\"type\":\"function\",\"id\":\"1\",\"function\":{\"name\":\"\",\"arguments\":\"\"}}"), "invalid_value",
         "messages[0].tool_calls[0].function.name"},
        {"{\"role\":\"user\",\"content\":\"x\",\"tool_calls\":[" CHAT_CALL("1") "]}", "invalid_value",
         "messages[0].tool_calls"},
        {"{\"role\":\"user\",\"content\":\"x\",\"tool_calls\":[]}", NULL, NULL},
        {"{\"role\":\"user\",\"content\":\"x\",\"tool_call_id\":\"1\"}", "invalid_value", "messages[0].tool_call_id"},
        {SAYS("1"), "", "messages[0].tool_call_id"},
        {SAYS("1") "," CALLS(CHAT_CALL("1")), "", "messages[0].tool_call_id"},
        {CALLS(CHAT_CALL("1")) "," SAYS("2"), "", "messages[1].tool_call_id"},
        {CALLS(CHAT_CALL("1")) ",{\"role\":\"tool\",\"content\":\"x\"}", "missing_required_parameter",
         "messages[1].tool_call_id"},
        {CALLS(CHAT_CALL("1")) ",{\"role\":\"tool\",\"tool_call_id\":\"1\",\"refusal\":\"no\"}",
         "missing_required_parameter", "messages[1].content"},
        {CALLS(CHAT_CALL("1")) ",{\"role\":\"tool\",\"tool_call_id\":\"1\"}", "missing_required_parameter",
         "messages[1].content"},
        {NULL, NULL, NULL},
    };
    for (const struct row *row = rows; row->members; row++) {
        char body[1024];
        snprintf(body, sizeof body, "{\"messages\":[%s]}", row->members);
        check_body(&fm_surface_chat, body, row->code, row->param);
    }
}

/* ---- what the engine gets ---- */

#define JOB_TOOLS                                                                                                      \
    "\"tools\":[{\"name\":\"f\",\"description\":\"d/\",\"parameters\":{\"b\":1.50,\"a\":[null]},\"strict\":true},"     \
    "{\"name\":\"g\"}]"

static void test_job_tools(void **state) {
    (void)state;
    static const char parts[] =
        "\"description\":\"d/\",\"strict\":true,\"parameters\":{\"b\":1.50,\"a\":[null]},\"name\":\"f\"";
    static const struct {
        const char *choice; /* members */
        const char *chat;   /* the same for chat; NULL: no difference */
        const char *job;
    } rows[] = {
        {"", "", ""},
        {",\"tool_choice\":\"auto\",\"parallel_tool_calls\":false", NULL,
         ",\"tool_choice\":{\"mode\":\"auto\"},\"parallel_tool_calls\":false"},
        {",\"tool_choice\":\"none\",\"parallel_tool_calls\":true", NULL,
         ",\"tool_choice\":{\"mode\":\"none\"},\"parallel_tool_calls\":true"},
        {",\"tool_choice\":\"required\"", NULL, ",\"tool_choice\":{\"mode\":\"required\"}"},
        {",\"tool_choice\":" G, ",\"tool_choice\":" CHAT_G,
         ",\"tool_choice\":{\"mode\":\"required\",\"names\":[\"g\"]}"},
        {",\"tool_choice\":{\"type\":\"allowed_tools\",\"mode\":\"auto\",\"tools\":[" G "," F "," G "]}",
         ",\"tool_choice\":{\"type\":\"allowed_tools\",\"allowed_tools\":{\"mode\":\"auto\",\"tools\":[" CHAT_G
         "," CHAT_F "]}}",
         ",\"tool_choice\":{\"mode\":\"auto\",\"names\":[\"f\",\"g\"]}"},
        {",\"tool_choice\":{\"type\":\"allowed_tools\",\"mode\":\"required\",\"tools\":[" F "]}",
         ",\"tool_choice\":{\"type\":\"allowed_tools\",\"allowed_tools\":{\"mode\":\"required\",\"tools\":[" CHAT_F
         "]}}",
         ",\"tool_choice\":{\"mode\":\"required\",\"names\":[\"f\"]}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char body[1024];
        char job[1024];
        snprintf(job, sizeof job, "%s," JOB_TOOLS "%s", MSG, rows[i].job);
        snprintf(body, sizeof body, "{" IN ",\"tools\":[{\"type\":\"function\",%s}," G "]%s}", parts, rows[i].choice);
        check_job(&fm_surface_responses, body, job);
        snprintf(body, sizeof body, "{" MSG ",\"tools\":[{\"type\":\"function\",\"function\":{%s}}," CHAT_G "]%s}",
                 parts, rows[i].chat ? rows[i].chat : rows[i].choice);
        check_job(&fm_surface_chat, body, job);
    }
    check_job(&fm_surface_responses, "{" IN ",\"tools\":[],\"tool_choice\":\"none\",\"parallel_tool_calls\":false}",
              MSG);
}

#define JOB_CALL(id) "{\"id\":\"" id "\",\"name\":\"f\",\"arguments\":\"{}\"}"

/* Calls and the message before them came from one answer, and become one message again. */
static void test_job_messages(void **state) {
    (void)state;
    check_job(
        &fm_surface_responses,
        "{\"input\":[{\"role\":\"user\",\"content\":\"hi\"},{\"role\":\"assistant\",\"content\":\"let me see\"}," CALL(
            "1") "," CALL("2") "," OUTPUT("1") ",{\"type\":\"function_call_output\",\"call_id\":\"2\",\"output\":["
                                               "{\"type\":\"input_text\",\"text\":\"a\"},{\"type\":\"output_text\","
                                               "\"text\":\"b\"}]}," CALL("3") "," OUTPUT(
                                                   "3") ",{\"role\":\"user\",\"content\":\"now\"}," CALL("4") "]}",
        "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"},{\"role\":\"assistant\",\"content\":\"let me see\","
        "\"tool_calls\":[" JOB_CALL("1") "," JOB_CALL(
            "2") "]},{\"role\":\"tool\",\"content\":\"so\",\"tool_call_id\":\"1\"},{\"role\":\"tool\",\"content\":"
                 "\"ab\",\"tool_call_id\":\"2\"},{\"role\":\"assistant\",\"tool_calls\":[" JOB_CALL(
                     "3") "]},{\"role\":\"tool\",\"content\":\"so\",\"tool_call_id\":\"3\"},{\"role\":\"user\","
                          "\"content\":\"now\"},{\"role\":\"assistant\",\"tool_calls\":[" JOB_CALL("4") "]}]");
    check_job(
        &fm_surface_chat,
        "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}," CALLS(CHAT_CALL("1") "," CHAT_CALL("2")) "," SAYS(
            "2") ",{\"role\":\"tool\",\"content\":[{\"type\":\"text\",\"text\":\"a\"}],\"tool_call_id\":\"1\"},"
                 "{\"role\":\"assistant\",\"content\":\"x\",\"tool_calls\":[" CHAT_CALL("3") "]}]}",
        "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"},{\"role\":\"assistant\",\"tool_calls\":[" JOB_CALL(
            "1") "," JOB_CALL("2") "]},{\"role\":\"tool\",\"content\":\"so\",\"tool_call_id\":\"2\"},{\"role\":"
                                   "\"tool\",\"content\":\"a\",\"tool_call_id\":\"1\"},{\"role\":\"assistant\","
                                   "\"content\":\"x\",\"tool_calls\":[" JOB_CALL("3") "]}]");
}

/* The other API's form of a tool has its name elsewhere: the error says where the name belongs. */
static void test_forms(void **state) {
    (void)state;
    static const struct {
        const struct fm_surface *surface;
        const char *body;
        const char *says;
    } rows[] = {
        {&fm_surface_responses, "{" IN ",\"tools\":[" CHAT_F "]}",
         "'tools[0].name'. Only chat.completions.create has 'function'"},
        {&fm_surface_responses, "{" IN "," TOOLS ",\"tool_choice\":" CHAT_F "}", "'tool_choice.name'. Only chat"},
        {&fm_surface_chat, "{" MSG ",\"tools\":[" F "]}", "'tools[0].function'. In chat.completions.create 'name'"},
        {&fm_surface_chat, "{" MSG ",\"tools\":[" CHAT_F "],\"tool_choice\":" F "}", "'tool_choice.function'. In chat"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct json_object *params = json_of(rows[i].body, strlen(rows[i].body));
        struct fm_request request;
        struct fm_error error;
        assert_int_equal(rows[i].surface->parse(params, &request, &error), FM_INVALID_REQUEST);
        assert_string_equal(error.reason, "missing_required_parameter");
        if (!strstr(error.detail, rows[i].says)) {
            fail_msg("%s: %s", rows[i].body, error.detail);
        }
        json_object_put(params);
    }
}

/* A tool's schema is the same field in both APIs, but at two places. */
static void test_param_of_an_engine(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"tools[12].parameters.properties.a[0].not", "tools[12].function.parameters.properties.a[0].not"},
        {"tools[0].name", "tools[0].function.name"},
        {"tools", "tools"},
        {"tools[1]", "tools[1]"},
        {"tools[].x", "tools[].function.x"},
        {"tools[99999999999999999999].x", "tools[99999999999999999999].x"},
        {"toolset[1].x", "toolset[1].x"},
        {"tool_choice.names[0]", "tool_choice.names[0]"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int chat = 0; chat < 2; chat++) {
            struct fm_request request =
                chat ? request_of(&fm_surface_chat, "{" MSG "}") : request_of(&fm_surface_responses, "{" IN "}");
            struct fm_error error;
            fm_fail(&error, FM_INVALID_REQUEST, "because");
            snprintf(error.param, sizeof error.param, "%s", rows[i][0]);
            fm_request_rename_param(&request, &error);
            assert_string_equal(error.param, rows[i][chat]);
            fm_request_free(&request);
        }
    }
    struct fm_request request = request_of(&fm_surface_chat, "{" MSG "}");
    struct fm_error error;
    fm_fail(&error, FM_INVALID_REQUEST, "because");
    memset(error.param, 'x', sizeof error.param - 1);
    memcpy(error.param, "tools[0].", 9);
    error.param[sizeof error.param - 1] = '\0';
    fm_request_rename_param(&request, &error);
    assert_int_equal(strlen(error.param), sizeof error.param - 1);
    assert_memory_equal(error.param, "tools[0].function.x", 19);
    fm_request_free(&request);
}

/* ---- the echo ---- */

static void test_echo(void **state) {
    (void)state;
    static const struct {
        const char *members;
        const char *tools;
        const char *choice;
        const char *parallel;
    } rows[] = {
        {"\"tools\":[]", "[]", "\"auto\"", "true"},
        {"\"tools\":[" F "],\"tool_choice\":\"required\",\"parallel_tool_calls\":false",
         "[{\"type\":\"function\",\"name\":\"f\",\"description\":null,\"parameters\":null,\"strict\":null}]",
         "\"required\"", "false"},
        {"\"tools\":[{\"strict\":false,\"parameters\":{\"b\":1.50,\"a\":{}},\"description\":\"d/\",\"name\":\"f\","
         "\"type\":\"function\"}],\"tool_choice\":" F,
         "[{\"type\":\"function\",\"name\":\"f\",\"description\":\"d/\",\"parameters\":{\"b\":1.50,\"a\":{}},"
         "\"strict\":false}]",
         F, "true"},
        {"\"tools\":[" F "],\"tool_choice\":{\"type\":\"allowed_tools\",\"mode\":\"auto\",\"tools\":[" F "]}",
         "[{\"type\":\"function\",\"name\":\"f\",\"description\":null,\"parameters\":null,\"strict\":null}]",
         "{\"type\":\"allowed_tools\",\"mode\":\"auto\",\"tools\":[" F "]}", "true"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char body[512];
        snprintf(body, sizeof body, "{" IN ",\"stream\":true,%s}", rows[i].members);
        struct script script = {
            .surface = &fm_surface_responses, .body = body, .deltas = no_deltas, .finish = FM_FINISH_STOP};
        struct stream stream;
        struct json_object *object = run(&script, &stream);
        assert_json(object, "tools", rows[i].tools);
        assert_json(object, "tool_choice", rows[i].choice);
        assert_json(object, "parallel_tool_calls", rows[i].parallel);
        assert_json(stream.events[0], "response.tools", rows[i].tools);
        assert_int_equal(json_object_object_length(object), 32);
        json_object_put(object);
        stream_free(&stream);
    }
}

/* ---- answers: Responses ---- */

/* An event as a line: its type without "response.", its output_index, and its content. */
static void describe(struct json_object *event, struct fm_buf *text) {
    static const char *const members[] = {"item.type", "item.status", "delta", "text", "arguments", "response.status"};
    const char *type = str_at(event, "type");
    fm_buf_append_str(text, strncmp(type, "response.", 9) == 0 ? type + 9 : type);
    if (at(event, "output_index")) {
        char index[24];
        snprintf(index, sizeof index, " %d", (int)int_at(event, "output_index"));
        fm_buf_append_str(text, index);
    }
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        if (at(event, members[i])) {
            fm_buf_append_str(text, " ");
            fm_buf_append_str(text, str_at(event, members[i]));
        }
    }
    fm_buf_append_str(text, "\n");
}

/* `fast` and `slow` (NULL: the same) are the expected events for the two kinds of host. */
static void check_events(const struct stream *stream, const char *fast, const char *slow) {
    const char *expected = slow_host && slow ? slow : fast;
    struct fm_buf text;
    fm_buf_init(&text, 1u << 16);
    for (size_t i = 0; i < stream->count; i++) {
        assert_int_equal(int_at(stream->events[i], "sequence_number"), i);
        describe(stream->events[i], &text);
    }
    fm_buf_append(&text, "", 1);
    assert_false(text.failed);
    assert_string_equal(text.data, expected);
    fm_buf_free(&text);
}

/* The call whose item was added and is not done yet. */
struct open_call {
    struct json_object *item; /* the item as it was added; NULL: no call is open */
    size_t deltas;
};

static void check_call_begun(struct open_call *open, struct json_object *item) {
    assert_null(open->item);
    *open = (struct open_call){.item = item};
    assert_string_equal(str_at(item, "arguments"), "");
    assert_int_equal(strncmp(str_at(item, "id"), "fc_", 3), 0);
    assert_int_equal(strncmp(str_at(item, "call_id"), "call_", 5), 0);
}

static void check_call_done(struct open_call *open, struct json_object *item, struct json_object *in_output) {
    assert_true(open->deltas > 0);
    assert_string_equal(str_at(item, "call_id"), str_at(open->item, "call_id"));
    assert_string_equal(str_at(item, "name"), str_at(open->item, "name"));
    assert_true(json_object_equal(item, in_output));
    open->item = NULL;
}

/*
 * Checks what the lines do not contain: ids, names, members. `final` is the answer's object. Returns the number of
 * calls.
 */
static size_t check_calls(const struct stream *stream, struct json_object *final) {
    struct open_call open = {.item = NULL};
    size_t calls = 0;
    for (size_t i = 0; i < stream->count; i++) {
        struct json_object *event = stream->events[i];
        struct json_object *item = at(event, "item");
        const char *type = str_at(event, "type");
        if (strstr(type, "function_call_arguments")) {
            assert_string_equal(str_at(event, "item_id"), str_at(open.item, "id"));
            open.deltas += strstr(type, ".delta") != NULL;
            assert_int_equal(json_object_object_length(event), strstr(type, ".delta") ? 5 : 6);
        }
        if (strstr(type, "arguments.done")) {
            assert_string_equal(str_at(event, "name"), str_at(open.item, "name"));
        } else if (item && strcmp(str_at(item, "type"), "function_call") == 0) {
            assert_int_equal(json_object_object_length(item), 6);
            size_t index = (size_t)int_at(event, "output_index");
            if (strstr(type, "added")) {
                check_call_begun(&open, item);
            } else {
                check_call_done(&open, item, json_object_array_get_idx(at(final, "output"), index));
                calls++;
            }
        }
    }
    assert_null(open.item);
    return calls;
}

#define HEAD "created in_progress\nin_progress in_progress\n"
#define SAID(deltas)                                                                                                   \
    "output_item.added 0 message in_progress\ncontent_part.added 0\n" deltas "output_text.done 0 Let me see.\n"        \
    "content_part.done 0\noutput_item.done 0 message completed\n"
#define TEXT_DELTA "output_text.delta 0 "
#define CALLED(index, deltas, arguments, status)                                                                       \
    "output_item.added " index " function_call in_progress\n" deltas "function_call_arguments.done " index             \
    " " arguments "\noutput_item.done " index " function_call " status "\n"
#define ARGUMENTS(index, delta) "function_call_arguments.delta " index " " delta "\n"

#define TWO(said, pieces, status)                                                                                      \
    HEAD SAID(said) CALLED("1", ARGUMENTS("1", "{}"), "{}", "completed") CALLED("2", pieces, "{\"a\":1}", status)
#define FAST_TWO(status)                                                                                               \
    TWO(TEXT_DELTA "Let me\n" TEXT_DELTA " see.\n", ARGUMENTS("2", "{\"a\":") ARGUMENTS("2", "1}"), status)
#define SLOW_TWO(status) TWO(TEXT_DELTA "Let me see.\n", ARGUMENTS("2", "{\"a\":1}"), status)

static void test_stream(void **state) {
    (void)state;
    static const char *const one[] = {"@f", "{\"a\":", "\"\xc3\xa9\"}", NULL};
    static const char *const two[] = {"Let me", " see.", "@g", "{}", "@f", "{\"a\":", "1}", NULL};
    static const char *const bare[] = {"@f", "@g", NULL}; /* without arguments */
    static const struct {
        const char *const *deltas;
        enum fm_finish finish;
        size_t calls;
        const char *fast;
        const char *slow;
    } rows[] = {
        {one, FM_FINISH_STOP, 1,
         HEAD CALLED("0", ARGUMENTS("0", "{\"a\":") ARGUMENTS("0", "\"\xc3\xa9\"}"), "{\"a\":\"\xc3\xa9\"}",
                     "completed") "completed completed\n",
         HEAD CALLED("0", ARGUMENTS("0", "{\"a\":\"\xc3\xa9\"}"), "{\"a\":\"\xc3\xa9\"}",
                     "completed") "completed completed\n"},
        {two, FM_FINISH_STOP, 2, FAST_TWO("completed") "completed completed\n",
         SLOW_TWO("completed") "completed completed\n"},
        {two, FM_FINISH_LENGTH, 2, FAST_TWO("incomplete") "incomplete incomplete\n",
         SLOW_TWO("incomplete") "incomplete incomplete\n"},
        {two, FM_FINISH_CONTENT_FILTER, 2, FAST_TWO("incomplete") "incomplete incomplete\n",
         SLOW_TWO("incomplete") "incomplete incomplete\n"},
        {two, FM_FINISH_CANCELLED, 2, FAST_TWO("incomplete") "incomplete cancelled\n",
         SLOW_TWO("incomplete") "incomplete cancelled\n"},
        {two, FM_FINISH_FAILED, 2, FAST_TWO("incomplete") "error\nfailed failed\n",
         SLOW_TWO("incomplete") "error\nfailed failed\n"},
        {bare, FM_FINISH_STOP, 2,
         HEAD CALLED("0", ARGUMENTS("0", ""), "", "completed")
             CALLED("1", ARGUMENTS("1", ""), "", "completed") "completed completed\n",
         NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct script script = {.surface = &fm_surface_responses,
                                .body = "{" IN ",\"stream\":true," TOOLS "}",
                                .deltas = rows[i].deltas,
                                .finish = rows[i].finish};
        struct stream stream;
        struct json_object *object = run(&script, &stream);
        check_events(&stream, rows[i].fast, rows[i].slow);
        assert_int_equal(check_calls(&stream, object), rows[i].calls);
        assert_int_equal(json_object_array_length(at(object, "output")), rows[i].calls + (rows[i].deltas == two));
        assert_true(json_object_equal(at(stream.events[stream.count - 1], "response"), object));
        json_object_put(object);
        stream_free(&stream);
    }
}

/* Each event comes as early as possible: a finished item is closed before the next item's first event. */
static void test_event_by_event(void **state) {
    (void)state;
    struct fm_request request = request_of(&fm_surface_responses, "{" IN ",\"stream\":true," TOOLS "}");
    struct fm_answer answer;
    struct fm_error error;
    struct stream stream = {.count = 0};
    assert_int_equal(fm_answer_init(&answer, &fm_surface_responses, &request, "tiny", &error), FM_OK);
    fm_answer_open(&answer, 1);
    static const struct {
        const char *said;
        size_t events; /* total so far */
        size_t backlog;
    } steps[] = {
        {"a", 5, 0},   /* created, in_progress, item and part added, delta */
        {"@f", 9, 0},  /* text, part and item done, item added */
        {"{}", 10, 0}, /* delta */
        {"@g", 13, 0}, /* arguments and item done, item added */
        {"@f", 17, 0}, /* an empty delta, arguments and item done, item added */
    };
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        const char *said = steps[i].said;
        if (*said == '@') {
            assert_int_equal(fm_answer_call(&answer, said + 1, &error), FM_OK);
        } else {
            assert_true(fm_answer_append(&answer, said, strlen(said)));
            assert_int_equal(fm_answer_backlog(&answer, &stream.cursor), strlen(said));
        }
        pull(&answer, &stream);
        assert_int_equal(stream.count, steps[i].events);
        assert_int_equal(fm_answer_backlog(&answer, &stream.cursor), steps[i].backlog);
    }
    fm_answer_finish(&answer, FM_FINISH_STOP, NULL);
    pull(&answer, &stream);
    assert_int_equal(stream.count, 21); /* an empty delta, arguments and item done, completed */
    stream_free(&stream);
    fm_answer_free(&answer);
}

/* A schema's report is about texts: calls do not count for it. */
static void test_report(void **state) {
    (void)state;
    static const char *const called[] = {"@f", "{}", NULL};
    struct script script = {.surface = &fm_surface_responses,
                            .body = "{" IN ",\"fm\":{\"schema_report\":true},\"text\":{\"format\":{\"type\":"
                                    "\"json_schema\",\"name\":\"n\",\"schema\":{}}}," TOOLS "}",
                            .deltas = called,
                            .finish = FM_FINISH_STOP};
    struct stream stream;
    struct json_object *object = run(&script, &stream);
    assert_json(object, "fm.schema.valid", "null");
    json_object_put(object);
}

/* ---- calls that an engine may not make ---- */

static struct fm_answer answer_to(const char *members) {
    char body[1024];
    snprintf(body, sizeof body, "{" IN ",%s}", members);
    struct fm_request request = request_of(&fm_surface_responses, body);
    struct fm_answer answer;
    struct fm_error error;
    assert_int_equal(fm_answer_init(&answer, &fm_surface_responses, &request, "tiny", &error), FM_OK);
    fm_answer_open(&answer, 1);
    return answer;
}

static void test_calls_that_may_not_be(void **state) {
    (void)state;
    static const struct {
        const char *members;
        const char *good; /* the tool that was called before; NULL: none */
        const char *bad;
        const char *word; /* a part of the error's text */
    } rows[] = {
        {"\"tools\":[]", NULL, "f", "unknown tool"},
        {TOOLS, "f", "h", "unknown tool"},
        {TOOLS, "g", "", "unknown tool"},
        {TOOLS ",\"tool_choice\":\"none\"", NULL, "f", "unknown tool"},
        {TOOLS ",\"tool_choice\":" G, "g", "f", "unknown tool"},
        {TOOLS ",\"tool_choice\":{\"type\":\"allowed_tools\",\"mode\":\"auto\",\"tools\":[" F "]}", "f", "g",
         "unknown tool"},
        {TOOLS ",\"parallel_tool_calls\":false", "f", "f", "more calls"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fm_answer answer = answer_to(rows[i].members);
        struct fm_error error;
        if (rows[i].good) {
            assert_int_equal(fm_answer_call(&answer, rows[i].good, &error), FM_OK);
        }
        assert_int_equal(fm_answer_call(&answer, rows[i].bad, &error), FM_INTERNAL);
        if (!strstr(error.detail, rows[i].word)) {
            fail_msg("row %zu: %s", i, error.detail);
        }
        assert_int_equal(answer.call_count, rows[i].good ? 1 : 0);
        fm_answer_free(&answer);
    }
}

/* At most 128 calls, and 4 MiB as JSON for text and arguments together. */
static void test_growth(void **state) {
    (void)state;
    struct fm_answer answer = answer_to(TOOLS);
    struct fm_error error;
    static char piece[1 << 16];
    memset(piece, '"', sizeof piece); /* each is two bytes as JSON */
    assert_true(fm_answer_append(&answer, piece, sizeof piece));
    for (int i = 0; i < 128; i++) {
        assert_int_equal(fm_answer_call(&answer, "f", &error), FM_OK);
    }
    assert_int_equal(fm_answer_call(&answer, "f", &error), FM_INTERNAL);
    assert_non_null(strstr(error.detail, "more calls"));
    for (int i = 1; i < 32; i++) {
        assert_true(fm_answer_append(&answer, piece, sizeof piece));
    }
    assert_false(fm_answer_append(&answer, "y", 1));
    assert_int_equal(answer.output.len, 32u << 16);
    fm_answer_finish(&answer, FM_FINISH_STOP, NULL);
    assert_int_equal(fm_answer_backlog(&answer, NULL), 32u << 16);
    fm_answer_free(&answer);
}

/* Collected arguments go out in deltas of at most 32 KiB, cut between characters, and each belongs to one call. */
static void test_long_arguments(void **state) {
    (void)state;
    struct fm_request request = request_of(&fm_surface_responses, "{" IN ",\"stream\":true," TOOLS "}");
    struct fm_answer answer;
    struct fm_error error;
    struct stream stream = {.count = 0};
    assert_int_equal(fm_answer_init(&answer, &fm_surface_responses, &request, "tiny", &error), FM_OK);
    fm_answer_open(&answer, 1);
    for (int call = 0; call < 2; call++) {
        assert_int_equal(fm_answer_call(&answer, "f", &error), FM_OK);
        for (int i = 0; i < 20000; i++) {
            assert_true(fm_answer_append(&answer, "\xE2\x82\xAC", 3));
        }
    }
    pull(&answer, &stream);
    static const int sizes[] = {32766, 60000 - 32766};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(json_object_get_string_len(at(stream.events[3 + i], "delta")), sizes[i]);
        assert_int_equal(json_object_get_string_len(at(stream.events[8 + i], "delta")), sizes[i]);
    }
    assert_int_equal(stream.count, 10);
    stream_free(&stream);
    fm_answer_free(&answer);
}

/* ---- answers: chat ---- */

#define CALL_DELTA(index, members) "{\"tool_calls\":[{\"index\":" index "," members "}]}"
#define PIECE(index, json)         CALL_DELTA(index, "\"function\":{\"arguments\":" json "}")

static void test_chunks(void **state) {
    (void)state;
    static const char *const said[] = {"Hm", "@g", "@f", "{\"a\":", "1}", NULL};
    static const char *const fast[] = {"{\"content\":\"Hm\"}", "@0", "@1", PIECE("1", "\"{\\\"a\\\":\""),
                                       PIECE("1", "\"1}\""),   NULL};
    static const char *const slow[] = {"{\"content\":\"Hm\"}", "@0", "@1", PIECE("1", "\"{\\\"a\\\":1}\""), NULL};
    static const struct {
        enum fm_finish finish;
        const char *reason; /* as JSON; NULL: no such chunk */
    } ends[] = {
        {FM_FINISH_STOP, "\"tool_calls\""},
        {FM_FINISH_LENGTH, "\"length\""},
        {FM_FINISH_CONTENT_FILTER, "\"content_filter\""},
        {FM_FINISH_CANCELLED, NULL},
        {FM_FINISH_FAILED, NULL},
    };
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        struct script script = {.surface = &fm_surface_chat,
                                .body = "{" MSG ",\"stream\":true," CHAT_TOOLS "}",
                                .deltas = said,
                                .finish = ends[i].finish};
        struct stream stream;
        struct json_object *object = run(&script, &stream);
        const char *const *expected = slow_host ? slow : fast;
        size_t n = 0;
        assert_json(stream.events[n++], "choices.0.delta", "{\"role\":\"assistant\",\"content\":null}");
        for (; *expected; expected++) {
            char delta[256];
            snprintf(delta, sizeof delta, "%s", *expected);
            if (**expected == '@') { /* the first chunk of a call */
                char id[64];
                snprintf(id, sizeof id, "choices.0.message.tool_calls.%c.id", (*expected)[1]);
                snprintf(delta, sizeof delta,
                         CALL_DELTA("%c", "\"id\":\"%s\",\"type\":\"function\",\"function\":{\"name\":\"%c\","
                                          "\"arguments\":\"\"}"),
                         (*expected)[1], str_at(object, id), (*expected)[1] == '0' ? 'g' : 'f');
            }
            assert_json(stream.events[n], "choices.0.finish_reason", "null");
            assert_json(stream.events[n++], "choices.0.delta", delta);
        }
        if (ends[i].reason) {
            assert_json(stream.events[n], "choices.0.delta", "{}");
            assert_json(stream.events[n++], "choices.0.finish_reason", ends[i].reason);
        }
        assert_int_equal(n, stream.count);
        json_object_put(object);
        stream_free(&stream);
    }
}

static void test_completion(void **state) {
    (void)state;
    static const char *const only[] = {"@f", "{}", NULL};
    static const char *const both[] = {"Hm", "@g", "{\"a\":", "1}", "@f", "{}", NULL};
    static const struct {
        const char *const *deltas;
        enum fm_finish finish;
        const char *content;
        const char *first; /* the first call's arguments */
        int calls;
        const char *reason;
    } rows[] = {
        {only, FM_FINISH_STOP, "null", "\"{}\"", 1, "\"tool_calls\""},
        {only, FM_FINISH_LENGTH, "null", "\"{}\"", 1, "\"length\""},
        {both, FM_FINISH_STOP, "\"Hm\"", "\"{\\\"a\\\":1}\"", 2, "\"tool_calls\""},
        {both, FM_FINISH_FAILED, "\"Hm\"", "\"{\\\"a\\\":1}\"", 2, "null"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct script script = {.surface = &fm_surface_chat,
                                .body = "{" MSG "," CHAT_TOOLS "}",
                                .deltas = rows[i].deltas,
                                .finish = rows[i].finish};
        struct stream stream;
        struct json_object *object = run(&script, &stream);
        struct json_object *message = at(object, "choices.0.message");
        assert_int_equal(json_object_object_length(message), 5);
        assert_json(message, "content", rows[i].content);
        assert_int_equal(json_object_array_length(at(message, "tool_calls")), rows[i].calls);
        assert_int_equal(json_object_object_length(at(message, "tool_calls.0")), 3);
        assert_json(message, "tool_calls.0.type", "\"function\"");
        assert_int_equal(strncmp(str_at(message, "tool_calls.0.id"), "call_", 5), 0);
        assert_json(message, "tool_calls.0.function.name", rows[i].deltas == only ? "\"f\"" : "\"g\"");
        assert_json(message, "tool_calls.0.function.arguments", rows[i].first);
        assert_json(object, "choices.0.finish_reason", rows[i].reason);
        json_object_put(object);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tools),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_input),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_job_tools),
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_job_messages),
        cmocka_unit_test(test_param_of_an_engine),
        cmocka_unit_test(test_echo),
        cmocka_unit_test(test_stream),
        cmocka_unit_test(test_event_by_event),
        cmocka_unit_test(test_report),
        cmocka_unit_test(test_calls_that_may_not_be),
        cmocka_unit_test(test_growth),
        cmocka_unit_test(test_long_arguments),
        cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_completion),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed + cmocka_run_group_tests(tests, with_slow_host, NULL);
}
