/* The checksum: known values, computed in one piece and in two, and each bit changes it. */
#include "base/crc32.h"
#include "wire.h"

#include <string.h>

static void known_values(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint32_t crc;
    } rows[] = {{"", 0}, {"123456789", 0xCBF43926}, {"The quick brown fox jumps over the lazy dog", 0x414FA339}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t len = strlen(rows[i].text);
        for (size_t cut = 0; cut <= len; cut++) {
            uint32_t crc = fm_crc32(fm_crc32(0, rows[i].text, cut), rows[i].text + cut, len - cut);
            assert_int_equal(crc, rows[i].crc);
        }
    }
}

static void each_bit_counts(void **state) {
    (void)state;
    unsigned char bytes[64];
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (unsigned char)(i * 37);
    }
    uint32_t crc = fm_crc32(0, bytes, sizeof bytes);
    for (size_t i = 0; i < 8 * sizeof bytes; i++) {
        bytes[i / 8] ^= (unsigned char)(1u << i % 8);
        assert_int_not_equal(fm_crc32(0, bytes, sizeof bytes), crc);
        bytes[i / 8] ^= (unsigned char)(1u << i % 8);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_values),
        cmocka_unit_test(each_bit_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
