/*
 * GBNF to Lark: the text that comes out, and each error's place. That llguidance and llama.cpp agree about the texts of
 * such pairs was tried with both libraries.
 */
#include "engine/llama/gbnf.h"
#include "wire.h"
#ifdef WRAPPED
#include "allocations.h"
#endif

#define LARK_MAX (1u << 20)

static enum fm_code convert(const char *gbnf, struct fm_buf *lark, struct fm_error *error) {
    char *exact = exact_copy(gbnf, strlen(gbnf) + 1);
    fm_buf_init(lark, LARK_MAX);
    *error = (struct fm_error){0};
    enum fm_code code = fm_gbnf_to_lark(exact, lark, error);
    free(exact);
    return code;
}

static void assert_lark(const char *gbnf, const char *expected) {
    struct fm_buf lark;
    struct fm_error error;
    if (convert(gbnf, &lark, &error) != FM_OK) {
        fail_msg("%s\nrefused: %s", gbnf, error.detail);
    }
    assert_string_equal(lark.data, expected);
    assert_int_equal(lark.len, strlen(expected));
    fm_buf_free(&lark);
}

static void assert_refused(const char *gbnf, const char *detail) {
    struct fm_buf lark;
    struct fm_error error;
    if (convert(gbnf, &lark, &error) == FM_OK) {
        fail_msg("%.200s\naccepted: %.200s", gbnf, lark.data);
    }
    assert_int_equal(error.code, FM_INVALID_REQUEST);
    assert_string_equal(error.param, "format.definition");
    if (strncmp(error.detail, detail, strlen(detail)) != 0) {
        fail_msg("%.200s\nrefused: %s\nbut not: %s", gbnf, error.detail, detail);
    }
    fm_buf_free(&lark);
}

struct row {
    const char *gbnf;
    const char *result; /* the Lark text, or what the detail begins with */
};

/* Without recursion all is one terminal. */
static const struct row regular[] = {
    {"root ::= \"a\"", "start: ROOT\nROOT: \"a\"\n"},
    {"root::=\"a\"\"b\"", "start: ROOT\nROOT: \"a\" \"b\"\n"},
    /* literals and their escapes */
    {"root ::= \"\\n\\t\\r\\\\\\\"\\[\\]\\-\"", "start: ROOT\nROOT: \"\\n\\u0009\\u000d\\\\\\\"[]-\"\n"},
    {"root ::= \"\\x41\\x7F\\x85\\u65e5\\U0001F600\\x00\"",
     "start: ROOT\nROOT: \"A\\u007f\\u0085\\u65e5\\ud83d\\ude00\\u0000\"\n"},
    {"root ::= \"\xC3\xA9\xF0\x9F\x98\x80 # [a\n]\"", "start: ROOT\nROOT: \"\\u00e9\\ud83d\\ude00 # [a\\n]\"\n"},
    {"root ::= \"\"", "start: ROOT\nROOT: \"\"\n"},
    /* classes */
    {"root ::= [a-z]", "start: ROOT\nROOT: /[a-z]/\n"},
    {"root ::= [zc-da-b]", "start: ROOT\nROOT: /[a-dz]/\n"},
    {"root ::= [ab]", "start: ROOT\nROOT: /[ab]/\n"},
    {"root ::= [a-cb-d]", "start: ROOT\nROOT: /[a-d]/\n"},
    {"root ::= [^\"\\\\\\n]", "start: ROOT\nROOT: /[^\\n\"\\\\]/\n"},
    {"root ::= [-a]", "start: ROOT\nROOT: /[\\-a]/\n"},
    {"root ::= [a-]", "start: ROOT\nROOT: /[\\-a]/\n"},
    {"root ::= [a\\-z]", "start: ROOT\nROOT: /[\\-az]/\n"},
    {"root ::= [a-c-9]", "start: ROOT\nROOT: /[\\-9a-c]/\n"},
    {"root ::= [+--]", "start: ROOT\nROOT: /[+-\\-]/\n"},
    {"root ::= [\\[-\\]^/&~]", "start: ROOT\nROOT: /[\\&\\/\\[-\\^\\~]/\n"},
    {"root ::= [\\x00-\\x1F\\uD7FF\\uE000-\\U0010FFFF]",
     "start: ROOT\nROOT: /[\\u{0}-\\u{1f}\\u{d7ff}-\\u{10ffff}]/\n"},
    {"root ::= [\xE3\x81\x81-\xE3\x82\x9F]", "start: ROOT\nROOT: /[\\u{3041}-\\u{309f}]/\n"},
    {"root ::= .", "start: ROOT\nROOT: /./s\n"},
    /* repetitions */
    {"root ::= \"ab\"* [c]+ .? \"d\" * ", "start: ROOT\nROOT: \"ab\"* /[c]/+ /./s? \"d\"*\n"},
    {"root ::= \"a\"{2} \"b\"{2,} \"c\"{2,3} \"d\"{ 0 , 1 } \"e\"{1,} \"f\"{0,} \"g\"{1}",
     "start: ROOT\nROOT: \"a\"{2} \"b\"{2,} \"c\"{2,3} \"d\"? \"e\"+ \"f\"* \"g\"{1}\n"},
    {"root ::= \"a\"{0} \"b\" \"c\"{0,0}", "start: ROOT\nROOT: \"\" \"b\" \"\"\n"},
    {"root ::= \"a\"+?{2}", "start: ROOT\nROOT: ((\"a\"+)?){2}\n"},
    {"root ::= \"a\"{100000}", "start: ROOT\nROOT: \"a\"{100000}\n"},
    /* alternatives and groups */
    {"root ::= \"a\" | \"b\" \"c\" |", "start: ROOT\nROOT: \"a\" | \"b\" \"c\" | \"\"\n"},
    {"root ::= | \"a\"", "start: ROOT\nROOT: \"\" | \"a\"\n"},
    {"root ::= (\"a\" | \"b\")+ (\"c\" \"d\")? () ((\"e\"))",
     "start: ROOT\nROOT: (\"a\" | \"b\")+ (\"c\" \"d\")? \"\" \"e\"\n"},
    /* line ends, comments */
    {"# one\n\nroot ::= # two\n  \"a\" | # three\n\r\n \"b\" ( # four\n \"c\"\n | \"d\"\n )* # five\n# six",
     "start: ROOT\nROOT: \"a\" | \"b\" (\"c\" | \"d\")*\n"},
    {"a ::= \"x\"\r\nroot ::= a\rb ::= a\n", "start: ROOT\nROOT: A\nA: \"x\"\n"},
    /* names */
    {"root ::= start dataType data-type 1a -b- Dot r\nstart ::= \"1\"\ndataType ::= \"2\"\ndata-type ::= \"3\"\n"
     "1a ::= \"4\"\n-b- ::= \"5\"\nDot ::= \"6\"\nr ::= \"7\"",
     "start: ROOT\nROOT: START_ DATA_TYPE DATA-TYPE R_1A R_-B- _DOT R\nSTART_: \"1\"\nDATA_TYPE: \"2\"\n"
     "DATA-TYPE: \"3\"\nR_1A: \"4\"\nR_-B-: \"5\"\n_DOT: \"6\"\nR: \"7\"\n"},
    {"root ::= a a\na ::= b\nb ::= \"x\"", "start: ROOT\nROOT: A A\nA: B\nB: \"x\"\n"},
    /* what is not used is left out, even without an end */
    {"root ::= \"a\"\nb ::= \"x\" b", "start: ROOT\nROOT: \"a\"\n"},
};

/* With recursion: rules, and terminals where the next byte decides. */
static const struct row recursive[] = {
    {"root ::= \"(\" root \")\" | word\nword ::= [a-z]+",
     "start: root\nroot: \"(\" root \")\" | WORD\nWORD: /[a-z]/+\n"},
    {"root ::= \"[\" root \"]\" | \"true\" | \"null\"", "start: root\nroot: \"[\" root \"]\" | \"true\" | \"null\"\n"},
    {"root ::= \"[\" (root (\",\" root)*)? \"]\" | [0-9]+ \".\"? | start\nstart ::= Str\nStr ::= \"'\" [^']* \"'\"",
     "start: root\nroot: \"[\" (root (\",\" root)*)? \"]\" | ROOT__1 | START_\nROOT__1: /[0-9]/+ \".\"?\n"
     "START_: _STR\n_STR: \"'\" /[^']/* \"'\"\n"},
    {"root ::= \"x\" root | (\"a\" | [b-d])", "start: root\nroot: \"x\" root | ROOT__1\nROOT__1: \"a\" | /[b-d]/\n"},
    {"root ::= (\"x\" root){0} \"y\" | \"-\" root{2} | Sum+\nSum ::= root \"+\" | \"z\" \"\"",
     "line 1, column 1: expected a rule that does not begin with itself"},
    {"root ::= (\"x\" root){0} \"y\" | \"-\" root{2}", "start: root\nroot: \"\" \"y\" | \"-\" root{2}\n"},
    /* one terminal begins like another: single characters */
    {"root ::= \"(\" root \")\" | \"if\" | [a-z]+", "start: root\nroot: \"(\" root \")\" | (\"i\" \"f\") | /[a-z]/+\n"},
    {"root ::= \"<\" root \">\" | \"<=\"", "start: root\nroot: \"<\" root \">\" | (\"<\" \"=\")\n"},
    /* a literal that is split in one place is split in all */
    {"root ::= \"(\" root \")\" | \"ab\" | \"[\" root \"ab\" | \"ac\"",
     "start: root\nroot: \"(\" root \")\" | (\"a\" \"b\") | \"[\" root (\"a\" \"b\") | (\"a\" \"c\")\n"},
    {"root ::= \"(\" root \"ba\"* root{0} (\"\" \"ba\" \"c\" | \")\") | \"ba\"",
     "start: root\nroot: \"(\" root (\"b\" \"a\")* \"\" (\"\" (\"b\" \"a\") \"c\" | \")\") | (\"b\" \"a\")\n"},
    /* what stands behind a terminal could be more of it */
    {"root ::= [a-z]* \"x\" root | \".\"", "start: root\nroot: /[a-z]/* \"x\" root | \".\"\n"},
    {"root ::= [a-z]+ \"1\" root | \".\"", "start: root\nroot: ROOT__1 \"1\" root | \".\"\nROOT__1: /[a-z]/+\n"},
    {"root ::= \"(\" root \")\" ws | \"n\" ws\nws ::= \" \"*",
     "start: root\nroot: \"(\" root \")\" WS | ROOT__1\nWS: \" \"*\nROOT__1: \"n\" WS\n"},
    {"root ::= \"(\" root \")\" ws \" \" | \"n\"\nws ::= \" \"*",
     "start: root\nroot: \"(\" root \")\" ws \" \" | \"n\"\nws: \" \"*\n"},
    {"root ::= t \"a\" root | \".\"\nt ::= \"<\" \"a\"?", "start: root\nroot: t \"a\" root | \".\"\nt: \"<\" \"a\"?\n"},
    {"root ::= t \"b\" root | \".\"\nt ::= \"<\" (\"a\" \"b\"?)?",
     "start: root\nroot: t \"b\" root | \".\"\nt: \"<\" (\"a\" \"b\"?)?\n"},
    {"root ::= t \"b\" root | \".\"\nt ::= \"<\" ([a-c] | [b-d])",
     "start: root\nroot: T \"b\" root | \".\"\nT: \"<\" (/[a-c]/ | /[b-d]/)\n"},
    /* a byte does not tell how the terminal goes on */
    {"root ::= t \"a\" root | \".\"\nt ::= \"<\" [ab]* \"b\"",
     "start: root\nroot: t \"a\" root | \".\"\nt: \"<\" /[ab]/* \"b\"\n"},
    {"root ::= t \"b\" root | \".\"\nt ::= \"<\" (\"ab\"? \"a\")",
     "start: root\nroot: t \"b\" root | \".\"\nt: \"<\" (\"a\" \"b\")? \"a\"\n"},
    {"root ::= t \"b\" root | \".\"\nt ::= \"<\" (\"a\" | \"ab\")",
     "start: root\nroot: t \"b\" root | \".\"\nt: \"<\" (\"a\" | (\"a\" \"b\"))\n"},
    {"root ::= t \"b\" root | \".\"\nt ::= \"<\" (\"a\" | \"c\")",
     "start: root\nroot: T \"b\" root | \".\"\nT: \"<\" (\"a\" | \"c\")\n"},
    /* their characters differ, but not in the first byte */
    {"root ::= [\xE3\x81\x81-\xE3\x82\x9F]+ \"\xE3\x80\x81\" root | \".\"",
     "start: root\nroot: /[\\u{3041}-\\u{309f}]/+ \"\\u3001\" root | \".\"\n"},
    /* exactly four are complete: nothing follows that could be a fifth */
    {"root ::= \"\\\"\" ([^\"\\\\] | \"\\\\u\" [0-9a-f]{4})* \"\\\"\" | \"[\" root \"]\"",
     "start: root\nroot: ROOT__1 | \"[\" root \"]\"\n"
     "ROOT__1: \"\\\"\" (/[^\"\\\\]/ | \"\\\\u\" /[0-9a-f]/{4})* \"\\\"\"\n"},
    {"root ::= \"\\\"\" ([^\"\\\\] | \"\\\\u\" [0-9a-f]{3,4})* \"\\\"\" | \"[\" root \"]\"",
     "start: root\nroot: \"\\\"\" (/[^\"\\\\]/ | \"\\\\u\" /[0-9a-f]/{3,4})* \"\\\"\" | \"[\" root \"]\"\n"},
};

static const struct row refused[] = {
    {"", "line 1, column 1: expected a rule named root"},
    {"a ::= \"x\"\n# root\n", "line 3, column 1: expected a rule named root"},
    {"a ::= root", "line 1, column 7: expected the name of a rule"},
    {"root ::= a b\na ::= \"x\"", "line 1, column 12: expected the name of a rule"},
    {"root ::= \"x\"\na ::= b", "line 2, column 7: expected the name of a rule"},
    {"root ::= \"a\"\n\n  root ::= \"b\"", "line 3, column 3: expected a new name"},
    {"= \"a\"", "line 1, column 1: expected a rule's name"},
    {"a ::= \"x\"\r\n= \"b\"", "line 2, column 1: expected a rule's name"},
    {"a ::= \"x\"\r\r\n\n= \"b\"", "line 4, column 1: expected a rule's name"},
    {"root = \"a\"", "line 1, column 6: expected '::='"},
    {"root\n::= \"a\"", "line 1, column 5: expected '::='"},
    {"my_rule ::= \"a\"", "line 1, column 3: expected '::='"},
    {"root ::= \"a\"\n | \"b\"", "line 2, column 2: expected a rule's name"},
    {"root ::= \"a\" ; \"b\"", "line 1, column 14: expected an item, '|' or the line's end"},
    {"root ::= \"a\")", "line 1, column 13: expected an item, '|' or the line's end"},
    {"root ::=\na ::= \"x\"", "line 2, column 3: expected an item, '|' or the line's end"},
    /* literals and classes */
    {"root ::= \"a", "line 1, column 12: expected '\"' at the literal's end"},
    {"root ::= \"\\q\"", "line 1, column 11: expected one of the escapes"},
    {"root ::= \"\\", "line 1, column 11: expected one of the escapes"},
    {"root ::= \"\xC3\xA9\\x4\"", "line 1, column 15: expected a hexadecimal digit"},
    {"root ::= \"\\u12", "line 1, column 15: expected a hexadecimal digit"},
    {"root ::= \"\\uD83D\\uDE00\"", "line 1, column 11: expected a Unicode character"},
    {"root ::= \"\\U00110000\"", "line 1, column 11: expected a Unicode character"},
    {"root ::= [\\uDFFF]", "line 1, column 11: expected a Unicode character"},
    {"root ::= [a-\\UFFFFFFFF]", "line 1, column 13: expected a Unicode character"},
    {"root ::= [a", "line 1, column 12: expected ']' at the class's end"},
    {"root ::= [a-", "line 1, column 13: expected ']' at the class's end"},
    {"root ::= [xz-a]", "line 1, column 12: expected a range whose end does not come before its start"},
    {"root ::= []", "line 1, column 11: expected a character in the class"},
    {"root ::= [^]", "line 1, column 12: expected a character in the class"},
    {"root ::= [^\\x00-\\uD7FF\\uE000-\\U0010FFFF]", "line 1, column 10: expected a class that leaves a character"},
    {"root ::= \"\xFF\"", "line 1, column 11: expected UTF-8"},
    {"# \xC3", "line 1, column 3: expected UTF-8"},
    /* tokens */
    {"root ::= <think>", "line 1, column 10: expected text; tokens"},
    {"root ::= \"a\" <[1000]>", "line 1, column 14: expected text; tokens"},
    {"root ::= !<[1000]>", "line 1, column 10: expected text; tokens"},
    /* groups and repetitions */
    {"root ::= (\"a\" | \"b\"\n", "line 2, column 1: expected ')'"},
    {"root ::= (\"a\" = \"b\")", "line 1, column 15: expected ')'"},
    {"root ::= *", "line 1, column 10: expected an item before the repetition"},
    {"root ::= \"a\" | +", "line 1, column 16: expected an item before the repetition"},
    {"root ::= (?)", "line 1, column 11: expected an item before the repetition"},
    {"root ::= {2}", "line 1, column 10: expected an item before the repetition"},
    {"root ::= \"a\"{}", "line 1, column 14: expected a number"},
    {"root ::= \"a\"{,3}", "line 1, column 14: expected a number"},
    {"root ::= \"a\"{-1}", "line 1, column 14: expected a number"},
    {"root ::= \"a\"{2,x}", "line 1, column 16: expected '}'"},
    {"root ::= \"a\"{2", "line 1, column 15: expected '}'"},
    {"root ::= \"a\"{3,2}", "line 1, column 14: expected counts whose second is not below the first"},
    {"root ::= \"a\"{100001}", "line 1, column 14: expected a count of no more than 100,000"},
    {"root ::= \"a\"{1,99999999999999999999}", "line 1, column 16: expected a count of no more than 100,000"},
    /* rules that begin with themselves, at once or through others, or do not end */
    {"root ::= root \"a\" | \"b\"", "line 1, column 1: expected a rule that does not begin with itself"},
    {"root ::= \"(\" a \")\"\na ::= b \"x\" | \"y\"\nb ::= w a\nw ::= \" \"*",
     "line 2, column 1: expected a rule that does not begin with itself"},
    {"root ::= \"x\" root", "line 1, column 1: expected a rule that can end without itself"},
    {"root ::= \"x\" | a\na ::= \"y\" b\nb ::= \"z\" a",
     "line 2, column 1: expected a rule that can end without itself"},
};

static void regular_grammars(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(regular); i++) {
        assert_lark(regular[i].gbnf, regular[i].result);
    }
}

static void recursive_grammars(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(recursive); i++) {
        if (strncmp(recursive[i].result, "line", 4) == 0) {
            assert_refused(recursive[i].gbnf, recursive[i].result);
        } else {
            assert_lark(recursive[i].gbnf, recursive[i].result);
        }
    }
}

static void refusals(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(refused); i++) {
        assert_refused(refused[i].gbnf, refused[i].result);
    }
}

/* ---- limits ---- */

/* "root ::= ", `before` and `behind` `times` times each, around "x". */
static char *nested(const char *before, const char *behind, size_t times) {
    size_t size = times * (strlen(before) + strlen(behind)) + 32;
    char *text = malloc(size);
    assert_non_null(text);
    size_t len = (size_t)snprintf(text, size, "root ::= ");
    for (size_t i = 0; i < times; i++) {
        len += (size_t)snprintf(text + len, size - len, "%s", before);
    }
    len += (size_t)snprintf(text + len, size - len, "[x]");
    for (size_t i = 0; i < times; i++) {
        len += (size_t)snprintf(text + len, size - len, "%s", behind);
    }
    return text;
}

/* A chain of rules `first` to `last`, each in the one before. */
static char *chain(unsigned last) {
    size_t size = (size_t)last * 40 + 64;
    char *text = malloc(size);
    assert_non_null(text);
    size_t len = (size_t)snprintf(text, size, "root ::= r1\n");
    for (unsigned i = 1; i < last; i++) {
        len += (size_t)snprintf(text + len, size - len, "r%u ::= \"x\" r%u\n", i, i + 1);
    }
    snprintf(text + len, size - len, "r%u ::= \"y\"\n", last);
    return text;
}

/* `count` rules that root does not use. */
static char *many_rules(unsigned count) {
    size_t size = (size_t)count * 16 + 64;
    char *text = malloc(size);
    assert_non_null(text);
    size_t len = (size_t)snprintf(text, size, "root ::= \"a\"\n");
    for (unsigned i = 0; i < count; i++) {
        len += (size_t)snprintf(text + len, size - len, "r%u ::= \"y\"\n", i);
    }
    return text;
}

static char *long_name(size_t name_len) {
    char *text = malloc(2 * name_len + 32);
    assert_non_null(text);
    size_t len = (size_t)snprintf(text, 32, "root ::= ");
    memset(text + len, 'n', name_len);
    text[len + name_len] = '\n';
    memset(text + len + name_len + 1, 'n', name_len);
    memcpy(text + len + 2 * name_len + 1, "::=\"x\"", 7);
    return text;
}

static char *long_comment(size_t len) {
    char *text = malloc(len + 1);
    assert_non_null(text);
    memset(text, '#', len);
    memcpy(text, "root ::= \"a\" ", 13);
    text[len] = '\0';
    return text;
}

static void limits(void **state) {
    (void)state;
    struct {
        char *text;
        const char *detail; /* NULL: accepted */
    } rows[] = {
        {nested("(\"a\" ", ")", 32), NULL},
        {nested("(\"a\" ", ")", 33), "line 1, column 170: expected no more than 32 groups within each other"},
        {nested("", "+", 511), NULL},
        {nested("", "+", 512), "line 1, column 10: expected rules, groups and repetitions that nest no more than 512"},
        {chain(256), NULL},
        {chain(257), "line 257, column 10: expected rules, groups and repetitions that nest no more than 512"},
        {many_rules(999), NULL},
        {many_rules(1000), "line 1001, column 1: expected no more than 1,000 rules"},
        {long_name(128), NULL},
        {long_name(129), "line 1, column 10: expected a name of no more than 128 characters"},
        {long_comment(65536), NULL},
        {long_comment(65537), "line 1, column 65537: expected no more than 65,536 bytes"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fm_buf lark;
        struct fm_error error;
        if (rows[i].detail) {
            assert_refused(rows[i].text, rows[i].detail);
        } else if (convert(rows[i].text, &lark, &error) != FM_OK) {
            fail_msg("row %zu: %s", i, error.detail);
        } else {
            fm_buf_free(&lark);
        }
        free(rows[i].text);
    }
}

/* llguidance bears 29 groups within each other: what lies deeper is a definition of its own. */
static void deep_groups(void **state) {
    (void)state;
    static const char *const froms[] = {"(\"a\" ", "(\"a\" root | "};
    static const char *const parts[] = {"\nROOT__1: ", "\nroot__1: "};
    for (size_t i = 0; i < COUNT(froms); i++) {
        struct fm_buf lark;
        struct fm_error error;
        char *text = nested(froms[i], ")+", 32);
        assert_int_equal(convert(text, &lark, &error), FM_OK);
        unsigned depth = 0;
        unsigned deepest = 0;
        for (const char *at = lark.data; *at; at++) {
            depth = *at == '(' ? depth + 1 : *at == ')' ? depth - 1 : depth;
            deepest = depth > deepest ? depth : deepest;
        }
        assert_int_equal(deepest, 16);
        assert_non_null(strstr(lark.data, parts[i]));
        fm_buf_free(&lark);
        free(text);
    }
}

/* The text goes behind what is there, and no further than the buffer may grow. */
static void buffer(void **state) {
    (void)state;
    static const char gbnf[] = "root ::= \"a\"";
    static const char expected[] = "//\nstart: ROOT\nROOT: \"a\"\n";
    for (size_t max = 3; max <= sizeof expected; max++) {
        struct fm_buf lark;
        struct fm_error error = {0};
        fm_buf_init(&lark, max);
        fm_buf_append_str(&lark, "//\n");
        enum fm_code code = fm_gbnf_to_lark(gbnf, &lark, &error);
        if (max < sizeof expected) {
            assert_int_equal(code, FM_INVALID_REQUEST);
            assert_string_equal(error.detail, "line 1, column 13: expected a grammar whose Lark text is shorter");
        } else {
            assert_int_equal(code, FM_OK);
            assert_string_equal(lark.data, expected);
        }
        fm_buf_free(&lark);
    }
}

#ifdef WRAPPED

static void out_of_memory(void **state) {
    (void)state;
    unsigned failures = 0;
    for (bool done = false; !done;) {
        struct fm_buf lark;
        struct fm_error error = {0};
        fm_buf_init(&lark, LARK_MAX);
        allocations_left = (int)failures;
        enum fm_code code = fm_gbnf_to_lark("root ::= \"(\" root \")\" | \"a\"", &lark, &error);
        done = allocations_left >= 0;
        allocations_left = -1;
        assert_int_equal(code, done ? FM_OK : FM_INTERNAL);
        failures += !done;
        fm_buf_free(&lark);
    }
    assert_int_equal(failures, 8); /* the grammar's three, two relations, the lexemes, the queue, the buffer */
}

#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(regular_grammars), cmocka_unit_test(recursive_grammars), cmocka_unit_test(refusals),
        cmocka_unit_test(limits),           cmocka_unit_test(deep_groups),        cmocka_unit_test(buffer),
#ifdef WRAPPED
        cmocka_unit_test(out_of_memory),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
