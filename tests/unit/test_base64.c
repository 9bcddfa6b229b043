/* Base64: encoding and decoding give the same bytes, and texts that are not base64 are refused. */
#include "protocol/base64.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    const char *text;
    size_t len;
    unsigned char bytes[8];
} right[] = {
    {"Zg==", 1, "f"},        {"Zm8=", 2, "fo"},           {"Zm9v", 3, "foo"},        {"Zm9vYg==", 4, "foob"},
    {"AAD/", 3, "\0\0\xff"}, {"+/+/", 3, "\xfb\xff\xbf"}, {"Zm9vYmFy", 6, "foobar"}, {"AAAAAAA=", 5, "\0\0\0\0\0"},
};

static const char *const wrong[] = {"",
                                    "Z",
                                    "Zg",
                                    "Zg=",
                                    "====",
                                    "Z===",
                                    "Zg==Zg==",
                                    "Zm9v\n",
                                    "Zm 9",
                                    "Zm9-",
                                    "Zh==",
                                    "Zm9=",
                                    "Zm=v",
                                    "=m9v",
                                    "Zm8=Zm8=",
                                    "\303\274AA"};

static void right_ones(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        unsigned char bytes[8] = {0};
        size_t len = strlen(right[i].text);
        assert_int_equal(fm_base64_decoded_size(right[i].text, len), right[i].len);
        assert_true(fm_base64_valid(right[i].text, len));
        assert_true(fm_base64_read(right[i].text, len, bytes));
        assert_memory_equal(bytes, right[i].bytes, sizeof bytes);
    }
}

static void wrong_ones(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        unsigned char bytes[8];
        if (fm_base64_valid(wrong[i], strlen(wrong[i])) || fm_base64_read(wrong[i], strlen(wrong[i]), bytes)) {
            fail_msg("taken: %s", wrong[i]);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(right_ones), cmocka_unit_test(wrong_ones)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
