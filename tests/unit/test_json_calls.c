/*
 * Calls that are plain JSON: what the parser and the grammar take as a call or as text. They must agree on every text.
 * The vocabulary is bytes.
 */
#include "byte_grammar.h"

#include <json-c/json.h>

#ifdef FM_SANITIZE /* with sanitizers, llguidance's memory is slow, and llguidance is not built for a sanitizer */
#define TEXTS 500
#else
#define TEXTS 2000 /* random texts */
#endif
#define ANSWERS  (TEXTS / 2) /* random answers */
#define TEXT_MAX (1u << 22)

static struct fm_tool tools[] = {
    {.name = "f", .allowed = true}, {.name = "f2", .allowed = true}, {.name = "a.b", .allowed = true}, {.name = "no"}};

static struct fm_kit_job job = {.tools = tools, .tool_count = COUNT(tools), .parallel_tool_calls = true};

/* ---- the parser ---- */

static void *start(struct transcript *log) {
    return start_parsing(log, &job, &fm_tool_form_own);
}

static const struct subject subject = {start, feed, end};

/* Checks the pieces of `answer` with any split. The grammar must accept the answer, which may end there. */
static void expect(const char *answer, const char *expected) {
    struct fm_grammar *grammar = new_grammar(&job, &fm_tool_form_own, NULL);
    for (const char *c = answer; *c; c++) {
        if (!fm_grammar_take(grammar, (unsigned char)*c)) {
            fail_msg("not in the grammar from here on: %s", c);
        }
    }
    assert_true(fm_grammar_accepts(grammar));
    fm_grammar_free(grammar);
    expect_in_any_split(&subject, answer, answer, strlen(answer), expected);
}

static void expect_no_call(const char *answer) {
    char expected[1024];
    snprintf(expected, sizeof expected, "T:%s", answer);
    expect(answer, expected);
}

/* ---- the tests ---- */

#define F "{\"name\": \"f\", \"arguments\": {\"a\":\"}\"}}"

static void calls(void **state) {
    (void)state;
    expect(F, "|C:f|A:{\"a\":\"}\"}");
    expect(" \n" F "\n", "|C:f|A:{\"a\":\"}\"}");
    expect("Well.\n\n" F, "T:Well.|C:f|A:{\"a\":\"}\"}");
    expect("Well:\r\n\t" F, "T:Well:|C:f|A:{\"a\":\"}\"}");
    expect("```json\n" F "\n```", "|C:f|A:{\"a\":\"}\"}");
    expect("So:\n```tool_call\r\n\n" F "\n```\n", "T:So:|C:f|A:{\"a\":\"}\"}");
    expect("{                \"name\": \"f\", \"arguments\": {}}", "|C:f|A:{}"); /* 16 spaces */
    expect("[\n  {\n    \"name\": \"f2\",\n    \"parameters\": {}\n  },\n  {\"name\":\"f\",\"arguments\":{}}\n]",
           "|C:f2|A:{}|C:f|A:{}");
    expect("{\"type\": \"function\", \"function\": {\"name\": \"a.b\", \"arguments\": {}}}", "|C:a.b|A:{}");
    expect("{\"type\":\"function\",\"name\":\"f\",\"parameters\":{}}", "|C:f|A:{}");
    expect("{\"function\":\n\n{\"name\":\"f\",\"parameters\":{}}}", "|C:f|A:{}");
    expect("{" F "}", "|C:f|A:{\"a\":\"}\"}");
    expect("```json\n{ \n" F "\n}\n```", "|C:f|A:{\"a\":\"}\"}");
    expect("[{" F "}, {" F "}]", "|C:f|A:{\"a\":\"}\"}|C:f|A:{\"a\":\"}\"}");
    expect("[{{\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":{}}}}]", "|C:f|A:{}");
    expect(F "\n" F, "|C:f|A:{\"a\":\"}\"}|C:f|A:{\"a\":\"}\"}");
    expect("```\n" F "\n```\n\n```json\n{\"function\": {\"name\": \"f2\", \"arguments\": {}}}\n```",
           "|C:f|A:{\"a\":\"}\"}|C:f2|A:{}");
    expect("<" F ">", "|C:f|A:{\"a\":\"}\"}");
    expect("<" F ">\n<" F ">", "|C:f|A:{\"a\":\"}\"}|C:f|A:{\"a\":\"}\"}");
    expect("So:\n\n<{" F "}>\n", "T:So:|C:f|A:{\"a\":\"}\"}");
    expect("Sure.\n<tools>\n" F "\n</tools>", "T:Sure.|C:f|A:{\"a\":\"}\"}");
    expect("<tools>" F "</tools>\n<tools> {\"name\":\"f2\",\"arguments\":{}}</tools>", "|C:f|A:{\"a\":\"}\"}|C:f2|A:{}");
    /* a call in the model's form beside it */
    expect("{\"name\": \"f\n<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>",
           "T:{\"name\": \"f|C:f|A:{}");
    expect("```json\n<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>", "T:```json|C:f|A:{}");
}

static void texts(void **state) {
    (void)state;
    static const char *const rows[] = {
        "{",
        "{\"name\": \"f",
        "{\"name\": \"Anna\"}",
        "{\"name\": \"f3\", \"arguments\": {}}",
        "{\"name\": \"no\", \"arguments\": {}}", /* this tool may not be called */
        "{\"name\": \"F\", \"arguments\": {}}",
        "{\"name\": \"\\u0066\", \"arguments\": {}}",
        "{\"name\": \"\", \"arguments\": {}}",
        "{\"name\": f, \"arguments\": {}}",
        "{\"Name\": \"f\"}",
        "{\"id\": 1, \"name\": \"f\"}",
        "{\"type\": \"object\", \"name\": \"f\"}",
        "{{{\"name\": \"f\"}}}",
        "{{}, {\"name\": \"f\"}}",
        "[[{\"name\": \"f\"}]]",
        "[1, {\"name\": \"f\"}]",
        "{\"tools\": [\n  {\"name\": \"f\"}]}",
        "[\n  {\"a\": 1},\n  {\"name\": \"f\"}]",
        "{\"a\":\n{\"b\": 1}}\n{\"name\": \"f\"}",
        "An example is {\"name\": \"f\", \"arguments\": {}}, which calls f.",
        "`{\"name\": \"f\", \"arguments\": {}}`",
        "x = [\r\n  {\"name\": \"f\"}]",
        "call(\n{\"name\": \"f\"})",
        "```js\nconst a = {\"name\": \"f\"};\n```",
        "- {\"name\": \"f\"}",
        "{                 \"name\": \"f\"}", /* 17 spaces */
        "```json\n{\"name\": \"f\xC3\xA9\"}\n```\n",
        "```json\n{\n  \"person\": {\"name\": \"f\"}\n}\n```",
        "{\"name\" \"f\"}",
        "<br> <b>{\"name\": \"f\"}",
        "(\n<b>{\"name\": \"f\"}",
        "<function=f>{\"name\": \"f\"}",
        "<>{\"name\": \"f\"}",
        "< {\"name\": \"f\"}",
        "a <{\"name\": \"f\"}>",
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        expect_no_call(rows[i]);
    }
}

static uint32_t random_below(uint32_t *seed, uint32_t below) {
    *seed = *seed * 1664525 + 1013904223;
    return (*seed >> 16) % below;
}

/* `count` words of a call's beginning, some left out, some replaced, with white space between them. */
static void add_words(uint32_t *seed, struct fm_buf *text) {
    static const char *const call[] = {"~",  "\n", "```json\n",   "<tools>", "[",          "{", "{",  "\"type\"", ":",
                                       "\"function\"", ",", "\"function\"", ":", "{", "\"name\"", ":", "\"", "f",
                                       "\"", "~"};
    static const char *const others[] = {"{", "[", "}", "]", "(", "=", ",", ":", "\"", "'", "\\", "`", "```", "\n", "2",
                                         "\v", "<", "<b>", "\r\n", "no", "F", "a.b", "\"name\"", "{\"name\":\"f"};
    static const char *const spaces[] = {" ", "\n", "\t", "\r\n", "\n\n", "        ", "               "};
    uint32_t skipped = random_below(seed, 12);
    for (uint32_t i = random_below(seed, 4); i < COUNT(call); i++) {
        bool type = i > 6 && i < 11;
        bool function = i > 10 && i < 14;
        bool doubled = i == 6;
        bool left_out = (doubled && skipped % 2 > 0) || (type && skipped % 3 > 0) || (function && skipped % 4 > 0) ||
                        random_below(seed, 20) == 0;
        fm_buf_append_str(text, left_out ? "" : call[i]);
        fm_buf_append_str(text, random_below(seed, 40) ? "" : others[random_below(seed, COUNT(others))]);
        for (int k = 0; k < 2 && i < 16; k++) {
            fm_buf_append_str(text, random_below(seed, 4) ? "" : spaces[random_below(seed, COUNT(spaces))]);
        }
    }
}

/* The parser and the grammar find the same beginnings of calls. */
static void both_decide_alike(void **state) {
    (void)state;
    uint32_t seed = 1;
    size_t found = 0;
    struct fm_json_call call;
    struct fm_buf text;
    struct fm_grammar *grammar = new_grammar(&job, &fm_tool_form_own, NULL);
    fm_buf_init(&text, TEXT_MAX);
    fm_json_call_init(&call, &job, false);
    for (int i = 0; i < TEXTS; i++) {
        size_t at = text.len;
        const struct fm_tool *tool = NULL;
        add_words(&seed, &text);
        for (; at < text.len && !tool; at++) {
            tool = fm_json_call_read(&call, text.data[at]);
            bool taken = fm_grammar_take(grammar, (unsigned char)text.data[at]);
            if (!taken || fm_grammar_allows(grammar, '~') != !tool) {
                fail_msg("only the %s finds a call at %zu: %.*s", tool ? "parser" : "grammar", at, (int)text.len, text.data);
            }
        }
        if (tool) {
            found++;
            fm_grammar_free(grammar);
            grammar = new_grammar(&job, &fm_tool_form_own, NULL);
            fm_json_call_init(&call, &job, false);
            fm_buf_reset(&text);
        }
    }
    fm_grammar_free(grammar);
    fm_buf_free(&text);
    assert_true(found > TEXTS / 20);
}

static const char *one_of(uint32_t *seed, const char *const *list, size_t count) {
    return list[random_below(seed, (uint32_t)count)];
}

#define ONE_OF(seed, list) one_of(seed, list, COUNT(list))

static void add_value(uint32_t *seed, int depth, struct fm_buf *text);

/* Adds an object with members of all kinds. No `name` in it names a tool that may be called. */
static void add_object(uint32_t *seed, int depth, struct fm_buf *text) {
    static const char *const keys[] = {"name", "name", "type", "function", "arguments", "parameters", "id", "\\u0061", ""};
    static const char *const names[] = {"Anna", "no", "F", "f3", "ff", "a.b.c", "a", "", "\\u0066", "f\\u0032", "f ", "f\\\""};
    static const char *const gaps[] = {"", "", " ", "\n  ", "\r\n\t", "\n\n"};
    uint32_t count = random_below(seed, 4);
    fm_buf_append_char(text, '{');
    for (uint32_t i = 0; i < count; i++) {
        const char *key = ONE_OF(seed, keys);
        fm_buf_append_str(text, i ? "," : "");
        fm_buf_append_str(text, ONE_OF(seed, gaps));
        fm_buf_append_char(text, '"');
        fm_buf_append_str(text, key);
        fm_buf_append_str(text, random_below(seed, 2) ? "\":" : "\": ");
        if (strcmp(key, "name") == 0) {
            fm_buf_append_char(text, '"');
            fm_buf_append_str(text, ONE_OF(seed, names));
            fm_buf_append_char(text, '"');
        } else {
            add_value(seed, depth + 1, text);
        }
    }
    fm_buf_append_str(text, ONE_OF(seed, gaps));
    fm_buf_append_str(text, random_below(seed, 20) ? "}" : ""); /* some objects are never complete */
}

/* Recurses to a depth of 9. */
static void add_value(uint32_t *seed, int depth, struct fm_buf *text) {
    static const char *const values[] = {"1", "null", "\"f\"", "\"function\"", "\"{\\\"name\\\": \\\"f\\\"}\"", "\"\xC3\xA9\""};
    uint32_t kind = depth < 9 ? random_below(seed, 4) : 0;
    if (kind < 2) {
        fm_buf_append_str(text, ONE_OF(seed, values));
    } else if (kind == 2) {
        fm_buf_append_char(text, '[');
        add_value(seed, depth + 1, text);
        fm_buf_append_str(text, ", ");
        add_value(seed, depth + 1, text);
        fm_buf_append_char(text, ']');
    } else {
        add_object(seed, depth, text);
    }
}

/* Adds an answer with JSON, in a fence, in a text, or inside a line. Inside a line, the JSON may name a tool. */
static void add_answer(uint32_t *seed, struct fm_buf *text) {
    static const char *const begins[] = {"",           "```json\n", "```\r\n", "So:\n\n", "[",   "x = ",
                                         "<tool_cal", "- ",        "\n",      "> ",       "\t", "```python\nprint("};
    static const char *const ends[] = {"", "\n```\n", "\n\n", ")\n```", ", or so.", "]"};
    static const char *const inside[] = {" Write {\"name\": \"f\", \"arguments\": {}} for it.\n",
                                         " `[{\"name\":\"f2\"}]`", " tools = [\n  {\"name\": \"f\"},\n  {\"name\": \"f2\"}]\n"};
    for (uint32_t count = 1 + random_below(seed, 3); count > 0; count--) {
        fm_buf_append_str(text, ONE_OF(seed, begins));
        add_object(seed, 0, text);
        fm_buf_append_str(text, ONE_OF(seed, ends));
        fm_buf_append_str(text, random_below(seed, 2) ? "" : ONE_OF(seed, inside));
    }
}

/* JSON that is not a call is passed on byte for byte, however it is split. */
static void text_stays_text(void **state) {
    (void)state;
    uint32_t seed = 1;
    struct fm_buf text;
    struct fm_grammar *grammar = new_grammar(&job, &fm_tool_form_own, NULL);
    fm_buf_init(&text, TEXT_MAX);
    for (int i = 0; i < ANSWERS; i++) {
        struct transcript log = {.len = 0};
        struct parsing *parsing = start(&log);
        fm_buf_reset(&text);
        add_answer(&seed, &text);
        for (size_t at = 0; at < text.len;) {
            size_t len = 1 + random_below(&seed, 9);
            len = len < text.len - at ? len : text.len - at;
            feed(parsing, text.data + at, len);
            at += len;
        }
        end(parsing);
        assert_int_equal(log.len, text.len + 2);
        assert_memory_equal(log.text + 2, text.data, text.len);
        for (size_t at = 0; at < text.len; at++) {
            assert_true(fm_grammar_take(grammar, (unsigned char)text.data[at]));
        }
        assert_true(fm_grammar_accepts(grammar));
        for (const char *c = "~\n\n"; *c; c++) {
            assert_true(fm_grammar_take(grammar, *c));
        }
    }
    fm_grammar_free(grammar);
    fm_buf_free(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls),
        cmocka_unit_test(texts),
        cmocka_unit_test(both_decide_alike),
        cmocka_unit_test(text_stays_text),
    };
    return cmocka_run_group_tests(tests, make_vocab, free_vocab);
}
