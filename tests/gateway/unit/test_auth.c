/* Tokens, one-time codes and the count of failures, at given times. */
#include "net/auth.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#define NOW 5000000

static struct gw_auth auth;

static int set_up(void **state) {
    (void)state;
    gw_auth_init(&auth, "token", 5, NOW);
    return 0;
}

static void test_tokens(void **state) {
    (void)state;
    assert_int_equal(gw_auth_check(&auth, "token", 5, NOW), GW_LOGIN_OK);
    assert_int_equal(gw_auth_check(&auth, "token", 4, NOW), GW_LOGIN_WRONG);
    assert_int_equal(gw_auth_check(&auth, "tokens", 6, NOW), GW_LOGIN_WRONG);
    assert_int_equal(gw_auth_check(&auth, "", 0, NOW), GW_LOGIN_WRONG);
    gw_auth_set_token(&auth, "other", 5);
    assert_int_equal(gw_auth_check(&auth, "token", 5, NOW), GW_LOGIN_WRONG);
    assert_int_equal(gw_auth_check(&auth, "other", 5, NOW), GW_LOGIN_OK);
}

static void test_ten_failures_a_minute(void **state) {
    (void)state;
    for (int i = 0; i < 10; i++) {
        assert_int_equal(gw_auth_check(&auth, "x", 1, NOW + i * 1000), GW_LOGIN_WRONG);
    }
    assert_int_equal(gw_auth_check(&auth, "token", 5, NOW + 10000), GW_LOGIN_LIMITED);
    assert_int_equal(gw_auth_check(&auth, "token", 5, NOW + 59999), GW_LOGIN_LIMITED);
    assert_int_equal(gw_auth_check(&auth, "token", 5, NOW + 60000), GW_LOGIN_OK);
    assert_int_equal(gw_auth_check(&auth, "x", 1, NOW + 60000), GW_LOGIN_WRONG);
    assert_int_equal(gw_auth_check(&auth, "token", 5, NOW + 60001), GW_LOGIN_LIMITED); /* the second is 59.001 s old */
    assert_int_equal(gw_auth_check(&auth, "token", 5, NOW + 61000), GW_LOGIN_OK);
}

static void test_codes(void **state) {
    char code[GW_CODE_LEN + 1];
    char other[GW_CODE_LEN + 1];
    (void)state;
    gw_auth_make_code("token", 5, NOW, code);
    gw_auth_make_code("token", 5, NOW, other);
    assert_int_equal(strlen(code), GW_CODE_LEN);
    assert_string_not_equal(code, other);
    assert_int_equal(gw_auth_check_code(&auth, code, GW_CODE_LEN, NOW + GW_CODE_MS - 1), GW_LOGIN_OK);
    assert_int_equal(gw_auth_check_code(&auth, code, GW_CODE_LEN, NOW + GW_CODE_MS - 1), GW_LOGIN_WRONG);
    assert_int_equal(gw_auth_check_code(&auth, other, GW_CODE_LEN, NOW + GW_CODE_MS), GW_LOGIN_WRONG);
    gw_auth_make_code("other", 5, NOW, code);
    assert_int_equal(gw_auth_check_code(&auth, code, GW_CODE_LEN, NOW), GW_LOGIN_WRONG);
    assert_int_equal(gw_auth_check_code(&auth, "", 0, NOW), GW_LOGIN_WRONG);
}

/* The gateway can't know whether a code from before its start was used, so it refuses the code. */
static void test_a_code_of_before(void **state) {
    char code[GW_CODE_LEN + 1];
    (void)state;
    gw_auth_make_code("token", 5, NOW - 1, code);
    assert_int_equal(gw_auth_check_code(&auth, code, GW_CODE_LEN, NOW), GW_LOGIN_WRONG);
    gw_auth_make_code("token", 5, NOW, code);
    assert_int_equal(gw_auth_check_code(&auth, code, GW_CODE_LEN, NOW), GW_LOGIN_OK);
}

/* Each character of a code counts. */
static void test_a_changed_code(void **state) {
    char code[GW_CODE_LEN + 1];
    (void)state;
    for (size_t i = 0; i < GW_CODE_LEN; i++) {
        gw_auth_make_code("token", 5, NOW, code);
        code[i] = code[i] == '0' ? '1' : '0';
        gw_auth_init(&auth, "token", 5, NOW); /* no failures so far */
        assert_int_equal(gw_auth_check_code(&auth, code, GW_CODE_LEN, NOW), GW_LOGIN_WRONG);
    }
}

static void test_many_codes(void **state) {
    char code[GW_CODE_LEN + 1];
    (void)state;
    for (unsigned i = 0; i < GW_CODES_USED; i++) {
        gw_auth_make_code("token", 5, NOW, code);
        assert_int_equal(gw_auth_check_code(&auth, code, GW_CODE_LEN, NOW), GW_LOGIN_OK);
    }
    gw_auth_make_code("token", 5, NOW, code);
    assert_int_equal(gw_auth_check_code(&auth, code, GW_CODE_LEN, NOW), GW_LOGIN_WRONG);
    gw_auth_make_code("token", 5, NOW + GW_CODE_MS, code);
    assert_int_equal(gw_auth_check_code(&auth, code, GW_CODE_LEN, NOW + GW_CODE_MS), GW_LOGIN_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_tokens, set_up),     cmocka_unit_test_setup(test_ten_failures_a_minute, set_up),
        cmocka_unit_test_setup(test_codes, set_up),      cmocka_unit_test_setup(test_a_changed_code, set_up),
        cmocka_unit_test_setup(test_many_codes, set_up), cmocka_unit_test_setup(test_a_code_of_before, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
