/*
 * Arguments in another notation than JSON: what the grammar allows for a tool's schema, and the JSON that results,
 * however the text is split. The vocabulary is bytes and a control token.
 */
#include "byte_grammar.h"
#include "engine/guide/guide.h"

#include <json-c/json.h>

#define BEGIN "<call>"
#define END   "</call>"

#define MARK(literal)                                                                                                  \
    { .text = (literal), .len = sizeof(literal) - 1 }

/* Strings between control tokens, between marks that are text, and in Python's quotes. */
static const struct fm_tool_form forms[] = {
    {.trigger = MARK(BEGIN), .arguments = {.text = "{"}, .end = MARK(END),
     .notation = {'{', ':', QUOTE_TEXT, sizeof QUOTE_TEXT - 1, QUOTE, false, true}},
    {.trigger = MARK(BEGIN), .arguments = {.text = "{"}, .end = MARK(END),
     .notation = {'{', ':', QUOTE_TEXT, sizeof QUOTE_TEXT - 1, -1, false, true}},
    {.trigger = MARK(BEGIN), .arguments = {.text = "("}, .end = MARK(END), .notation = {'(', '=', NULL, 0, -1, true, false}},
};
enum { CONTROL, TEXT, PYTHON, FORMS };

static const struct fm_tool_form tagged[] = {
    {.trigger = MARK(BEGIN), .arguments = MARK(">"), .end = MARK(END),
     .tags = {.key = MARK("<p="), .raw = MARK(":"), .json = MARK(":"), .close = MARK("</p>"), .python = true}},
    {.trigger = MARK(BEGIN), .arguments = MARK(">"), .end = MARK(END),
     .tags = {.key = MARK("<p="), .raw = MARK(":"), .json = MARK(":"), .python = true,
              .close = {.text = QUOTE_TEXT, .len = sizeof QUOTE_TEXT - 1, .control_count = 1,
                        .controls = {{.len = sizeof QUOTE_TEXT - 1, .token = QUOTE}}}}},
};

static struct fm_tool tool = {.name = "f", .allowed = true};
static struct fm_kit_job job = {.tools = &tool, .tool_count = 1, .tool_mode = FM_TOOLS_REQUIRED};
static const struct fm_tool_form *form;

static void *start(struct transcript *log) {
    return start_parsing(log, &job, form);
}

static const struct subject subject = {start, feed, end};

/* Whether the tool's grammar takes `answer`, in which QUOTE_TEXT is a control token if the form has one. */
static bool takes(const char *answer) {
    struct fm_grammar *grammar = new_grammar(&job, form, NULL);
    bool taken = true;
    for (const char *c = answer; *c && taken; c++) {
        bool quote = form->notation.quote_token >= 0 && strncmp(c, QUOTE_TEXT, strlen(QUOTE_TEXT)) == 0;
        taken = fm_grammar_take(grammar, quote ? QUOTE : (unsigned char)*c);
        c += quote ? strlen(QUOTE_TEXT) - 1 : 0;
    }
    taken = taken && fm_grammar_accepts(grammar);
    fm_grammar_free(grammar);
    return taken;
}

/* Checks that the arguments `written` for `parameters` become `json`; NULL: the grammar does not take them. */
static void expect_as(int kind, const char *parameters, const char *written, const char *json) {
    char answer[1024];
    char expected[1024];
    form = &forms[kind];
    tool.parameters = parameters ? json_tokener_parse(parameters) : NULL;
    assert_int_equal(tool.parameters != NULL, parameters != NULL);
    assert_true(fm_notation_fits(&form->notation, tool.parameters));
    snprintf(answer, sizeof answer, BEGIN "f%s" END, written);
    if (takes(answer) != (json != NULL)) {
        fail_msg("%s in %s, form %d", written, parameters, kind);
    }
    if (json) {
        snprintf(expected, sizeof expected, "|C:f|A:%s", json);
        expect_in_any_split(&subject, answer, answer, strlen(answer), expected);
    }
    json_object_put(tool.parameters);
    tool.parameters = NULL;
}

/* Checks both notations that have marks. `written` has `~` in place of each mark. */
static void expect_marked(const char *parameters, const char *written, const char *json) {
    char text[1024];
    size_t len = 0;
    for (const char *c = written; *c; c++) {
        len += (size_t)snprintf(text + len, sizeof text - len, *c == '~' ? "%s" : "%.1s", *c == '~' ? QUOTE_TEXT : c);
    }
    expect_as(CONTROL, parameters, text, json);
    expect_as(TEXT, parameters, text, json);
}

#define OBJECT(properties) "{\"type\":\"object\",\"properties\":{" properties "}}"
#define STRING             "{\"type\":\"string\"}"
#define LAMP                                                                                                           \
    "{\"type\":\"object\",\"properties\":{\"on\":{\"type\":\"boolean\"},\"color\":" STRING ",\"Level\":"               \
    "{\"type\":\"integer\",\"minimum\":1}},\"required\":[\"color\"],\"additionalProperties\":false}"

static void between_marks(void **state) {
    (void)state;
    expect_marked(LAMP, "{color:~teal~}", "{\"color\":\"teal\"}");
    expect_marked(LAMP, "{color:~~,Level:3,on:true}", "{\"color\":\"\",\"Level\":3,\"on\":true}");
    expect_marked(LAMP, "{color:~a\"\n\\,'}<|\"|\xC3\xA9~,on:false}",
                  "{\"color\":\"a\\\"\\n\\\\,'}<|\\\"|\xC3\xA9\",\"on\":false}");
    expect_marked(LAMP, "{color:~<<|<|\"|~}", "{\"color\":\"<<|<|\\\"|\"}");
    static const char *const wrong[] = {
        "{}", "{on:true}", "{color:~a~,}", "{,color:~a~}", "{color:~a~,Level:0}", "{color:~a~,Level:1.5}", "{color:~a~,on:1}",
        "{color:a}", "{color:~a}", "{\"color\":~a~}", "{color:~a~,more:1}", "{color:~a~,color:~a~}", "{on:true,color:~a~}",
        "{color:~a~,on:True}",
    };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        expect_marked(LAMP, wrong[i], NULL);
    }
    expect_marked(NULL, "{}", "{}");
    expect_marked(NULL, "{a:~b~,c:[1,~d~,{e_2:null}],f:{}}", "{\"a\":\"b\",\"c\":[1,\"d\",{\"e_2\":null}],\"f\":{}}");
    expect_marked(OBJECT(""), "{}", "{}");
    expect_marked(OBJECT(""), "{a:1}", NULL);
}

static void as_python(void **state) {
    (void)state;
    expect_as(PYTHON, LAMP, "(on=True, color='teal', Level=3)", "{\"on\":true,\"color\":\"teal\",\"Level\":3}");
    expect_as(PYTHON, LAMP, "(on=false,color=\"teal\")", "{\"on\":false,\"color\":\"teal\"}");
    expect_as(PYTHON, LAMP, "(color='it\\'s \"\\n\n')", "{\"color\":\"it's \\\"\\n\\n\"}");
    expect_as(PYTHON, LAMP, "(color=\"it's \\\"\\\\\")", "{\"color\":\"it's \\\"\\\\\"}");
    static const char *const wrong[] = {
        "()", "(color=teal)", "(color='teal)", "(color='\\x41')", "(color='a',  on=True)", "(color='a', on=true)",
        "(on=None, color='a')", "{color='a'}", "(color:'a')",
    };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        expect_as(PYTHON, LAMP, wrong[i], NULL);
    }
    expect_as(PYTHON, NULL, "()", "{}");
    expect_as(PYTHON, NULL, "(a='b', c=[1, True, None, {'d': -1.5e+3, \"e\":{}}])",
              "{\"a\":\"b\",\"c\":[1,true,null,{\"d\":-1.5e+3,\"e\":{}}]}");
}

/* Each row has the schema of a tool's property "a". */
static const struct {
    const char *schema;
    const char *marked;
    const char *python;
    const char *json; /* NULL: the grammar does not take it */
} values[] = {
    {"{\"enum\":[\"a\",\"\",1,true,null]}", "~a~", "'a'", "\"a\""},
    {"{\"enum\":[\"a\",\"\",1,true,null]}", "~~", "\"\"", "\"\""},
    {"{\"enum\":[\"a\",\"\",1,true,null]}", "1", "1", "1"},
    {"{\"enum\":[\"a\",\"\",1,true,null]}", "true", "True", "true"},
    {"{\"enum\":[\"a\",\"\",1,true,null]}", "null", "None", "null"},
    {"{\"enum\":[\"a\",\"\",1,true,null]}", "~b~", "'b'", NULL},
    {"{\"enum\":[\"a'\\n\"],\"type\":\"string\"}", "~a'\n~", "\"a'\\n\"", "\"a'\\n\""},
    {"{\"const\":\"a\"}", "~a~", "'a'", "\"a\""},
    {"{\"const\":\"a\"}", "1", "1", NULL},
    {"{\"type\":[\"string\",\"null\"]}", "~null~", "'null'", "\"null\""},
    {"{\"type\":[\"string\",\"null\"]}", "null", "null", "null"},
    {"{\"type\":[\"string\",\"null\"]}", "1", "1", NULL},
    {"{\"anyOf\":[{\"type\":\"integer\"}," STRING "]}", "~1~", "'1'", "\"1\""},
    {"{\"anyOf\":[{\"type\":\"integer\"}," STRING "]}", "1", "1", "1"},
    {"{\"anyOf\":[{\"type\":\"integer\"}," STRING "]}", "true", "True", NULL},
    {"{\"oneOf\":[{\"type\":\"null\"},{\"const\":1}],\"x-y\":1}", "1", "1", "1"},
    {"{\"type\":\"array\",\"uniqueItems\":true}", "[1]", "[1]", "[1]"},
    {"{\"$ref\":\"#/$defs/x\"}", "[~a~]", "['a']", "[\"a\"]"},
    {"{\"allOf\":[{\"$ref\":\"#/$defs/x\"}],\"default\":[]}", "[]", "[]", "[]"},
    {"{\"$ref\":\"#/$defs/x\"}", "[1]", "[1]", NULL},
    {"{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"minItems\":2,\"maxItems\":3}", "[1,2,3]", "[1, 2, 3]",
     "[1,2,3]"},
    {"{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"minItems\":2}", "[1,2]", "[1, 2]", "[1,2]"},
    {"{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"minItems\":2}", "[1]", "[1]", NULL},
    {"{\"type\":\"array\",\"maxItems\":0}", "[]", "[]", "[]"},
    {"{\"type\":\"array\",\"maxItems\":1}", "[1,2]", "[1, 2]", NULL},
    {"{\"type\":\"array\"}", "[1,~a~,[]]", "[1, 'a', []]", "[1,\"a\",[]]"},
    {OBJECT("\"c\":" STRING ",\"b\":{\"type\":\"null\"}"), "{b:null,c:~d~}", NULL, "{\"b\":null,\"c\":\"d\"}"},
    {OBJECT("\"b\":{\"type\":\"null\"},\"c\":" STRING), "{c:~d~}", "{\"c\": 'd'}", "{\"c\":\"d\"}"},
    {OBJECT("\"b\":{\"type\":\"null\"},\"c\":" STRING), "{}", "{}", "{}"},
    {"{\"type\":\"object\",\"additionalProperties\":" STRING "}", "{x:~d~,y-1:~e~}", "{'x': 'd', \"y-1\":'e'}",
     "{\"x\":\"d\",\"y-1\":\"e\"}"},
    {"{\"type\":\"object\",\"additionalProperties\":" STRING "}", "{x:1}", "{'x': 1}", NULL},
    {"{\"type\":\"object\",\"additionalProperties\":false}", "{x:1}", "{'x': 1}", NULL},
    {"{\"type\":\"string\",\"minLength\":1,\"maxLength\":2}", "~\xC3\xA9\n~", "'\xC3\xA9\\n'", "\"\xC3\xA9\\n\""},
    {"{\"type\":\"string\",\"minLength\":1}", "~~", "''", NULL},
    {"{\"type\":\"string\",\"maxLength\":2}", "~abc~", "\"abc\"", NULL},
    {"{\"type\":\"string\",\"minLength\":1,\"maxLength\":100000}", "~a~", "'a'", "\"a\""},
    {"{\"type\":\"array\",\"minItems\":1,\"maxItems\":1000}", "[1,2]", "[1,2]", "[1,2]"},
    {"{\"type\":\"string\",\"format\":\"date\"}", "~2024-02-29~", "'2024-02-29'", "\"2024-02-29\""},
    {"{\"type\":\"string\",\"format\":\"date\"}", "~2023-02-29~", "'2023-02-29'", NULL},
    {"{\"type\":\"string\",\"format\":\"uri\",\"minLength\":1}", "~https://a.b/c?d#e~", "\"https://a.b/c?d#e\"",
     "\"https://a.b/c?d#e\""},
    {"{\"type\":\"string\",\"format\":\"uri\",\"maxLength\":3}", "~a:bc~", "\"a:bc\"", NULL},
    {"{\"type\":\"string\",\"format\":\"color\"}", "~a\"b~", NULL, "\"a\\\"b\""}, /* an unknown format */
    {"{\"type\":\"string\",\"pattern\":\"^a/[^b/|$]$\"}", "~a/c~", "'a/c'", "\"a/c\""},
    {"{\"type\":\"string\",\"pattern\":\"^a/[^b/|$]$\"}", "~a/cd~", "'a/cd'", NULL},
    {"{\"type\":\"string\",\"pattern\":\"^a/[^b/|$]$\"}", "~a/b~", "'a/b'", NULL},
    {"{\"type\":\"string\",\"pattern\":\"(a|b)\"}", "~xby~", "'xby'", "\"xby\""},
    {"{\"type\":\"string\",\"pattern\":\"(a|b)\"}", "~xcy~", "'xcy'", NULL},
    {"{\"type\":\"string\",\"pattern\":\"(a|b)\\\\$\"}", "~xb$y~", "'xb$y'", "\"xb$y\""},
    {"{}", "~a~", "'a'", "\"a\""},
    {"true", "[null]", "[None]", "[null]"},
};

static void schemas(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(values); i++) {
        char parameters[1024];
        char written[256];
        char json[256];
        snprintf(parameters, sizeof parameters,
                 "{\"type\":\"object\",\"properties\":{\"a\":%s},\"$defs\":{\"x\":{\"type\":\"array\",\"items\":" STRING "}}}",
                 values[i].schema);
        snprintf(json, sizeof json, "{\"a\":%s}", values[i].json ? values[i].json : "");
        snprintf(written, sizeof written, "{a:%s}", values[i].marked);
        expect_marked(parameters, written, values[i].json ? json : NULL);
        if (values[i].python) {
            snprintf(written, sizeof written, "(a=%s)", values[i].python);
            expect_as(PYTHON, parameters, written, values[i].json ? json : NULL);
        }
    }
}

/* Properties in tags. Only the text itself shows whether it is a string or null. */
#define OPTIONAL "{\"anyOf\":[" STRING ",{\"type\":\"null\"}],\"default\":null}"
#define COLOR    "{\"anyOf\":[{\"enum\":[\"nu\",\"b\"]},{\"const\":\"c\"},{\"type\":\"null\"}]}"
static const struct text {
    const char *schema;
    const char *written;
    const char *json; /* NULL: the grammar does not take it */
} texts[] = {
    {OPTIONAL, "null", "null"},
    {OPTIONAL, "None", "null"},
    {OPTIONAL, "", "\"\""},
    {OPTIONAL, "nu", "\"nu\""},
    {OPTIONAL, "nulls", "\"nulls\""},
    {OPTIONAL, "Nope", "\"Nope\""},
    {OPTIONAL, "null</", "\"null</\""},
    {OPTIONAL, "</\"", "\"</\\\"\""},
    {OPTIONAL, "a null", "\"a null\""},
    {"{\"type\":[\"string\",\"null\"]}", "None", "null"},
    {COLOR, "nu", "\"nu\""},
    {COLOR, "c", "\"c\""},
    {COLOR, "null", "null"},
    {COLOR, "None", "null"},
    {COLOR, "n", NULL},
    {"{\"type\":[\"string\",\"null\"],\"minLength\":1}", "a</p", "\"a</p\""},
    {"{\"type\":[\"string\",\"null\"],\"minLength\":1}", "null", "null"},
    {"{\"type\":[\"string\",\"null\"],\"minLength\":1}", "", NULL},
    {"{\"type\":[\"string\",\"null\"],\"maxLength\":2}", "None", "null"},
    {"{\"type\":[\"string\",\"null\"],\"maxLength\":2}", "Non", NULL},
    {"{\"type\":\"string\",\"format\":\"time\"}", "12:34:56Z", "\"12:34:56Z\""},
    {"{\"type\":\"string\",\"format\":\"time\"}", "12:34", NULL},
    {"{\"type\":\"string\",\"pattern\":\"^<.p>$\"}", "<ap>", "\"<ap>\""},
    {"{\"$ref\":\"#/$defs/color\"}", "teal", "\"teal\""},
    {"{\"$ref\":\"#/$defs/color\"}", "null", NULL},
    {"{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/color\"}}", "[\"teal\"]", "[\"teal\"]"},
    {"{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/color\"}}", "[\"pink\"]", NULL},
    {"{\"anyOf\":[{\"type\":\"integer\"},{\"enum\":[null,true]}]}", "None", "null"},
    {"{\"anyOf\":[{\"type\":\"integer\"},{\"enum\":[null,true]}]}", "True", "true"},
    {"{\"anyOf\":[{\"type\":\"integer\"},{\"enum\":[null,true]}]}", "12", "12"},
    {"{\"anyOf\":[{\"type\":\"integer\"},{\"enum\":[null,true]}]}", "False", NULL},
};

static void in_tags(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(texts) * COUNT(tagged); i++) {
        char parameters[1024];
        char answer[256];
        char expected[256];
        form = &tagged[i % COUNT(tagged)];
        const struct text *text = &texts[i / COUNT(tagged)];
        snprintf(parameters, sizeof parameters, "{\"properties\":{\"a\":%s},\"$defs\":{\"color\":{\"enum\":[\"teal\"]}}}",
                 text->schema);
        tool.parameters = json_tokener_parse(parameters);
        assert_true(fm_tool_tags_fit(&form->tags, &tool));
        snprintf(answer, sizeof answer, BEGIN "f><p=a:%s%s" END, text->written, form->tags.close.text);
        if (takes(answer) != (text->json != NULL)) {
            fail_msg("%s of %s", text->written, text->schema);
        }
        if (text->json) {
            snprintf(expected, sizeof expected, "|C:f|A:{\"a\":%s}", text->json);
            expect_in_any_split(&subject, answer, answer, strlen(answer), expected);
        }
        json_object_put(tool.parameters);
        tool.parameters = NULL;
    }
}

/* ---- at random ---- */

#ifdef FM_SANITIZE
#define WALKS 1 /* with sanitizers, llguidance's allocations are slow, and no sanitizer watches llguidance itself */
#else
#define WALKS 3 /* random answers for each schema in each form */
#endif
#define LONG_ENOUGH 60  /* tokens; a longer answer is led to its end */
#define TOO_LONG    600 /* tokens; longer answers are given up */

static uint32_t random_below(uint32_t *seed, uint32_t below) {
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % below;
}

/* A random token that the grammar allows. In a long answer, a token that ends something, if one is allowed. */
static int32_t any_token(struct fm_grammar *grammar, const char *written, size_t len, uint32_t *seed) {
    static const char ends[] = "}])'\"/pcal>";
    int32_t allowed[QUOTE + 1];
    uint32_t count = 0;
    size_t mark = strlen(QUOTE_TEXT) - 1;
    while (mark > 0 && (mark > len || memcmp(written + len - mark, QUOTE_TEXT, mark) != 0)) {
        mark--;
    }
    if (len > LONG_ENOUGH && fm_grammar_allows(grammar, QUOTE)) {
        return QUOTE;
    }
    if (len > LONG_ENOUGH && mark > 0 && fm_grammar_allows(grammar, QUOTE_TEXT[mark])) {
        return QUOTE_TEXT[mark];
    }
    for (size_t i = 0; len > LONG_ENOUGH && ends[i]; i++) {
        if (random_below(seed, 3) > 0 && fm_grammar_allows(grammar, ends[i])) {
            return ends[i];
        }
    }
    for (int32_t token = 1; token <= QUOTE; token++) {
        if (token != BYTE_COUNT && fm_grammar_allows(grammar, token)) {
            allowed[count++] = token;
        }
    }
    assert_true(count > 0);
    return allowed[random_below(seed, count)];
}

/* Writes an answer that the grammar takes; false: it would be too long. */
static bool write_any(struct fm_buf *answer, uint32_t *seed) {
    struct fm_grammar *grammar = new_grammar(&job, form, NULL);
    size_t count = 0;
    fm_buf_reset(answer);
    while (!fm_grammar_accepts(grammar) && ++count < TOO_LONG) {
        int32_t token = any_token(grammar, answer->data ? answer->data : "", answer->len, seed);
        assert_true(fm_grammar_take(grammar, token));
        if (token == QUOTE) {
            fm_buf_append_str(answer, QUOTE_TEXT);
        } else {
            fm_buf_append_char(answer, (char)token);
        }
    }
    fm_grammar_free(grammar);
    return count < TOO_LONG;
}

/* Checks that the arguments in `answer` fit the tool's schema, which the grammar enforces completely. */
static void expect_valid(const struct fm_buf *answer) {
    struct fm_tool_parser parser;
    struct fm_tool_piece part;
    struct fm_buf arguments;
    struct fm_buf reason;
    const char *bytes = answer->data;
    size_t len = answer->len;
    fm_buf_init(&arguments, LARK_MAX);
    fm_buf_init(&reason, LARK_MAX);
    fm_tool_parser_init(&parser, &job, form);
    while (fm_tool_parser_read(&parser, &bytes, &len, &part)) {
        assert_true(part.kind == FM_TOOL_CALL || part.kind == FM_TOOL_PART_OF_ARGUMENTS);
        if (part.kind == FM_TOOL_PART_OF_ARGUMENTS) {
            fm_buf_append(&arguments, part.bytes, part.len);
        }
    }
    bool checked = fm_guide_check_text(tool.parameters, arguments.data, arguments.len, &reason);
    if (!checked || reason.len > 0) {
        fm_buf_append_char(&reason, '\0');
        fail_msg("%.*s: %.*s: %s", (int)answer->len, answer->data, (int)arguments.len, arguments.data, reason.data);
    }
    fm_tool_parser_free(&parser);
    fm_buf_free(&arguments);
    fm_buf_free(&reason);
}

static void any_answers(void **state) {
    (void)state;
    const struct fm_tool_form *const all[] = {&forms[CONTROL], &forms[TEXT], &forms[PYTHON], &tagged[0], &tagged[1]};
    struct fm_buf answer;
    uint32_t seed = 1;
    size_t whole = 0;
    fm_buf_init(&answer, LARK_MAX);
    for (size_t i = 0; i < COUNT(values) * COUNT(all); i++) {
        char parameters[1024];
        snprintf(parameters, sizeof parameters,
                 "{\"type\":\"object\",\"properties\":{\"a\":%s,\"b\":{\"type\":\"boolean\"}},\"required\":[\"a\"],"
                 "\"additionalProperties\":false,\"$defs\":{\"x\":{\"type\":\"array\",\"items\":" STRING "}}}",
                 values[i / COUNT(all)].schema);
        form = all[i % COUNT(all)];
        tool.parameters = json_tokener_parse(parameters);
        bool held = !strstr(parameters, "uniqueItems") && (form->notation.open || fm_tool_tags_fit(&form->tags, &tool));
        for (int k = 0; k < WALKS && held; k++) {
            if (write_any(&answer, &seed)) {
                expect_valid(&answer);
                whole++;
            }
        }
        json_object_put(tool.parameters);
        tool.parameters = NULL;
    }
    fm_buf_free(&answer);
    printf("%zu answers\n", whole);
    assert_true(whole > COUNT(values) * COUNT(all) * WALKS / 3);
}

/* Tools whose arguments this notation can't express, so that they must be called in our own form. */
static void what_does_not_fit(void **state) {
    (void)state;
    static const char *const rows[] = {
        "{\"type\":\"string\"}",
        "{\"anyOf\":[{\"type\":\"object\"}]}",
        OBJECT("\"a b\":" STRING),
        OBJECT("\"\":" STRING),
        OBJECT("\"a\":false"),
        OBJECT("\"a\":{\"type\":\"string\",\"pattern\":\"^a|b\"}"),
        OBJECT("\"a\":{\"type\":\"string\",\"pattern\":\"(^a)\"}"),
        OBJECT("\"a\":{\"type\":\"string\",\"pattern\":\"(a$)b\"}"),
        OBJECT("\"a\":{\"type\":\"string\",\"pattern\":1}"),
        OBJECT("\"a\":{\"type\":\"string\",\"format\":1}"),
        OBJECT("\"a\":{\"type\":\"string\",\"maxLength\":100001}"),
        OBJECT("\"a\":{\"type\":\"text\"}"),
        OBJECT("\"a\":{\"type\":[]}"),
        OBJECT("\"a\":{\"type\":\"number\",\"minimum\":1,\"exclusiveMinimum\":true}"),
        OBJECT("\"a\":{\"enum\":[[1]]}"),
        OBJECT("\"a\":{\"enum\":[1],\"type\":\"string\"}"),
        OBJECT("\"a\":{\"enum\":[\"a\"],\"maxLength\":1}"),
        OBJECT("\"a\":{\"enum\":[]}"),
        OBJECT("\"a\":{\"enum\":[1],\"const\":1}"),
        OBJECT("\"a\":{\"oneOf\":[{}],\"anyOf\":[{}]}"),
        OBJECT("\"a\":{\"minProperties\":1}"),
        OBJECT("\"a\":{\"patternProperties\":{}}"),
        OBJECT("\"a\":{\"prefixItems\":[]}"),
        OBJECT("\"a\":{\"$id\":\"b\"}"),
        OBJECT("\"a\":{\"anyOf\":[" STRING "],\"type\":\"string\"}"),
        OBJECT("\"a\":{\"allOf\":[" STRING "," STRING "]}"),
        OBJECT("\"a\":{\"type\":\"array\",\"items\":[" STRING "]}"),
        OBJECT("\"a\":{\"$ref\":\"#/$defs/none\"}"),
        OBJECT("\"a\":{\"$ref\":\"#\"}"),
        "{\"properties\":{},\"required\":[\"a\"]}",
        "{\"properties\":{\"a\":{\"$ref\":\"#/$defs/b\"}},\"$defs\":{\"b\":{\"$ref\":\"#/$defs/b\"}}}",
        "{\"properties\":{\"a\":{\"$ref\":\"#/$defs/b\"}},\"$defs\":{\"b\":{\"items\":{\"$ref\":\"#/$defs/b\"}}}}",
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct json_object *parameters = json_tokener_parse(rows[i]);
        assert_non_null(parameters);
        for (int kind = 0; kind < FORMS; kind++) {
            if (fm_notation_fits(&forms[kind].notation, parameters)) {
                fail_msg("%s, form %d", rows[i], kind);
            }
        }
        json_object_put(parameters);
    }
    struct json_object *mark = json_tokener_parse(OBJECT("\"a\":{\"enum\":[\"<|\\\"|>\"]}"));
    assert_false(fm_notation_fits(&forms[TEXT].notation, mark));
    assert_true(fm_notation_fits(&forms[PYTHON].notation, mark));
    json_object_put(mark);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(between_marks),
        cmocka_unit_test(as_python),
        cmocka_unit_test(schemas),
        cmocka_unit_test(in_tags),
        cmocka_unit_test(any_answers),
        cmocka_unit_test(what_does_not_fit),
    };
    return cmocka_run_group_tests(tests, make_vocab, free_vocab);
}
