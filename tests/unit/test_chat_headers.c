/*
 * Calls whose messages have a header: the form that is read from a template in OpenAI's harmony format, and what the
 * parser and the grammar take as a call or as text. The vocabulary is bytes and control tokens.
 */
#include "byte_grammar.h"

#include <json-c/json.h>

static const struct byte_control controls[] = {
    {"<|return|>", true},   {"<|call|>", true},     {"<|start|>", false},    {"<|end|>", false},
    {"<|channel|>", false}, {"<|message|>", false}, {"<|constrain|>", false}};

/* ---- the template ---- */

static void render_message(const struct fm_chat *chat, size_t index, struct transcript *log) {
    const struct fm_chat_message *message = &chat->messages[index];
    bool assistant = strcmp(message->role, "assistant") == 0;
    const struct fm_chat_call *call = message->calls;
    bool last = index + 1 == chat->count;
    if (call) {
        if (last && message->content_len > 0) {
            note(log, "<|start|>assistant<|channel|>analysis<|message|>%s<|end|>", message->content);
        }
        note(log, "<|start|>assistant to=functions.%s<|channel|>commentary json<|message|>%s<|call|>", call->name,
             call->arguments);
        return;
    }
    note(log, "<|start|>%s%s<|message|>%s", message->role, assistant ? "<|channel|>final" : "", message->content);
    note(log, "%s", assistant && last ? "<|return|>" : "<|end|>");
}

static enum fm_code render(const void *argument, const struct fm_chat *chat, char **text, size_t *len,
                           struct fm_error *error) {
    struct transcript log = {.len = 0};
    (void)argument;
    (void)error;
    note(&log, "<|start|>developer<|message|>%s<|end|>", chat->tool_count ? chat->tools[0].name : "");
    for (size_t i = 0; i < chat->count; i++) {
        render_message(chat, i, &log);
    }
    note(&log, "%s", chat->closed ? "" : "<|start|>assistant");
    *text = strdup(log.text);
    assert_non_null(*text);
    *len = log.len;
    return FM_OK;
}

static size_t control(const void *argument, const char *text, size_t len, int32_t *token, bool *ends) {
    (void)argument;
    for (size_t i = 0; i < COUNT(controls); i++) {
        size_t control_len = strlen(controls[i].text);
        if (len >= control_len && memcmp(text, controls[i].text, control_len) == 0) {
            *token = (int32_t)(BYTE_COUNT + i);
            *ends = controls[i].ends_turn;
            return control_len;
        }
    }
    return 0;
}

static struct fm_tool_form form;

static const struct fm_tool_turn turn = {.thought = "<|channel|>analysis<|message|>",
                                         .thought_end = "<|end|><|start|>assistant<|channel|>final<|message|>",
                                         .lead = "<|channel|>final<|message|>"};

static int make(void **state) {
    const struct fm_tool_template from = {.render = render, .control = control};
    struct fm_error error;
    byte_controls = controls;
    byte_control_count = COUNT(controls);
    int failed = make_vocab(state);
    return failed ? failed : (int)fm_tool_form_read(&from, &turn, &form, &error);
}

static int clean(void **state) {
    fm_tool_form_free(&form);
    return free_vocab(state);
}

/* ---- answers ---- */

static struct fm_tool tools[] = {{.name = "f", .allowed = true}, {.name = "fun", .allowed = true}, {.name = "no"}};

static struct fm_kit_job job = {.tools = tools, .tool_count = COUNT(tools), .parallel_tool_calls = true};

/* Returns how many bytes of `answer` the grammar takes, token by token. The parser's pieces for these bytes go to
 * `log`. */
static size_t read(const char *answer, bool *whole, struct transcript *log) {
    const char *number = job.format.kind != FM_FORMAT_TEXT ? "{\"type\":\"number\"}" : NULL;
    struct fm_grammar *grammar = new_grammar(&job, &form, number);
    struct parsing *parsing = start_parsing(log, &job, &form);
    struct fm_tool_piece piece;
    size_t at = 0;
    while (answer[at]) {
        int32_t token = (unsigned char)answer[at];
        bool ends;
        size_t len = control(NULL, answer + at, strlen(answer + at), &token, &ends);
        if (!fm_grammar_take(grammar, token)) {
            break;
        }
        if (!fm_tool_parser_read_trigger(&parsing->parser, token, &piece)) {
            feed(parsing, answer + at, len ? len : 1);
        } else if (piece.len > 0) {
            note_piece(parsing, &piece);
        }
        at += len ? len : 1;
    }
    *whole = fm_grammar_accepts(grammar);
    fm_grammar_free(grammar);
    end_parsing(parsing, !*whole);
    return at;
}

static void expect(const char *answer, const char *expected) {
    struct transcript log = {.len = 0};
    bool whole;
    size_t len = read(answer, &whole, &log);
    if (answer[len]) {
        fail_msg("%s: not in the grammar from here on: %s", answer, answer + len);
    }
    assert_true(whole);
    assert_string_equal(log.text, expected);
}

static void expect_end(const char *answer, const char *rest) {
    struct transcript log = {.len = 0};
    bool whole;
    assert_string_equal(answer + read(answer, &whole, &log), rest);
}

/* ---- the tests ---- */

static void a_form(void **state) {
    (void)state;
    assert_true(form.native);
    assert_int_equal(form.header.head_count, 3);
    assert_int_equal(form.header.rest_count, 7);
    assert_int_equal(form.header.between.control_count, 2);
    assert_int_equal(form.next.len, 0);
    assert_int_equal(form.end.len, 0);
}

#define CHANNEL "<|channel|>commentary"
#define JSON    " <|constrain|>json<|message|>"

static void calls(void **state) {
    (void)state;
    expect(CHANNEL " to=functions.f" JSON "{\"a\":1}", "|C:f|A:{\"a\":1}");
    expect(CHANNEL " to=functions.fun json<|message|>{\"to=functions.\":\"}\"}", "|C:fun|A:{\"to=functions.\":\"}\"}");
    expect(CHANNEL " to=functions.f<|message|>{}", "|C:f|A:{}");
    expect(CHANNEL " to=functions.f<|constrain|>json<|message|>{}", "|C:f|A:{}");
    expect(" to=functions.fun" CHANNEL JSON "{}", "|C:fun|A:{}");
    expect(" to=functions.f" CHANNEL " json<|message|>{}", "|C:f|A:{}");
    expect("to=functions.f" CHANNEL "<|message|>{}", "|C:f|A:{}");
    expect("Let me see.<|end|><|start|>assistant" CHANNEL " to=functions.f" JSON "{}", "T:Let me see.|C:f|A:{}");
    expect(" to<|end|><|start|>assistant to=functions.f" CHANNEL JSON "{}", "T: to|C:f|A:{}");
    expect("{\"name\": \"f\", \"arguments\": {}}", "|C:f|A:{}"); /* plain JSON */
}

static void texts(void **state) {
    (void)state;
    static const char *const rows[] = {
        "", "Well.", " to=function", " to", "to = functions.f", "Say to=functions.f or commentary.", " to=functiont",
        "\n to=functions.f", "{\"name\": \"no\"}", "< |channel|"};
    for (size_t i = 0; i < COUNT(rows); i++) {
        char expected[128];
        snprintf(expected, sizeof expected, "%s%s", rows[i][0] ? "T:" : "", rows[i]);
        expect(rows[i], expected);
    }
    expect(CHANNEL " to=functions.no" JSON "{\"a\":1}",
           "|?T:<tool_call>\n{\"name\": \"no\", \"arguments\": {\"a\":1}}\n</tool_call>");
    expect("Well.<|end|><|start|>assistant to=functions.fu" CHANNEL " json<|message|>{}",
           "T:Well.|?T:<tool_call>\n{\"name\": \"fu\", \"arguments\": {}}\n</tool_call>");
    expect_end(CHANNEL "<|message|>", "<|message|>");
    expect_end(" to=functions.f {}", "{}");
    expect_end("Well.<|channel|>", "<|channel|>");
    expect_end("Well.<|end|><|start|>assistant Or", "Or");
}

static void forced(void **state) {
    (void)state;
    job.tool_mode = FM_TOOLS_REQUIRED;
    expect(CHANNEL " to=functions.f" JSON "{}", "|C:f|A:{}");
    expect(" to=functions.fun" CHANNEL " json<|message|>{\"a\":1}", "|C:fun|A:{\"a\":1}");
    expect_end("Well", "Well");
    job.tool_mode = FM_TOOLS_AUTO;
}

static void with_a_format(void **state) {
    (void)state;
    job.format.kind = FM_FORMAT_JSON_SCHEMA;
    expect("12", "T:12");
    expect(CHANNEL " to=functions.f" JSON "{}", "|C:f|A:{}");
    expect(" to=functions.f" CHANNEL JSON "{}", "|C:f|A:{}");
    expect_end("Well", "Well");
    job.format.kind = FM_FORMAT_TEXT;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_form), cmocka_unit_test(calls),         cmocka_unit_test(texts),
        cmocka_unit_test(forced), cmocka_unit_test(with_a_format),
    };
    return cmocka_run_group_tests(tests, make, clean);
}
