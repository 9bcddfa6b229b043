/* The hash: known values, computed in one piece and in two. It is used to find files of earlier versions. */
#include "base/hash.h"
#include "wire.h"

#include <string.h>

static void known_values(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint64_t hash;
    } rows[] = {{"", 0xcbf29ce484222325}, {"a", 0xaf63dc4c8601ec8c}, {"foobar", 0x85944171f73967e8}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t len = strlen(rows[i].text);
        for (size_t cut = 0; cut <= len; cut++) {
            uint64_t hash = fm_hash(fm_hash(FM_HASH_START, rows[i].text, cut), rows[i].text + cut, len - cut);
            assert_int_equal(hash, rows[i].hash);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(known_values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
