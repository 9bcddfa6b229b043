/*
 * The strict check of a body. json-c must be able to parse every text that the check accepts; a refusal must name the
 * right byte.
 */
#include "protocol/json_check.h"
#include "wire.h"

#include <json-c/json.h>

static const char *check(const char *text, size_t len, size_t *offset) {
    char *copy = exact_copy(text, len);
    const char *fault = fm_json_check(copy, len, FM_JSON_VALUES_MAX, offset);
    free(copy);
    return fault;
}

/* Returns whether json-c can read the whole text, with the same maximum depth. */
static bool json_c_parses(const char *text, size_t len) {
    struct json_tokener *tokener = json_tokener_new_ex(FM_JSON_DEPTH_MAX + 1);
    struct json_object *root = json_tokener_parse_ex(tokener, text, (int)len);
    if (json_tokener_get_error(tokener) == json_tokener_continue) {
        root = json_tokener_parse_ex(tokener, "", -1);
    }
    bool ok = json_tokener_get_error(tokener) == json_tokener_success;
    json_object_put(root);
    json_tokener_free(tokener);
    return ok;
}

static void accept(const char *name, const char *text, size_t len) {
    size_t offset = 0;
    const char *fault = check(text, len, &offset);
    if (fault) {
        fail_msg("%s: refused, %s, at byte %zu", name, fault, offset);
    }
    assert_int_equal(offset, len);
    if (!json_c_parses(text, len)) {
        fail_msg("%s: json-c refuses it", name);
    }
}

struct text {
    const char *text;
    size_t len;
};

static const struct text accepted[] = {
    /* only scalars */
    {BYTES("null")},
    {BYTES("true")},
    {BYTES("false")},
    {BYTES("0")},
    {BYTES("\"\"")},
    {BYTES("\"a\"")},
    /* white space */
    {BYTES(" \t\r\n{ \t\r\n\"a\" \t\r\n: \t\r\n1 \t\r\n, \"b\" : [ ] \t\r\n} \t\r\n")},
    {BYTES(" 1 ")},
    {BYTES("[\n]")},
    /* numbers */
    {BYTES("-0")},
    {BYTES("-1")},
    {BYTES("10")},
    {BYTES("1234567890")},
    {BYTES("0.5")},
    {BYTES("-0.0")},
    {BYTES("1.0")},
    {BYTES("1e1")},
    {BYTES("1E1")},
    {BYTES("1e+1")},
    {BYTES("1e-1")},
    {BYTES("0e0")},
    {BYTES("0E+00")},
    {BYTES("1.5e10")},
    {BYTES("-1.5E-10")},
    {BYTES("1e01")},
    {BYTES("1.7976931348623157e308")},
    {BYTES("5e-324")},
    {BYTES("1e-400")},
    {BYTES("1.7976931348623158e308")}, /* this is rounded down to the largest double */
    {BYTES("-0.17976931348623158E+309")},
    {BYTES("17976931348623158e292")},
    {BYTES("0e99999999999999999999")},
    {BYTES("0.000e99999999999999999999")},
    {BYTES("1e-99999999999999999999")},
    {BYTES("0.0000000001e318")},
    {BYTES("1e00000000000000000000000000308")},
    {BYTES("-1e-99999")},
    {BYTES("9223372036854775808")},
    {BYTES("-9223372036854775809")},
    {BYTES("123456789012345678901234567890")},
    {BYTES("0.10000000000000000000000000000000000001")},
    {BYTES("[-0,0.1,1e2]")},
    /* strings */
    {BYTES("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"")},
    {BYTES("\"\\u0000\"")},
    {BYTES("\"\\u0041\\u00e9\\u20AC\\uFFFF\"")},
    {BYTES("\"\\uD83D\\uDE00\"")},
    {BYTES("\"\\ud800\\udc00\"")},
    {BYTES("\"\\uDBFF\\uDFFF\"")},
    {BYTES("\"\\uD7FF\\uE000\"")},
    {BYTES("\"\x7F\"")},
    {BYTES("\"\x20\"")},
    {BYTES("\"/'`\"")},
    {BYTES("\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\"")},
    {BYTES("\"\xEF\xBB\xBF\"")},
    {BYTES("\"\xEF\xBF\xBF\"")},
    {BYTES("\"\xF4\x8F\xBF\xBF\"")},
    {BYTES("\"\xC2\x80\"")},
    {BYTES("\"\xE2\x80\xA8\xE2\x80\xA9\"")},
    {BYTES("\"Content-Length: 5\\r\\n\\r\\n\"")},
    {BYTES("\"[{,:}]\"")},
    {BYTES("\"\\\\u0000\"")},
    /* arrays and objects */
    {BYTES("[]")},
    {BYTES("{}")},
    {BYTES("[[]]")},
    {BYTES("[{}]")},
    {BYTES("{\"a\":{}}")},
    {BYTES("[1,2]")},
    {BYTES("[[],[[],{}],{\"a\":[]}]")},
    {BYTES("{\"a\":1,\"b\":[2,{\"c\":null}],\"d\":{}}")},
    {BYTES("[{\"a\":1},[2,3]]")},
    {BYTES("[[1],{\"a\":1,\"b\":2}]")},
    {BYTES("{\"a\":{\"b\":1},\"c\":[1,2],\"d\":{\"e\":1}}")},
    {BYTES("{\"\":0}")},
    {BYTES("{\"a\":1,\"a\":2}")},
    {BYTES("{\"\\u0001\":0}")},
    {BYTES("{\"\xC3\xA9\":0}")},
    {BYTES("{\"a\":\"\\u0000\"}")},
    {BYTES("{\"a\":[\"\\u0000\"]}")},
    {BYTES("[{\"a\":1},\"\\u0000\"]")},
    {BYTES("{\"__proto__\":{}}")},
    {BYTES("[null,true,false]")},
};

static void must_accept(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(accepted); i++) {
        accept(accepted[i].text, accepted[i].text, accepted[i].len);
    }
}

/* The text, its length, the byte of the fault, and a part of the message. */
struct refused {
    const char *text;
    size_t len;
    size_t offset;
    const char *fault;
};

static void refuse_rows(const struct refused *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        size_t offset = 0;
        const char *fault = check(rows[i].text, rows[i].len, &offset);
        if (!fault) {
            fail_msg("row %zu, %s: accepted", i, rows[i].text);
        }
        if (!strstr(fault, rows[i].fault) || offset != rows[i].offset) {
            fail_msg("row %zu, %s: expected \"%s\" at %zu, got \"%s\" at %zu", i, rows[i].text, rows[i].fault,
                     rows[i].offset, fault, offset);
        }
    }
}

#define VALUE   "a value is missing"
#define WORD    "a word that JSON does not have"
#define CLOSE   "a comma or a closing bracket is missing"
#define FOLLOWS "something follows the value"
#define KEY     "a key is missing"
#define COLON   "a colon is missing"
#define UTF     "bytes that are not UTF-8"
#define END     "a string without an end"
#define ESCAPE  "an escape that JSON does not have"
#define HEX     "a \\u escape without four hex digits"
#define LONE    "a lone surrogate"
#define RANGE   "a number beyond a double's range"

static const struct refused structure_rows[] = {
    {BYTES(""), 0, VALUE},
    {BYTES(" \n\t\r"), 4, VALUE},
    {BYTES("\v1"), 0, VALUE},
    {BYTES("\f1"), 0, VALUE},
    {BYTES("\xC2\xA0"
           "1"),
     0, VALUE},
    {BYTES("["), 1, VALUE},
    {BYTES("{"), 1, KEY},
    {BYTES("]"), 0, VALUE},
    {BYTES("}"), 0, VALUE},
    {BYTES(","), 0, VALUE},
    {BYTES("[1"), 2, CLOSE},
    {BYTES("[1,"), 3, VALUE},
    {BYTES("[1,]"), 3, VALUE},
    {BYTES("[,1]"), 1, VALUE},
    {BYTES("[1,,2]"), 3, VALUE},
    {BYTES("[1 2]"), 3, CLOSE},
    {BYTES("[1}"), 2, CLOSE},
    {BYTES("[}"), 1, VALUE},
    {BYTES("{]"), 1, KEY},
    {BYTES("[[]"), 3, CLOSE},
    {BYTES("[]]"), 2, FOLLOWS},
    {BYTES("{}}"), 2, FOLLOWS},
    {BYTES("[:]"), 1, VALUE},
    {BYTES("[\"a\":1]"), 4, CLOSE},
    {BYTES("{\"a\"}"), 4, COLON},
    {BYTES("{\"a\":}"), 5, VALUE},
    {BYTES("{\"a\":1"), 6, CLOSE},
    {BYTES("{\"a\":1]"), 6, CLOSE},
    {BYTES("{\"a\":1,}"), 7, KEY},
    {BYTES("{,}"), 1, KEY},
    {BYTES("{\"a\":1,,\"b\":2}"), 7, KEY},
    {BYTES("{\"a\" 1}"), 5, COLON},
    {BYTES("{\"a\",1}"), 4, COLON},
    {BYTES("{\"a\"::1}"), 5, VALUE},
    {BYTES("{\"a\":1 \"b\":2}"), 7, CLOSE},
    {BYTES("{\"a\":1:2}"), 6, CLOSE},
    {BYTES("{a:1}"), 1, KEY},
    {BYTES("{1:1}"), 1, KEY},
    {BYTES("{null:1}"), 1, KEY},
    {BYTES("{[]:1}"), 1, KEY},
    {BYTES("{'a':1}"), 1, KEY},
    {BYTES("'a'"), 0, VALUE},
    {BYTES("['a']"), 1, VALUE},
    /* text after the value */
    {BYTES("1 2"), 2, FOLLOWS},
    {BYTES("{}{}"), 2, FOLLOWS},
    {BYTES("{} {}"), 3, FOLLOWS},
    {BYTES("{}\n[]"), 3, FOLLOWS},
    {BYTES("{}x"), 2, FOLLOWS},
    {BYTES("{},"), 2, FOLLOWS},
    {BYTES("{}\0"), 2, FOLLOWS},
    {BYTES("1\0"), 1, FOLLOWS},
    {BYTES("\"a\"\0"), 3, FOLLOWS},
    {BYTES("{}\xEF\xBB\xBF"), 2, FOLLOWS},
    {BYTES("\"a\"b"), 3, FOLLOWS},
    {BYTES("{\"a\":1}#"), 7, FOLLOWS},
    {BYTES("null,"), 4, FOLLOWS},
    /* comments */
    {BYTES("/**/1"), 0, VALUE},
    {BYTES("//x\n1"), 0, VALUE},
    {BYTES("#x\n1"), 0, VALUE},
    {BYTES("[1/**/]"), 2, CLOSE},
    {BYTES("{/**/\"a\":1}"), 1, KEY},
    {BYTES("{\"a\"/**/:1}"), 4, COLON},
    {BYTES("1//x"), 1, FOLLOWS},
    /* misspelt words */
    {BYTES("nul"), 0, WORD},
    {BYTES("nulL"), 0, WORD},
    {BYTES("Null"), 0, VALUE},
    {BYTES("True"), 0, VALUE},
    {BYTES("TRUE"), 0, VALUE},
    {BYTES("tru"), 0, WORD},
    {BYTES("truth"), 0, WORD},
    {BYTES("truee"), 4, FOLLOWS},
    {BYTES("falsy"), 0, WORD},
    {BYTES("[nul]"), 1, WORD},
    {BYTES("undefined"), 0, VALUE},
    {BYTES("NaN"), 0, VALUE},
    {BYTES("nan"), 0, WORD},
    {BYTES("Infinity"), 0, VALUE},
    {BYTES("-Infinity"), 1, "a number without digits"},
    {BYTES("-NaN"), 1, "a number without digits"},
    {BYTES("[NaN]"), 1, VALUE},
    {BYTES("{\"a\":Infinity}"), 5, VALUE},
    /* byte order marks and other encodings */
    {BYTES("\xEF\xBB\xBF{}"), 0, VALUE},
    {BYTES("\xEF\xBB\xBF"), 0, VALUE},
    {BYTES("\xFF\xFE{\0}\0"), 0, VALUE},
    {BYTES("{\0}\0"), 1, KEY},
    {BYTES("\0{}"), 0, VALUE},
    {BYTES("[\0]"), 1, VALUE},
    {BYTES("[1\0]"), 2, CLOSE},
    {BYTES("[\xE9]"), 1, VALUE},
};

static void structure_refused(void **state) {
    (void)state;
    refuse_rows(structure_rows, COUNT(structure_rows));
}

static void numbers_refused(void **state) {
    (void)state;
#define DIGITS "a number without digits"
    static const struct refused rows[] = {
        {BYTES("-"), 1, DIGITS},
        {BYTES("--1"), 1, DIGITS},
        {BYTES("-a"), 1, DIGITS},
        {BYTES("- 1"), 1, DIGITS},
        {BYTES("+1"), 0, VALUE},
        {BYTES(".5"), 0, VALUE},
        {BYTES("-.5"), 1, DIGITS},
        {BYTES("5."), 2, "after its point"},
        {BYTES("[5.]"), 3, "after its point"},
        {BYTES("5.e1"), 2, "after its point"},
        {BYTES("5.-1"), 2, "after its point"},
        {BYTES("01"), 1, FOLLOWS},
        {BYTES("-01"), 2, FOLLOWS},
        {BYTES("00"), 1, FOLLOWS},
        {BYTES("[01]"), 2, CLOSE},
        {BYTES("1e"), 2, "in its exponent"},
        {BYTES("1e+"), 3, "in its exponent"},
        {BYTES("1E-"), 3, "in its exponent"},
        {BYTES("1ee1"), 2, "in its exponent"},
        {BYTES("1e+-1"), 3, "in its exponent"},
        {BYTES("1e1.5"), 3, FOLLOWS},
        {BYTES("1e1e1"), 3, FOLLOWS},
        {BYTES("1.2.3"), 3, FOLLOWS},
        {BYTES("0x10"), 1, FOLLOWS},
        {BYTES("0b1"), 1, FOLLOWS},
        {BYTES("1_000"), 1, FOLLOWS},
        {BYTES("1,000"), 1, FOLLOWS},
        {BYTES("1a"), 1, FOLLOWS},
        {BYTES("1-2"), 1, FOLLOWS},
        {BYTES("-1x"), 2, FOLLOWS},
        {BYTES("\xEF\xBC\x91"), 0, VALUE}, /* a full-width 1 */
        {BYTES("1e400"), 5, RANGE},
        {BYTES("-1e400"), 6, RANGE},
        {BYTES("1e309"), 5, RANGE},
        {BYTES("1.8e308"), 7, RANGE},
        {BYTES("1.7976931348623159e308"), 22, RANGE},
        {BYTES("-0.17976931348623159e+309"), 25, RANGE},
        {BYTES("0.00000000018e318"), 17, RANGE},
        {BYTES("1800000000e299"), 14, RANGE},
        {BYTES("[1e99999999999999999999]"), 23, RANGE},
        {BYTES("{\"a\":1e400}"), 10, RANGE},
    };
    refuse_rows(rows, COUNT(rows));
}

#define CONTROL "a control character in a string"
static const struct refused strings_rows[] = {
    {BYTES("\""), 1, END},
    {BYTES("\"a"), 2, END},
    {BYTES("[\"a]"), 4, END},
    {BYTES("\"a\\\""), 4, END},
    {BYTES("{\"a"), 3, END},
    {BYTES("\"\n\""), 1, CONTROL},
    {BYTES("\"\t\""), 1, CONTROL},
    {BYTES("\"\r\n\""), 1, CONTROL},
    {BYTES("\"a\x1F\""), 2, CONTROL},
    {BYTES("\"\0\""), 1, CONTROL},
    {BYTES("{\"a\0b\":1}"), 3, CONTROL},
    /* escapes */
    {BYTES("\"\\"), 2, ESCAPE},
    {BYTES("\"\\x41\""), 2, ESCAPE},
    {BYTES("\"\\a\""), 2, ESCAPE},
    {BYTES("\"\\'\""), 2, ESCAPE},
    {BYTES("\"\\0\""), 2, ESCAPE},
    {BYTES("\"\\v\""), 2, ESCAPE},
    {BYTES("\"\\N\""), 2, ESCAPE},
    {BYTES("\"\\U0041\""), 2, ESCAPE},
    {BYTES("\"\\\n\""), 2, ESCAPE},
    {BYTES("\"\\\0\""), 2, ESCAPE},
    {BYTES("\"\\\xC3\xA9\""), 2, ESCAPE},
    {BYTES("\"\\u\""), 3, HEX},
    {BYTES("\"\\u"), 3, HEX},
    {BYTES("\"\\u004"), 6, HEX},
    {BYTES("\"\\u004\""), 6, HEX},
    {BYTES("\"\\u00G1\""), 5, HEX},
    {BYTES("\"\\u 041\""), 3, HEX},
    {BYTES("\"\\u+041\""), 3, HEX},
    {BYTES("\"\\u0x41\""), 4, HEX},
    {BYTES("\"\\u@041\""), 3, HEX},
    {BYTES("\"\\u`041\""), 3, HEX},
    {BYTES("\"\\u:041\""), 3, HEX},
    {BYTES("\"\\u/041\""), 3, HEX},
    {BYTES("\"\\u{41}\""), 3, HEX},
    /* escaped surrogates */
    {BYTES("\"\\uD800\""), 7, LONE},
    {BYTES("\"\\uDBFFa\""), 7, LONE},
    {BYTES("\"\\uD800\\n\""), 7, LONE},
    {BYTES("\"\\uD800\\"), 7, LONE},
    {BYTES("\"\\uDC00\""), 7, LONE},
    {BYTES("\"\\uDFFF\\uD800\""), 7, LONE},
    {BYTES("\"\\uD800\\uD800\""), 13, LONE},
    {BYTES("\"\\uD800\\u0041\""), 13, LONE},
    {BYTES("\"\\uD800\\uE000\""), 13, LONE},
    {BYTES("\"\\uD800\\uDBFF\""), 13, LONE},
    {BYTES("\"\\uD800\\uDC0\""), 12, HEX},
    {BYTES("\"\\uD800\\u\""), 9, HEX},
    {BYTES("\"\\uD83D\\uDE00\\uDE00\""), 19, LONE},
    {BYTES("{\"\\uD800\":1}"), 8, LONE},
    /* a NUL in a key */
    {BYTES("{\"\\u0000\":1}"), 8, "a NUL in a key"},
    {BYTES("{\"a\\u0000b\":1}"), 9, "a NUL in a key"},
    {BYTES("{\"a\":1,\"\\u0000\":1}"), 14, "a NUL in a key"},
    {BYTES("[{\"a\":{\"\\u0000\":1}}]"), 14, "a NUL in a key"},
    /* bytes */
    {BYTES("\"\x80\""), 1, UTF},
    {BYTES("\"\xBF\""), 1, UTF},
    {BYTES("\"a\xC0\x80\""), 2, UTF}, /* overlong NUL */
    {BYTES("\"\xC0\xAF\""), 1, UTF},  /* overlong slash */
    {BYTES("\"\xC1\xBF\""), 1, UTF},
    {BYTES("\"\xE0\x80\x80\""), 1, UTF},
    {BYTES("\"\xE0\x9F\xBF\""), 1, UTF},
    {BYTES("\"\xF0\x80\x80\x80\""), 1, UTF},
    {BYTES("\"\xF0\x8F\xBF\xBF\""), 1, UTF},
    {BYTES("\"\xED\xA0\x80\""), 1, UTF}, /* surrogates */
    {BYTES("\"\xED\xBF\xBF\""), 1, UTF},
    {BYTES("\"\xED\xA0\xBD\xED\xB8\x80\""), 1, UTF},
    {BYTES("\"\xF4\x90\x80\x80\""), 1, UTF},
    {BYTES("\"\xF5\x80\x80\x80\""), 1, UTF},
    {BYTES("\"\xFC\x80\x80\x80\x80\x80\""), 1, UTF},
    {BYTES("\"\xFE\xFF\""), 1, UTF},
    {BYTES("\"\xE9t\xE9\""), 1, UTF}, /* latin-1 */
    {BYTES("\"\xC3\""), 1, UTF},      /* truncated by the quote */
    {BYTES("\"\xE2\x82\""), 1, UTF},
    {BYTES("\"\xF0\x9F\x98\""), 1, UTF},
    {BYTES("\"\xC3"), 1, UTF}, /* truncated by the end */
    {BYTES("\"\xF0\x9F\x98"), 1, UTF},
    {BYTES("{\"\xC0\x80\":1}"), 2, UTF},
    {BYTES("{\"a\xED\xA0\x80\":1}"), 3, UTF},
};

static void strings_refused(void **state) {
    (void)state;
    refuse_rows(strings_rows, COUNT(strings_rows));
}

static void control_characters(void **state) {
    (void)state;
    for (int c = 0; c < 0x20; c++) {
        char value[] = {'"', 'a', (char)c, '"'};
        char key[] = {'{', '"', (char)c, '"', ':', '1', '}'};
        size_t offset;
        assert_string_equal(check(value, sizeof value, &offset), CONTROL);
        assert_int_equal(offset, 2);
        assert_string_equal(check(key, sizeof key, &offset), CONTROL);
        char between[] = {'[', (char)c, ']'};
        bool space = c == '\t' || c == '\n' || c == '\r';
        assert_int_equal(check(between, sizeof between, &offset) == NULL, space);
    }
}

/* Copies `word` without its NUL. */
static size_t put(char *out, const char *word) {
    size_t len = strlen(word);
    memcpy(out, word, len);
    return len;
}

/* `levels` nested containers, objects or arrays by the bits of `pattern`, with `inner` in the middle. */
static size_t nest(char *out, int levels, uint64_t pattern, const char *inner) {
    size_t len = 0;
    for (int i = 0; i < levels; i++) {
        bool object = pattern >> (i % 64) & 1;
        len += put(out + len, object ? "{\"a\":" : "[");
    }
    len += put(out + len, inner);
    for (int i = levels - 1; i >= 0; i--) {
        out[len++] = pattern >> (i % 64) & 1 ? '}' : ']';
    }
    return len;
}

static void depth(void **state) {
    (void)state;
    static const uint64_t patterns[] = {0, UINT64_MAX, 0x5555555555555555u, 0xAAAAAAAAAAAAAAAAu, 0x8000000000000001u};
    static const struct {
        int levels;
        const char *inner;
        bool ok;
    } rows[] = {{63, "1", true},   {63, "[]", true},  {63, "{}", true}, {64, "1", true},
                {64, "[]", false}, {64, "{}", false}, {65, "1", false}, {66, "1", false}};
    char text[1024];
    for (size_t p = 0; p < COUNT(patterns); p++) {
        for (size_t i = 0; i < COUNT(rows); i++) {
            size_t len = nest(text, rows[i].levels, patterns[p], rows[i].inner);
            size_t offset;
            const char *fault = check(text, len, &offset);
            if (rows[i].ok) {
                accept("a deep one", text, len);
            } else {
                assert_non_null(fault);
                assert_string_equal(fault, "more than 64 levels");
            }
        }
    }
}

/* Each closing bracket must match its level, at any level. */
static void brackets_match_at_every_level(void **state) {
    (void)state;
    static const uint64_t patterns[] = {0, UINT64_MAX, 0x123456789ABCDEF0u};
    char text[1024];
    for (size_t p = 0; p < COUNT(patterns); p++) {
        size_t len = nest(text, 64, patterns[p], "1");
        for (size_t level = 1; level <= 64; level++) {
            char right = text[len - level];
            size_t offset;
            text[len - level] = right == ']' ? '}' : ']';
            assert_string_equal(check(text, len, &offset), CLOSE);
            assert_int_equal(offset, len - level);
            text[len - level] = right;
        }
    }
}

/* The check stops at level 65 of 100,000, so the rest costs nothing. */
static void very_deep(void **state) {
    (void)state;
    static char text[500000];
    size_t offset;
    memset(text, '[', 100000);
    assert_string_equal(check(text, 100000, &offset), "more than 64 levels");
    assert_int_equal(offset, 64);
    for (size_t i = 0; i < 100000; i++) {
        memcpy(text + i * 5, "{\"a\":", 5);
    }
    assert_string_equal(check(text, sizeof text, &offset), "more than 64 levels");
    assert_int_equal(offset, 64 * 5);
}

/* Scalars, arrays and objects count; keys do not. */
static void values_are_counted(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t values;
        size_t offset; /* the offset of the last value */
    } rows[] = {
        {"7", 1, 0},
        {" null ", 1, 1},
        {"[]", 1, 0},
        {"[{},[]]", 3, 4},
        {"[true,false, \"a\"]", 4, 13},
        {"{\"a\":1,\"b\":{\"c\":{}}}", 4, 16},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t offset;
        size_t len = strlen(rows[i].text);
        assert_null(fm_json_check(rows[i].text, len, rows[i].values, &offset));
        assert_int_equal(offset, len);
        assert_ptr_equal(fm_json_check(rows[i].text, len, rows[i].values - 1, &offset), fm_json_too_many);
        assert_int_equal(offset, rows[i].offset);
    }
}

static void most_values(void **state) {
    (void)state;
    static char text[10000000];
    size_t offset;
    for (size_t i = 0; i < sizeof text; i += 2) {
        memcpy(text + i, "0,", 2);
    }
    text[0] = '[';
    text[1] = ' ';
    text[2 * FM_JSON_VALUES_MAX - 1] = ']';
    accept("the most values", text, 2 * FM_JSON_VALUES_MAX);
    text[2 * FM_JSON_VALUES_MAX - 1] = ',';
    assert_ptr_equal(check(text, sizeof text, &offset), fm_json_too_many);
    assert_int_equal(offset, 2 * FM_JSON_VALUES_MAX); /* the check read nothing after this byte */
}

/* No proper prefix of an object, array or string is a value. */
static void every_prefix_is_refused(void **state) {
    (void)state;
    static const char text[] =
        "{\"a\":[1,-2.5e+3,\"x\\n\\u00e9\\uD83D\\uDE00\xC3\xA9\"],\"b\":{\"c\":null,\"d\":[true,false,{}]} }";
    size_t offset;
    accept("the whole", BYTES(text));
    for (size_t len = 0; len < sizeof text - 1; len++) {
        if (!check(text, len, &offset)) {
            fail_msg("a prefix of %zu bytes is accepted", len);
        }
        assert_true(offset <= len);
    }
}

/* The value from which numbers round to infinity, 2^1024 - 2^970, and the effect of one digit more or less. */
static void the_limit_of_a_double(void **state) {
    (void)state;
    static const char limit[] =
        "1797693134862315807937289714053034150799341327100378269361737789804449682927647509466490179775872070963"
        "3028641669288791094655554785194040263065748867150582068190890200070838367627385484581771153176447573027"
        "0069855571366959622842914819860834936475292719074168444365510704342711559699508093042880177904174497792";
    char text[1024];
    size_t offset;
    size_t len = strlen(limit);
    assert_string_equal(check(limit, len, &offset), RANGE);
    memcpy(text, limit, len + 1);
    text[len - 1]--;
    accept("one less", text, len);
    int longer = snprintf(text + len, sizeof text - len, ".%0*d", 500, 9);
    accept("less by a fraction", text, len + (size_t)longer);
    int moved = snprintf(text, sizeof text, "0.%0*d%se329", 20, 0, limit);
    assert_string_equal(check(text, (size_t)moved, &offset), RANGE);
    text[moved - 5]--;
    accept("one less, with an exponent", text, (size_t)moved);
}

static void long_numbers(void **state) {
    (void)state;
    static char text[1000001];
    size_t offset;
    memset(text, '9', sizeof text);
    accept("300 digits", text, 300);
    accept("308 digits", text, 308);
    assert_string_equal(check(text, 310, &offset), RANGE);
    assert_int_equal(offset, 310);
    assert_string_equal(check(text, sizeof text, &offset), RANGE);
    memset(text, '0', sizeof text);
    text[1] = '.';
    accept("a long fraction", text, sizeof text);
    memcpy(text + sizeof text - 10, "1e+1000000", 10);
    accept("as many zeros as the exponent takes away", text, sizeof text);
    memcpy(text + sizeof text - 10, "1e+1000300", 10);
    assert_string_equal(check(text, sizeof text, &offset), RANGE);
    text[0] = '1';
    text[1] = '0';
    memcpy(text + sizeof text - 10, "00e-999990", 10);
    accept("as many zeros as the exponent brings back", text, sizeof text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(must_accept),
        cmocka_unit_test(structure_refused),
        cmocka_unit_test(numbers_refused),
        cmocka_unit_test(strings_refused),
        cmocka_unit_test(control_characters),
        cmocka_unit_test(depth),
        cmocka_unit_test(brackets_match_at_every_level),
        cmocka_unit_test(very_deep),
        cmocka_unit_test(values_are_counted),
        cmocka_unit_test(most_values),
        cmocka_unit_test(every_prefix_is_refused),
        cmocka_unit_test(the_limit_of_a_double),
        cmocka_unit_test(long_numbers),
    };
    return cmocka_run_group_tests_name("json_check", tests, NULL, NULL);
}
