/* If the vocabulary has tokens for a form's tags, calls end with these tokens, and not with their text. */
#include "byte_grammar.h"

#include <json-c/json.h>

enum { END_OF_TURN = BYTE_COUNT, STOP, NEXT, BEGIN, END };

static const struct byte_control tokens[] = {
    {"end", true}, {"<stop>", false}, {"<next>", false}, {"<tool_call>", false}, {"</tool_call>", false}};

#define MARK(literal)                                                                                                  \
    { .text = (literal), .len = sizeof(literal) - 1 }

/* A form with control tokens, white space between them, and a tag. */
static const struct fm_tool_form with_controls = {
    .trigger = MARK("<call>"),
    .arguments = MARK("="),
    .next = {.text = "</tool_call><stop>\n<next>", .len = 25, .controls = {{12, 6, STOP}, {19, 6, NEXT}}, .control_count = 2},
    .end = {.text = "</tool_call><stop>", .len = 18, .controls = {{12, 6, STOP}}, .control_count = 1},
};

static struct fm_tool tool = {.name = "f", .allowed = true};

#define OF_TEXT     "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\":\"</tool_call>\"}"
#define OF_CONTROLS "<call>f={}"

/* Appends a token's letter. */
static void spell(int32_t token, char *text, size_t size) {
    const char letter = (char)(token < BYTE_COUNT ? token : "!SNBE"[token - BYTE_COUNT]);
    const size_t len = strlen(text);
    assert_true(len + 1 < size);
    text[len] = letter;
    text[len + 1] = '\0';
}

/* Takes the tokens that must come next, and compares them. */
static void expect_forced(struct fm_grammar *grammar, const char *expected) {
    char forced[256] = "";
    for (int32_t token; !fm_grammar_complete(grammar) && (token = fm_grammar_forced(grammar)) != FM_TOKEN_NONE;) {
        spell(token, forced, sizeof forced);
        assert_true(fm_grammar_take(grammar, token));
    }
    assert_string_equal(forced, expected);
}

static void take(struct fm_grammar *grammar, const char *text) {
    for (; *text; text++) {
        if (!fm_grammar_take(grammar, (unsigned char)*text)) {
            fail_msg("not in the grammar from here on: %s", text);
        }
    }
}

static struct fm_kit_job job_of(enum fm_tool_mode mode, bool several) {
    return (struct fm_kit_job){.tools = &tool, .tool_count = 1, .tool_mode = mode, .parallel_tool_calls = several};
}

static void one_call(void **state) {
    (void)state;
    const struct fm_kit_job job = job_of(FM_TOOLS_REQUIRED, false);
    struct fm_grammar *grammar = new_grammar(&job, &fm_tool_form_own, NULL);
    take(grammar, OF_TEXT);
    expect_forced(grammar, "}\nE");
    assert_true(fm_grammar_complete(grammar));
    fm_grammar_free(grammar);
}

/* The first call may begin with the token or with the tag's text, later calls only with the token. */
static void several_calls(void **state) {
    (void)state;
    const struct fm_kit_job job = job_of(FM_TOOLS_AUTO, true);
    for (int i = 0; i < 2; i++) {
        struct fm_grammar *grammar = new_grammar(&job, &fm_tool_form_own, NULL);
        take(grammar, "Well: ");
        assert_true(i == 0 || fm_grammar_take(grammar, BEGIN));
        take(grammar, OF_TEXT + (i == 0 ? 0 : strlen("<tool_call>")));
        expect_forced(grammar, "}\nE");
        assert_true(fm_grammar_accepts(grammar));
        take(grammar, "\n");
        assert_true(fm_grammar_accepts(grammar));
        assert_false(fm_grammar_allows(grammar, '<'));
        assert_true(fm_grammar_take(grammar, BEGIN));
        expect_forced(grammar, "\n{\"name\": \"");
        take(grammar, "f\", \"arguments\": {}");
        expect_forced(grammar, "}\nE");
        assert_true(fm_grammar_accepts(grammar));
        fm_grammar_free(grammar);
    }
}

static void controls_beside_tags(void **state) {
    (void)state;
    const struct fm_kit_job job = job_of(FM_TOOLS_REQUIRED, true);
    struct fm_grammar *grammar = new_grammar(&job, &with_controls, NULL);
    take(grammar, OF_CONTROLS);
    expect_forced(grammar, "ES");
    assert_true(fm_grammar_accepts(grammar));
    take(grammar, "\n"); /* many models write this before they show whether they call again */
    assert_true(fm_grammar_accepts(grammar));
    assert_true(fm_grammar_take(grammar, NEXT));
    take(grammar, "f={}");
    expect_forced(grammar, "ES");
    fm_grammar_free(grammar);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_call),
        cmocka_unit_test(several_calls),
        cmocka_unit_test(controls_beside_tags),
    };
    byte_controls = tokens;
    byte_control_count = COUNT(tokens);
    byte_tag_count = 2;
    return cmocka_run_group_tests(tests, make_vocab, free_vocab);
}
