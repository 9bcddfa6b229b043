/*
 * UTF-8, compared with an oracle that works in the other direction: every code point is encoded, and a sequence is
 * valid if it is one of these encodings.
 */
#include "base/utf8.h"
#include "wire.h"

/* Returns 0 if the code is not a scalar value. */
static size_t encode(uint32_t code, char out[4]) {
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xC0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3F));
        return 2;
    }
    if (code >= 0xD800 && code <= 0xDFFF) {
        return 0;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xE0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3F));
        out[2] = (char)(0x80 | (code & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 0x3F));
    out[2] = (char)(0x80 | (code >> 6 & 0x3F));
    out[3] = (char)(0x80 | (code & 0x3F));
    return 4;
}

static void every_code_point(void **state) {
    (void)state;
    for (uint32_t code = 0; code <= 0x10FFFF; code++) {
        char text[4];
        size_t len = encode(code, text);
        for (size_t cut = 1; cut <= len; cut++) {
            int got = fm_utf8_sequence(text, cut);
            if (got != (cut == len ? (int)len : 0)) {
                fail_msg("U+%04X cut to %zu bytes: %d", code, cut, got);
            }
        }
    }
}

/* Every combination of two bytes, and of the last two of three: valid exactly if decoding and encoding agree. */
static void every_short_sequence(void **state) {
    (void)state;
    for (uint32_t bytes = 0; bytes < 0x1000000; bytes++) {
        char text[3] = {(char)(bytes >> 16), (char)(bytes >> 8), (char)bytes};
        unsigned char first = (unsigned char)text[0];
        size_t need = first < 0x80 ? 1 : first < 0xE0 ? 2 : 3;
        if (first >= 0xF0) {
            continue; /* see boundaries_of_four */
        }
        uint32_t code = need == 1 ? first
                        : need == 2
                            ? (uint32_t)(first & 0x1F) << 6 | (text[1] & 0x3F)
                            : (uint32_t)(first & 0x0F) << 12 | (uint32_t)(text[1] & 0x3F) << 6 | (text[2] & 0x3F);
        char again[4];
        bool valid = encode(code, again) == need && memcmp(again, text, need) == 0;
        int got = fm_utf8_sequence(text, sizeof text);
        if (got != (valid ? (int)need : -1)) {
            fail_msg("%06X: %d", bytes, got);
        }
    }
}

static void boundaries_of_four(void **state) {
    (void)state;
    static const unsigned char edges[] = {0x00, 0x7F, 0x80, 0x8F, 0x90, 0xBF, 0xC0, 0xFF};
    for (unsigned first = 0xF0; first <= 0xFF; first++) {
        for (size_t i = 0; i < 8 * 8 * 8; i++) {
            char text[4] = {(char)first, (char)edges[i / 64], (char)edges[i / 8 % 8], (char)edges[i % 8]};
            uint32_t code = (first & 0x07) << 18 | (uint32_t)(text[1] & 0x3F) << 12 | (uint32_t)(text[2] & 0x3F) << 6 |
                            (text[3] & 0x3F);
            char again[4];
            bool valid = code <= 0x10FFFF && encode(code, again) == 4 && memcmp(again, text, 4) == 0;
            assert_int_equal(fm_utf8_sequence(text, 4), valid ? 4 : -1);
        }
    }
}

static void sequences(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t len;
        int expected;
    } rows[] = {
        {BYTES("a"), 1},
        {BYTES("\0"), 1},
        {BYTES("\x7F"), 1},
        {BYTES("\xC3\xA9"), 2},
        {BYTES("\xE2\x82\xAC"), 3},
        {BYTES("\xF0\x9F\x98\x80"), 4},
        {BYTES("\xC3\xA9more"), 2},
        {BYTES("\xC3"), 0},
        {BYTES("\xE2\x82"), 0},
        {BYTES("\xF0\x9F\x98"), 0},
        {BYTES("\xED"), 0},
        {BYTES("\x80"), -1},  /* only a continuation byte */
        {BYTES("\xC3("), -1}, /* no continuation */
        {BYTES("\xE2\x82("), -1},
        {BYTES("\xF0\x9F\x98("), -1},
        {BYTES("\xC0\x80"), -1}, /* overlong NUL */
        {BYTES("\xC0"), -1},
        {BYTES("\xC1\xBF"), -1},         /* overlong U+007F */
        {BYTES("\xE0\x80\xAF"), -1},     /* overlong slash */
        {BYTES("\xE0\x9F\xBF"), -1},     /* overlong U+07FF */
        {BYTES("\xE0\x9F"), -1},         /* can't become valid any more */
        {BYTES("\xF0\x8F\xBF\xBF"), -1}, /* overlong U+FFFF */
        {BYTES("\xED\xA0\x80"), -1},     /* surrogates */
        {BYTES("\xED\xBF\xBF"), -1},
        {BYTES("\xED\xA0"), -1},
        {BYTES("\xF4\x90\x80\x80"), -1}, /* U+110000 */
        {BYTES("\xF5\x80\x80\x80"), -1},
        {BYTES("\xF8\x88\x80\x80\x80"), -1}, /* five bytes */
        {BYTES("\xFE"), -1},
        {BYTES("\xFF"), -1},
        {BYTES("\xE9t"), -1}, /* latin-1 */
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char *text = exact_copy(rows[i].text, rows[i].len);
        int got = fm_utf8_sequence(text, rows[i].len);
        free(text);
        if (got != rows[i].expected) {
            fail_msg("row %zu: expected %d, got %d", i, rows[i].expected, got);
        }
    }
}

static void valid_texts(void **state) {
    (void)state;
    assert_true(fm_utf8_valid("", 0));
    assert_true(fm_utf8_valid("a\0\xE2\x82\xAC", 5));
    assert_false(fm_utf8_valid("a\xE2\x82", 3));
    assert_false(fm_utf8_valid("\xE2\x82\xAC\xFF", 4));
    assert_false(fm_utf8_valid("\xC0\x80", 2));
}

static void byte_order_marks(void **state) {
    (void)state;
    assert_int_equal(fm_utf8_mark("\xef\xbb\xbfx", 4), 3);
    assert_int_equal(fm_utf8_mark("\xef\xbb\xbf", 3), 3);
    assert_int_equal(fm_utf8_mark("\xef\xbb\xbf", 2), 0);
    assert_int_equal(fm_utf8_mark("x\xef\xbb\xbf", 4), 0);
    assert_int_equal(fm_utf8_mark("", 0), 0);
}

static void whole_prefixes(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t len;
        size_t expected;
    } rows[] = {
        {BYTES(""), 0},
        {BYTES("abc"), 3},
        {BYTES("\xC3"), 0},
        {BYTES("ab\xC3"), 2},
        {BYTES("ab\xC3\xA9"), 4},
        {BYTES("\xE2"), 0},
        {BYTES("\xE2\x82"), 0},
        {BYTES("a\xE2\x82"), 1},
        {BYTES("\xE2\x82\xAC"), 3},
        {BYTES("\xF0\x9F\x98"), 0},
        {BYTES("ab\xF0\x9F\x98"), 2},
        {BYTES("ab\xF0\x9F"), 2},
        {BYTES("ab\xF0\x9F\x98\x80"), 6},
        {BYTES("\xC3\xA9\xC3"), 2},
        {BYTES("ab\x80"), 3}, /* invalid: no byte could complete it, so it is not held back */
        {BYTES("ab\xFF"), 3},
        {BYTES("ab\xC0"), 3},
        {BYTES("ab\xED\xA0"), 4},
        {BYTES("\x80\x80\x80\x80"), 4},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char *text = exact_copy(rows[i].text, rows[i].len);
        size_t got = fm_utf8_whole_prefix(text, rows[i].len);
        free(text);
        if (got != rows[i].expected) {
            fail_msg("row %zu: expected %zu, got %zu", i, rows[i].expected, got);
        }
    }
}

static void shown(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t max;
        int expected;
    } rows[] = {
        {"", 3, 0},
        {"abc", 3, 3},
        {"abcd", 3, 3},
        {"a\xC3\xA9", 3, 3},
        {"ab\xC3\xA9", 3, 2},
        {"ab\xC3", 3, 3}, /* the sequence was already incomplete */
        {"\xF0\x9F\x98\x80", 3, 0},
        {"\xE2\x82\xAC\xE2\x82\xAC", 5, 3},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char *text = exact_copy(rows[i].text, strlen(rows[i].text) + 1);
        int got = fm_utf8_shown(text, rows[i].max);
        free(text);
        if (got != rows[i].expected) {
            fail_msg("row %zu: expected %d, got %d", i, rows[i].expected, got);
        }
    }
}

/* Puts each byte value at each place of texts that are about as long as a step of the code. */
static void plain_ascii(void **state) {
    (void)state;
    for (size_t len = 0; len <= 20; len++) {
        assert_int_equal(fm_ascii_plain("abcdefghijklmnopqrst", len), len);
        for (size_t at = 0; at < len; at++) {
            for (unsigned byte = 0; byte < 256; byte++) {
                bool plain = byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
                char *text = exact_copy("abcdefghijklmnopqrst", len);
                text[at] = (char)byte;
                size_t got = fm_ascii_plain(text, len);
                free(text);
                if (got != (plain ? len : at)) {
                    fail_msg("byte %u at %zu of %zu: %zu", byte, at, len, got);
                }
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_point),   cmocka_unit_test(every_short_sequence),
        cmocka_unit_test(boundaries_of_four), cmocka_unit_test(sequences),
        cmocka_unit_test(valid_texts),        cmocka_unit_test(byte_order_marks),
        cmocka_unit_test(whole_prefixes),     cmocka_unit_test(shown),
        cmocka_unit_test(plain_ascii),
    };
    return cmocka_run_group_tests_name("utf8", tests, NULL, NULL);
}
