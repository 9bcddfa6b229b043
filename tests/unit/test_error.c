/* Errors: their names on the wire, and details that are never cut inside a character. */
#include "base/error.h"
#include "base/utf8.h"
#include "wire.h"

static void names(void **state) {
    (void)state;
    static const struct {
        enum fm_code code;
        const char *name;
    } rows[] = {
        {FM_UNAVAILABLE, "UNAVAILABLE"},
        {FM_TIMEOUT, "TIMEOUT"},
        {FM_CANCELLED, "CANCELLED"},
        {FM_INTERNAL, "INTERNAL"},
        {FM_INVALID_REQUEST, "INVALID_REQUEST"},
        {FM_NOT_FOUND, "NOT_FOUND"},
        {FM_CONTEXT_OVERFLOW, "CONTEXT_OVERFLOW"},
        {FM_RATE_LIMITED, "RATE_LIMITED"},
        {FM_OVERLOADED, "OVERLOADED"},
        {FM_GUARDRAIL, "GUARDRAIL"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_string_equal(fm_code_name(rows[i].code), rows[i].name);
        assert_int_equal(fm_code_parse(rows[i].name), rows[i].code);
    }
    assert_string_equal(fm_code_name(FM_OK), "OK");
}

/* An engine may send any name: a name that is not a failure's, "OK" included, counts as INTERNAL. */
static void names_that_are_none(void **state) {
    (void)state;
    static const char *const words[] = {"", "OK", "timeout", "TIMEOUT ", "TIMEOU", "TIMEOUTS", "NOT FOUND", "E42"};
    for (size_t i = 0; i < COUNT(words); i++) {
        assert_int_equal(fm_code_parse(words[i]), FM_INTERNAL);
    }
}

static void fail_fills_and_forgets(void **state) {
    (void)state;
    struct fm_error error;
    memset(&error, 'x', sizeof error);
    assert_int_equal(fm_fail(&error, FM_NOT_FOUND, "no %s of %d", "model", 7), FM_NOT_FOUND);
    assert_int_equal(error.code, FM_NOT_FOUND);
    assert_string_equal(error.detail, "no model of 7");
    assert_string_equal(error.param, "");
    assert_null(error.reason);
    assert_null(error.limit);
    assert_int_equal(error.limit_ms, 0);
    assert_int_equal(fm_fail_no_memory(&error), FM_INTERNAL);
    assert_string_equal(error.detail, "out of memory");
}

static void long_details_are_cut_between_characters(void **state) {
    (void)state;
    struct fm_error error;
    char text[600];
    for (size_t lead = 0; lead < 4; lead++) {
        memset(text, 'a', lead);
        for (size_t at = lead; at + 4 < sizeof text; at += 4) {
            memcpy(text + at, "\xF0\x9F\x98\x80", 5);
        }
        fm_fail(&error, FM_INTERNAL, "%s", text);
        size_t len = strlen(error.detail);
        assert_in_range(len, sizeof error.detail - 4, sizeof error.detail - 1);
        for (size_t at = 0; at < len;) {
            int step = fm_utf8_sequence(error.detail + at, len - at);
            assert_true(step > 0);
            at += (size_t)step;
        }
    }
}

static void details_that_just_fit(void **state) {
    (void)state;
    struct fm_error error;
    char text[sizeof error.detail + 1];
    for (size_t len = sizeof error.detail - 2; len <= sizeof error.detail; len++) {
        memset(text, 'a', len);
        text[len] = '\0';
        fm_fail(&error, FM_INTERNAL, "%s", text);
        assert_int_equal(strlen(error.detail), len < sizeof error.detail ? len : sizeof error.detail - 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        cmocka_unit_test(names_that_are_none),
        cmocka_unit_test(fail_fills_and_forgets),
        cmocka_unit_test(long_details_are_cut_between_characters),
        cmocka_unit_test(details_that_just_fit),
    };
    return cmocka_run_group_tests_name("error", tests, NULL, NULL);
}
