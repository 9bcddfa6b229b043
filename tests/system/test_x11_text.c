/* Text from X properties always becomes UTF-8 without control characters. */
#include "backends/x11_text.h"
#include "base/utf8.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <stdlib.h>
#include <string.h>

#define BYTES(text) text, sizeof(text) - 1

static const struct {
    const char *bytes;
    size_t len;
    bool utf8;
    const char *text;
} rows[] = {
    {BYTES(""), true, ""},
    {BYTES("xterm"), false, "xterm"},
    {BYTES("caf\xc3\xa9"), true, "caf\xc3\xa9"},
    {BYTES("caf\xc3\xa9"), false, "caf\xc3\xa9"}, /* many programs put UTF-8 into a STRING */
    {BYTES("caf\xe9"), false, "caf\xc3\xa9"},
    {BYTES("\xe9t\xe9 \x9b[2J"), false, "\xc3\xa9t\xc3\xa9  [2J"},
    {BYTES("a\xff\xfe z"), true, "a\xef\xbf\xbd\xef\xbf\xbd z"},
    {BYTES("a\xc0\x80z"), true, "a\xef\xbf\xbd\xef\xbf\xbdz"},               /* an overlong NUL */
    {BYTES("a\xed\xa0\x80"), true, "a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* a surrogate */
    {BYTES("cut \xe2\x82"), true, "cut "},
    {BYTES("a\nb\tc\x1b[31m\x7f"), true, "a b c [31m "},
    {BYTES("a\xc2\x9b"
           "31m"),
     true, "a 31m"}, /* CSI as a C1 character */
    {BYTES("first\0second"), true, "first"},
    {BYTES("\0"), false, ""},
};

static void test_rows(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *text = sy_x11_text(rows[i].bytes, rows[i].len, rows[i].utf8);
        assert_non_null(text);
        assert_string_equal(text, rows[i].text);
        free(text);
    }
}

/* Every pair of bytes, as both types. */
static void test_any_bytes(void **state) {
    (void)state;
    for (unsigned pair = 0; pair < 65536; pair++) {
        const char bytes[] = {(char)(pair >> 8), (char)pair};
        for (int utf8 = 0; utf8 < 2; utf8++) {
            char *text = sy_x11_text(bytes, sizeof bytes, utf8);
            assert_non_null(text);
            assert_true(fm_utf8_valid(text, strlen(text)));
            for (const char *at = text; *at; at++) {
                assert_true((unsigned char)*at >= 0x20 && *at != 0x7f);
            }
            free(text);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_any_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
