/*
 * Calls that the prompt has opened: the form that is read from a template like Functionary's, and what the parser and
 * the grammar take as a call or as text. The vocabulary is bytes.
 */
#include "byte_grammar.h"

/* ---- the template ---- */

static const char *open_mark = ">>>"; /* the prompt ends with this mark */

static enum fm_code render(const void *argument, const struct fm_chat *chat, char **text, size_t *len,
                           struct fm_error *error) {
    struct transcript log = {.len = 0};
    (void)argument;
    (void)error;
    note(&log, "system: %send", chat->tool_count ? chat->tools[0].name : "");
    for (size_t i = 0; i < chat->count; i++) {
        const struct fm_chat_message *message = &chat->messages[i];
        bool assistant = strcmp(message->role, "assistant") == 0;
        note(&log, "%s: ", message->role);
        note(&log, "%s%s", assistant && message->content_len > 0 ? ">>>all\n" : "", message->content);
        for (size_t k = 0; k < message->call_count; k++) {
            note(&log, ">>>%s\n%s", message->calls[k].name, message->calls[k].arguments);
        }
        note(&log, "end");
    }
    note(&log, "%s%s", chat->closed ? "" : "assistant: ", chat->closed ? "" : open_mark);
    *text = strdup(log.text);
    assert_non_null(*text);
    *len = log.len;
    return FM_OK;
}

static size_t control(const void *argument, const char *text, size_t len, int32_t *token, bool *ends) {
    (void)argument;
    *token = BYTE_COUNT;
    *ends = len >= 3 && memcmp(text, "end", 3) == 0;
    return *ends ? 3 : 0;
}

static struct fm_tool_form form;

static const struct fm_tool_turn turn = {.thought = "", .thought_end = "", .lead = "all\n"};

static int make(void **state) {
    const struct fm_tool_template from = {.render = render, .control = control};
    struct fm_error error;
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

/* The answer is cut into two pieces, at each byte in turn. */
static void expect(const char *answer, const char *expected) {
    struct fm_grammar *grammar = new_grammar(&job, &form, NULL);
    size_t len = strlen(answer);
    for (size_t i = 0; i < len; i++) {
        if (!fm_grammar_take(grammar, (unsigned char)answer[i])) {
            fail_msg("%s: not in the grammar from here on: %s", answer, answer + i);
        }
    }
    assert_true(fm_grammar_accepts(grammar));
    fm_grammar_free(grammar);
    for (size_t cut = 0; cut <= len; cut++) {
        struct transcript log = {.len = 0};
        struct parsing *parsing = start_parsing(&log, &job, &form);
        feed(parsing, answer, cut);
        feed(parsing, answer + cut, len - cut);
        end(parsing);
        assert_string_equal(log.text, expected);
    }
}

/* The grammar takes no byte of `rest`. */
static void expect_end(const char *answer, const char *rest) {
    struct fm_grammar *grammar = new_grammar(&job, &form, NULL);
    size_t at = 0;
    while (answer[at] && fm_grammar_take(grammar, (unsigned char)answer[at])) {
        at++;
    }
    fm_grammar_free(grammar);
    assert_string_equal(answer + at, rest);
}

/* ---- the tests ---- */

static void a_form(void **state) {
    const struct fm_tool_template from = {.render = render, .control = control};
    struct fm_tool_form other;
    struct fm_error error;
    (void)state;
    assert_true(form.native);
    assert_true(form.opened);
    assert_int_equal(form.trigger.len + form.name.len + form.end.len, 0);
    assert_memory_equal(form.next.text, ">>>", form.next.len);
    open_mark = "";
    assert_int_equal(fm_tool_form_read(&from, &turn, &other, &error), FM_OK);
    assert_false(other.native);
    fm_tool_form_free(&other);
    open_mark = ">>>";
}

static void calls(void **state) {
    (void)state;
    expect("f\n{\"a\":1}", "|C:f|A:{\"a\":1}");
    expect("fun\n{}", "|C:fun|A:{}");
    expect("f\n{}>>>fun\n{\"a\":\">>>f\"}>>>f\n{}", "|C:f|A:{}|C:fun|A:{\"a\":\">>>f\"}|C:f|A:{}");
    expect("Well.\n>>>f\n{}", "T:Well.|C:f|A:{}");
    expect(">>f fu>>>fu>>>f\n{}>>>f\n{}", "T:>>f fu>>>fu|C:f|A:{}|C:f|A:{}");
    expect(">>>>>f\n{}", "T:>>|C:f|A:{}");
    expect("{\"name\": \"f\", \"arguments\": {}}", "|C:f|A:{}"); /* plain JSON */
}

static void texts(void **state) {
    (void)state;
    static const char *const rows[] = {"Well.",       "f",        "fu\n{}",      "no\n{}",   ">>>no\n{}", "f {}",  ">f\n{}",
                                       ">>> f\n{}", ">>>f\r\n", "Well. f\n{}", ">>> 1 + 1", ">>f\n{}",   "\nf\n{}", ">>>"};
    for (size_t i = 0; i < COUNT(rows); i++) {
        char expected[64];
        snprintf(expected, sizeof expected, "T:%s", rows[i]);
        expect(rows[i], expected);
    }
    expect_end("f\nWell", "Well");
    expect_end("f\n{} Well", " Well");
    /* the call of `no` is left out, with everything after it */
    expect("f\n{}>>>fun\n{}>>>no\n{}>>>f\n{}", "|C:f|A:{}|C:fun|A:{}|?");
}

static void forced(void **state) {
    (void)state;
    job.tool_mode = FM_TOOLS_REQUIRED;
    expect("fun\n{\"a\":1}>>>f\n{}", "|C:fun|A:{\"a\":1}|C:f|A:{}");
    expect_end("all\nWell", "all\nWell");
    job.parallel_tool_calls = false;
    expect_end("f\n{}>>>f\n{}", ">>>f\n{}");
    job.parallel_tool_calls = true;
    job.tool_mode = FM_TOOLS_AUTO;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_form),
        cmocka_unit_test(calls),
        cmocka_unit_test(texts),
        cmocka_unit_test(forced),
    };
    return cmocka_run_group_tests(tests, make, clean);
}
