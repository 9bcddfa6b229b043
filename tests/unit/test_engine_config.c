/* The configuration of an engine: where it is read from, and that no key stays in the environment. */
#include "base/secret.h"
#include "front/engines/config.h"
#include "wire.h"

#include <stdlib.h>

#define KEY "sk-canary"

static void in_a_variable(void **state) {
    (void)state;
    struct fm_config config;
    setenv("A_KEY", KEY, 1);
    setenv("B_KEY", KEY "2", 1);
    setenv("THE_CONFIG", "{\"list\":[{\"key_env\":\"A_KEY\"},{\"x\":{\"key_env\":\"B_KEY\"}},{\"key_env\":\"A_KEY\"}]}",
           1);
    const char *where = getenv("A_KEY"); /* a later reader of this memory must not find the key */
    assert_true(fm_config_read(&config, "env:THE_CONFIG"));
    assert_int_equal(config.fault.code, FM_OK);
    assert_int_equal(config.key_count, 2);
    assert_string_equal(config.keys[0].name, "A_KEY");
    assert_string_equal(config.keys[0].value, KEY);
    assert_string_equal(config.keys[1].value, KEY "2");
    assert_null(getenv("A_KEY"));
    assert_null(getenv("B_KEY"));
    assert_null(getenv("THE_CONFIG"));
    assert_int_equal(where[0], 0);
    fm_config_free(&config);
}

static void none(void **state) {
    (void)state;
    struct fm_config config;
    assert_true(fm_config_read(&config, NULL));
    assert_null(config.text);
    assert_int_equal(config.fault.code, FM_OK);
}

static void what_is_wrong(void **state) {
    static const struct {
        const char *text;
        const char *words;
    } rows[] = {{"{", "not JSON"},
                {"7", "not a JSON object"},
                {"{\"key_env\":\"IT_IS_NOT_SET\"}", "IT_IS_NOT_SET"},
                {"{\"key_env\":\"LD_PRELOAD\"}", "the variable LD_PRELOAD itself"},
                {"{\"key_env\":\"PATH\"}", "the variable PATH itself"},
                {"{\"key_env\":\"\"}", "not a variable's name"},
                {"{\"key_env\":\"A=B\"}", "not a variable's name"},
                {NULL, "not set"}};
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fm_config config;
        if (rows[i].text) {
            setenv("THE_CONFIG", rows[i].text, 1);
        } else {
            unsetenv("THE_CONFIG");
        }
        assert_true(fm_config_read(&config, "env:THE_CONFIG"));
        assert_int_equal(config.fault.code, FM_UNAVAILABLE);
        assert_string_equal(config.fault.reason_code, "NOT_CONFIGURED");
        assert_non_null(strstr(config.fault.detail, rows[i].words));
        assert_null(config.text);
        fm_config_free(&config);
    }
}

/* The keys are removed even if the configuration can't be used. */
static void keys_go_anyway(void **state) {
    (void)state;
    struct fm_config config;
    setenv("A_KEY", KEY, 1);
    setenv("THE_CONFIG", "{\"a\":{\"key_env\":\"A_KEY\"},\"b\":{\"key_env\":\"NOT_SET_EITHER\"}}", 1);
    assert_true(fm_config_read(&config, "env:THE_CONFIG"));
    assert_int_equal(config.fault.code, FM_UNAVAILABLE);
    assert_null(getenv("A_KEY"));
    fm_config_free(&config);
}

static void secrets(void **state) {
    (void)state;
    char *secret = fm_secret_copy("abc", 2);
    assert_string_equal(secret, "ab");
    fm_secret_free(secret);
    fm_secret_free(NULL);
    assert_null(fm_secret_take("IT_IS_NOT_SET"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(in_a_variable), cmocka_unit_test(none),
                                       cmocka_unit_test(what_is_wrong), cmocka_unit_test(keys_go_anyway),
                                       cmocka_unit_test(secrets)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
