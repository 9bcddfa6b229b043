/* Reasoning in both APIs: a request's parameters, items and events, and sending reasoning back as input. */
#include "test_surface.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* ---- in ---- */

static const struct {
    const struct fm_surface *surface;
    const char *body;
    const char *code; /* NULL: accepted */
    const char *param;
} bodies[] = {
    {&fm_surface_responses, "{\"input\":[{\"type\":\"reasoning\"},{\"role\":\"user\",\"content\":\"x\"}]}", NULL, NULL},
    {&fm_surface_responses,
     "{\"input\":[{\"type\":\"reasoning\",\"id\":\"rs_1\",\"status\":null,\"summary\":null,\"content\":null,"
     "\"encrypted_content\":\"x\"},{\"role\":\"user\",\"content\":\"x\"}]}",
     NULL, NULL},
    {&fm_surface_responses, "{\"input\":[{\"type\":\"reasoning\",\"summary\":{}}]}", "invalid_type",
     "input[0].summary"},
    {&fm_surface_responses, "{\"input\":[{\"type\":\"reasoning\",\"content\":\"x\"}]}", "invalid_type",
     "input[0].content"},
    {&fm_surface_responses,
     "{\"input\":[{\"type\":\"reasoning\",\"text\":\"x\"},{\"role\":\"user\",\"content\":\"x\"}]}", IGNORED,
     "input[0].text"},
    {&fm_surface_responses, "{\"input\":[{\"type\":\"reasoning\",\"summary\":[{\"type\":\"text\",\"text\":\"x\"}]}]}",
     "invalid_value", "input[0].summary[0].type"},
    {&fm_surface_responses, "{\"input\":[{\"type\":\"reasoning\",\"content\":[{\"type\":\"reasoning_text\"}]}]}",
     "missing_required_parameter", "input[0].content[0].text"},
    {&fm_surface_responses, /* only thoughts: there is nothing to answer */
     "{\"input\":[{\"type\":\"reasoning\",\"summary\":[{\"type\":\"summary_text\",\"text\":\"x\"}]}]}", "invalid_value",
     "input"},
    {&fm_surface_chat, "{\"messages\":[{\"role\":\"user\",\"content\":\"x\",\"reasoning_content\":\"y\"}]}",
     "invalid_value", "messages[0].reasoning_content"},
    {&fm_surface_chat, "{\"messages\":[{\"role\":\"assistant\",\"content\":\"x\",\"reasoning_content\":5}]}",
     "invalid_type", "messages[0].reasoning_content"},
    {&fm_surface_chat, "{\"messages\":[{\"role\":\"user\",\"content\":\"x\",\"reasoning_content\":null}]}", NULL, NULL},
};

static void test_bodies(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(bodies); i++) {
        check_body(bodies[i].surface, bodies[i].body, bodies[i].code, bodies[i].param);
    }
}

#define SUMMARY(text) "{\"type\":\"reasoning\",\"summary\":[{\"type\":\"summary_text\",\"text\":\"" text "\"}]}"
#define CONTENT(a, b)                                                                                                  \
    "\"content\":[{\"type\":\"reasoning_text\",\"text\":\"" a "\"},{\"type\":\"text\",\"text\":\"" b "\"}]"
#define SAYS(role) "{\"role\":\"" role "\",\"content\":\"x\"}"
#define CALL       "{\"type\":\"function_call\",\"call_id\":\"1\",\"name\":\"f\",\"arguments\":\"{}\"}"
#define TOLD(role) "{\"role\":\"" role "\",\"content\":\"x\"}"
#define CALLED     "\"tool_calls\":[{\"id\":\"1\",\"name\":\"f\",\"arguments\":\"{}\"}]}"

static const struct {
    const char *items;
    const char *messages;
} conversations[] = {
    {SAYS("user") "," SUMMARY("hm") "," SAYS("assistant"),
     TOLD("user") ",{\"reasoning\":\"hm\",\"role\":\"assistant\",\"content\":\"x\"}"},
    {SUMMARY("hm") "," CALL, "{\"reasoning\":\"hm\",\"role\":\"assistant\"," CALLED},
    {SUMMARY("a") "," SUMMARY("b") "," SAYS("assistant") "," CALL,
     "{\"reasoning\":\"ab\",\"role\":\"assistant\",\"content\":\"x\"," CALLED},
    /* the thought itself has priority over its summary */
    {"{\"type\":\"reasoning\",\"summary\":[{\"type\":\"summary_text\",\"text\":\"s\"}]," CONTENT("a", "b") "}," SAYS(
         "assistant"),
     "{\"reasoning\":\"ab\",\"role\":\"assistant\",\"content\":\"x\"}"},
    {"{\"type\":\"reasoning\",\"summary\":[]}," SAYS("assistant"), TOLD("assistant")},
    /* a thought without its answer */
    {SUMMARY("hm") "," SAYS("user") "," SUMMARY("hm"), TOLD("user")},
};

static void test_conversations(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(conversations); i++) {
        char body[1024];
        char job[1024];
        snprintf(body, sizeof body, "{\"input\":[%s]}", conversations[i].items);
        snprintf(job, sizeof job, "\"messages\":[%s]", conversations[i].messages);
        check_job(&fm_surface_responses, body, job);
    }
    check_job(&fm_surface_chat,
              "{\"messages\":[{\"role\":\"assistant\",\"reasoning_content\":\"hm\",\"content\":\"x\"}]}",
              "\"messages\":[{\"role\":\"assistant\",\"content\":\"x\",\"reasoning\":\"hm\"}]");
}

static void test_effort(void **state) {
    (void)state;
    check_job(&fm_surface_responses, "{\"input\":\"x\",\"reasoning\":{\"effort\":\"xhigh\",\"summary\":\"auto\"}}",
              "\"messages\":[" TOLD("user") "],\"reasoning\":{\"effort\":\"xhigh\"}");
    check_job(&fm_surface_responses, "{\"input\":\"x\",\"reasoning\":{\"summary\":\"auto\"}}",
              "\"messages\":[" TOLD("user") "]");
    check_job(&fm_surface_chat, "{\"messages\":[" SAYS("user") "],\"reasoning_effort\":\"none\"}",
              "\"messages\":[" TOLD("user") "],\"reasoning\":{\"effort\":\"none\"}");
}

/* ---- out: Responses ---- */

struct log {
    char text[4096];
    size_t len;
};

static void note(struct log *log, const char *text) {
    size_t len = strlen(text);
    assert_true(log->len + len < sizeof log->text);
    memcpy(log->text + log->len, text, len + 1);
    log->len += len;
}

/* Notes one event without its head: "type index {members}", with checked ids left out. */
static void note_event(struct log *log, struct json_object *event, struct json_object *output) {
    static const char *const members[] = {"output_index", "summary_index", "content_index", "delta",
                                          "text",         "part",          "arguments"};
    const char *type = str_at(event, "type");
    struct json_object *index = at(event, "output_index");
    note(log, type + (strncmp(type, "response.", 9) == 0 ? 9 : 0));
    for (size_t i = 0; i < COUNT(members); i++) {
        struct json_object *value = at(event, members[i]);
        if (value) {
            note(log, " ");
            note(log, json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN));
        }
    }
    struct json_object *item = at(event, "item");
    if (item) {
        note(log, " ");
        note(log, str_at(item, "type"));
        note(log, " ");
        note(log, str_at(item, "status"));
        note(log, at(item, "summary") ? " summary" : "");
        note(log, at(item, "content") ? " content" : "");
    }
    if (index) {
        struct json_object *final = json_object_array_get_idx(output, (size_t)json_object_get_int64(index));
        const char *id = item ? str_at(item, "id") : str_at(event, "item_id");
        assert_string_equal(id, str_at(final, "id"));
    }
    note(log, "\n");
}

#define STREAM(more) "{\"input\":\"x\",\"stream\":true," more "\"tools\":[{\"type\":\"function\",\"name\":\"f\"}]}"

/* Compares the events between the beginning and the end. */
static void expect_events(const char *body, const char *const *deltas, enum fm_finish finish, const char *expected,
                          const char *output) {
    struct script script = {.surface = &fm_surface_responses, .body = body, .deltas = deltas, .finish = finish};
    struct stream stream;
    struct log log = {.len = 0};
    struct json_object *object = run(&script, &stream);
    struct json_object *items = at(object, "output");
    for (size_t i = 2; i < stream.count; i++) {
        assert_int_equal(int_at(stream.events[i], "sequence_number"), i);
        note_event(&log, stream.events[i], items);
    }
    assert_string_equal(log.text, expected);
    struct log kinds = {.len = 0};
    for (size_t i = 0; i < json_object_array_length(items); i++) {
        struct json_object *item = json_object_array_get_idx(items, i);
        json_object_object_del(item, "id");
        if (strcmp(str_at(item, "type"), "reasoning") == 0) {
            note(&kinds, json_object_to_json_string_ext(item, JSON_C_TO_STRING_PLAIN));
        } else {
            note(&kinds, str_at(item, "type"));
            note(&kinds, " ");
            note(&kinds, str_at(item, "status"));
        }
        note(&kinds, ";");
    }
    assert_string_equal(kinds.text, output);
    json_object_put(object);
    stream_free(&stream);
}

#define ADDED   "output_item.added 0 reasoning in_progress summary\n"
#define PART    "{\"type\":\"summary_text\",\"text\":\"\"}\n"
#define THOUGHT "reasoning_summary_text.delta 0 0 \"hm.\"\n"
#define BEGUN   ADDED "reasoning_summary_part.added 0 0 " PART THOUGHT
#define DONE(status)                                                                                                   \
    "reasoning_summary_text.done 0 0 \"hm.\"\n"                                                                        \
    "reasoning_summary_part.done 0 0 {\"type\":\"summary_text\",\"text\":\"hm.\"}\n"                                   \
    "output_item.done 0 reasoning " status " summary\n"
#define ITEM(status)                                                                                                   \
    "{\"type\":\"reasoning\",\"status\":\"" status "\",\"summary\":[{\"type\":\"summary_text\",\"text\":\"hm.\"}]};"
#define MESSAGE(text, status)                                                                                          \
    "output_item.added 1 message in_progress content\n"                                                                \
    "content_part.added 1 0 {\"type\":\"output_text\",\"text\":\"\",\"annotations\":[],\"logprobs\":[]}\n" text        \
    "content_part.done 1 0 {\"type\":\"output_text\",\"text\":\""

static const char *const thought_text[] = {"~hm.", "Yes.", NULL};
static const char *const thought_call[] = {"~hm.", "@f", "{}", NULL};
static const char *const thought[] = {"~hm.", NULL};
static const char *const empty_thought[] = {"~", "Yes.", NULL};

#define YES                                                                                                            \
    MESSAGE("output_text.delta 1 0 \"Yes.\"\noutput_text.done 1 0 \"Yes.\"\n", "")                                     \
    "Yes.\",\"annotations\":[],\"logprobs\":[]}\n"

static void test_summary(void **state) {
    (void)state;
    expect_events(STREAM(""), thought_text, FM_FINISH_STOP,
                  BEGUN DONE("completed") YES "output_item.done 1 message completed content\ncompleted\n",
                  ITEM("completed") "message completed;");
    expect_events(STREAM(""), thought_call, FM_FINISH_STOP,
                  BEGUN DONE("completed") "output_item.added 1 function_call in_progress\n"
                                          "function_call_arguments.delta 1 \"{}\"\n"
                                          "function_call_arguments.done 1 \"{}\"\n"
                                          "output_item.done 1 function_call completed\ncompleted\n",
                  ITEM("completed") "function_call completed;");
    /* the answer ends inside the thought */
    expect_events(STREAM(""), thought, FM_FINISH_LENGTH, BEGUN DONE("incomplete") "incomplete\n", ITEM("incomplete"));
    expect_events(STREAM(""), thought, FM_FINISH_CANCELLED, BEGUN DONE("incomplete") "incomplete\n",
                  ITEM("incomplete"));
    expect_events(STREAM(""), thought, FM_FINISH_FAILED, BEGUN DONE("incomplete") "error\nfailed\n",
                  ITEM("incomplete"));
    /* a completed answer has a message */
    expect_events(
        STREAM(""), thought, FM_FINISH_STOP,
        BEGUN DONE("completed") MESSAGE(
            "output_text.done 1 0 \"\"\n",
            "") "\",\"annotations\":[],\"logprobs\":[]}\noutput_item.done 1 message completed content\ncompleted\n",
        ITEM("completed") "message completed;");
}

#define TEXT_ADDED "output_item.added 0 reasoning in_progress summary content\n"
#define TEXT_PART  "{\"type\":\"reasoning_text\",\"text\":\""
#define TEXT_ITEM  "{\"type\":\"reasoning\",\"status\":\"completed\",\"summary\":[],\"content\":[" TEXT_PART "hm.\"}]};"
#define TEXT_EVENTS(name)                                                                                              \
    TEXT_ADDED "content_part.added 0 0 " TEXT_PART "\"}\n" name ".delta 0 0 \"hm.\"\n" name                            \
               ".done 0 0 \"hm.\"\ncontent_part.done 0 0 " TEXT_PART                                                   \
               "hm.\"}\noutput_item.done 0 reasoning completed summary content\n"

static void test_dialects(void **state) {
    (void)state;
    static const char end[] = "output_item.done 1 message completed content\ncompleted\n";
    static const struct {
        const char *body;
        const char *events;
        const char *item;
    } rows[] = {
        {STREAM("\"fm\":{\"reasoning_dialect\":\"summary\"},"), BEGUN DONE("completed"), ITEM("completed")},
        {STREAM("\"fm\":{\"reasoning_dialect\":\"reasoning_text\"},"), TEXT_EVENTS("reasoning_text"), TEXT_ITEM},
        {STREAM("\"fm\":{\"reasoning_dialect\":\"reasoning\"},"), TEXT_EVENTS("reasoning"), TEXT_ITEM},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char events[2048];
        char output[512];
        snprintf(events, sizeof events, "%s" YES "%s", rows[i].events, end);
        snprintf(output, sizeof output, "%smessage completed;", rows[i].item);
        expect_events(rows[i].body, thought_text, FM_FINISH_STOP, events, output);
    }
}

static void test_no_reasoning(void **state) {
    (void)state;
    struct script script = {.surface = &fm_surface_responses,
                            .body = STREAM("\"reasoning\":{\"effort\":\"low\",\"generate_summary\":\"concise\"},"),
                            .deltas = empty_thought,
                            .finish = FM_FINISH_STOP};
    struct stream stream;
    struct json_object *object = run(&script, &stream);
    assert_json(object, "reasoning", "{\"effort\":\"low\",\"summary\":\"concise\"}");
    assert_int_equal(json_object_array_length(at(object, "output")), 1);
    assert_string_equal(str_at(object, "output.0.type"), "message");
    assert_int_equal(int_at(stream.events[2], "output_index"), 0);
    json_object_put(object);
    stream_free(&stream);
}

/* An engine must think before it writes text. */
static void test_order(void **state) {
    (void)state;
    struct fm_request request = request_of(&fm_surface_responses, STREAM(""));
    struct fm_answer answer;
    struct fm_error error;
    assert_int_equal(fm_answer_init(&answer, &fm_surface_responses, &request, "tiny", &error), FM_OK);
    fm_answer_open(&answer, 1);
    assert_int_equal(fm_answer_reason(&answer, "a", 1, &error), FM_OK);
    assert_true(fm_answer_append(&answer, "b", 1));
    assert_int_equal(fm_answer_reason(&answer, "c", 1, &error), FM_INTERNAL);
    assert_int_equal(fm_answer_last_part(&answer)->kind, FM_PART_TEXT);
    assert_int_equal(answer.output.len, 2);
    fm_answer_free(&answer);
    request = request_of(&fm_surface_responses, STREAM(""));
    assert_int_equal(fm_answer_init(&answer, &fm_surface_responses, &request, "tiny", &error), FM_OK);
    fm_answer_open(&answer, 1);
    assert_int_equal(fm_answer_call(&answer, "f", &error), FM_OK);
    assert_int_equal(fm_answer_reason(&answer, "c", 1, &error), FM_INTERNAL);
    fm_answer_free(&answer);
}

/* ---- out: chat ---- */

static void expect_chat(const char *const *deltas, enum fm_finish finish, const char *message, const char *expected) {
    struct script script = {
        .surface = &fm_surface_chat,
        .body = "{\"messages\":[" SAYS("user") "],\"stream\":true,\"tools\":[{\"type\":\"function\",\"function\":{"
                                               "\"name\":\"f\"}}]}",
        .deltas = deltas,
        .finish = finish};
    struct stream stream;
    struct log log = {.len = 0};
    struct json_object *object = run(&script, &stream);
    assert_json(object, "choices.0.message.reasoning_content", "\"hm.\"");
    assert_json(object, "choices.0.message.content", message);
    for (size_t i = 1; i < stream.count; i++) {
        struct json_object *delta = at(stream.events[i], "choices.0.delta");
        struct json_object *calls = at(delta, "tool_calls");
        note(&log, calls ? "call" : json_object_to_json_string_ext(delta, JSON_C_TO_STRING_PLAIN));
        note(&log, "\n");
    }
    assert_string_equal(log.text, expected);
    json_object_put(object);
    stream_free(&stream);
}

static void test_chat(void **state) {
    (void)state;
    expect_chat(thought_text, FM_FINISH_STOP, "\"Yes.\"",
                "{\"reasoning_content\":\"hm.\"}\n{\"content\":\"Yes.\"}\n{}\n");
    expect_chat(thought, FM_FINISH_LENGTH, "\"\"", "{\"reasoning_content\":\"hm.\"}\n{}\n");
    expect_chat(thought_call, FM_FINISH_STOP, "null", "{\"reasoning_content\":\"hm.\"}\ncall\ncall\n{}\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bodies),  cmocka_unit_test(test_conversations), cmocka_unit_test(test_effort),
        cmocka_unit_test(test_summary), cmocka_unit_test(test_dialects),      cmocka_unit_test(test_no_reasoning),
        cmocka_unit_test(test_order),   cmocka_unit_test(test_chat),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed + cmocka_run_group_tests(tests, with_slow_host, NULL);
}
