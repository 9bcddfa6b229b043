/* Apple's reasons and statuses: a row for each, and rows for unknown ones. */
#include "engine/apple/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

static void test_reasons(void **state) {
    (void)state;
    static const struct {
        int reason;
        const char *reason_code;
    } rows[] = {{0, "AI_DISABLED"},        {1, "UNSUPPORTED_HARDWARE"}, {2, "MODEL_NOT_READY"},
                {255, "HELPER_UNHEALTHY"}, {3, "HELPER_UNHEALTHY"},     {-1, "HELPER_UNHEALTHY"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fm_error error;
        assert_int_equal(fm_apple_unavailable(rows[i].reason, &error), FM_UNAVAILABLE);
        assert_string_equal(error.reason_code, rows[i].reason_code);
        assert_true(strlen(error.detail) > 10);
    }
}

/* Each status, if no output came before it, and if output did. */
static const struct row {
    int status;
    enum fm_reason before;
    enum fm_code code; /* the error's code, if `before` is FM_REASON_ERROR */
    enum fm_reason after;
    bool elsewhere;
    int64_t retry_ms;
    const char *reason_code;
    const char *param;
} rows[] = {
    {1, FM_REASON_ERROR, FM_CONTEXT_OVERFLOW, FM_REASON_LENGTH, true, 0, "", ""},
    {2, FM_REASON_ERROR, FM_UNAVAILABLE, FM_REASON_ERROR, false, 0, "MODEL_NOT_READY", ""},
    {3, FM_REASON_ERROR, FM_GUARDRAIL, FM_REASON_CONTENT_FILTER, false, 0, "", ""},
    {4, FM_REASON_ERROR, FM_INVALID_REQUEST, FM_REASON_ERROR, true, 0, "", "format.schema"},
    {5, FM_REASON_ERROR, FM_INVALID_REQUEST, FM_REASON_ERROR, true, 0, "", ""},
    {6, FM_REASON_ERROR, FM_INTERNAL, FM_REASON_ERROR, false, 0, "", ""},
    {7, FM_REASON_ERROR, FM_RATE_LIMITED, FM_REASON_ERROR, false, 60000, "", ""},
    {8, FM_REASON_ERROR, FM_INTERNAL, FM_REASON_ERROR, false, 0, "", ""},
    {9, FM_REASON_STOP, FM_OK, FM_REASON_STOP, false, 0, "", ""},
    {10, FM_REASON_ERROR, FM_INVALID_REQUEST, FM_REASON_ERROR, true, 0, "", "format.schema"},
    {11, FM_REASON_ERROR, FM_INTERNAL, FM_REASON_ERROR, false, 0, "", ""},
    {12, FM_REASON_ERROR, FM_INTERNAL, FM_REASON_ERROR, false, 0, "", ""},
    {255, FM_REASON_ERROR, FM_INTERNAL, FM_REASON_ERROR, false, 0, "", ""},
};

static void test_statuses(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fm_error error = {0};
        struct fm_apple_end end = {.status = rows[i].status, .text = "the user's own words"};
        assert_int_equal(fm_apple_end_reason(&end, &error), rows[i].before);
        if (rows[i].before == FM_REASON_ERROR) {
            assert_int_equal(error.code, rows[i].code);
            assert_int_equal(error.elsewhere, rows[i].elsewhere);
            assert_int_equal(error.retry_ms, rows[i].retry_ms);
            assert_string_equal(error.reason_code, rows[i].reason_code);
            assert_string_equal(error.param, rows[i].param);
            assert_null(strstr(error.detail, "words"));
        }
        end.spoke = true;
        assert_int_equal(fm_apple_end_reason(&end, &error), rows[i].after);
    }
}

static void test_the_limit(void **state) {
    (void)state;
    struct fm_error error;
    const struct fm_apple_end cut = {.status = FM_APPLE_DECODING, .text = "", .at_limit = true};
    const struct fm_apple_end other = {.status = FM_APPLE_RATE, .text = "", .at_limit = true};
    const struct fm_apple_end tools = {.status = FM_APPLE_GUIDE, .text = "", .tools = true};
    assert_int_equal(fm_apple_end_reason(&cut, &error), FM_REASON_LENGTH);
    assert_int_equal(fm_apple_end_reason(&other, &error), FM_REASON_ERROR);
    assert_int_equal(fm_apple_end_reason(&tools, &error), FM_REASON_ERROR);
    assert_string_equal(error.param, "tools");
}

/* The part of an unknown error's text that is passed on. */
static void test_unknown_errors(void **state) {
    (void)state;
    static const struct {
        const char *text;
        const char *named; /* NULL: only the status */
    } texts[] = {
        {"Error NSCocoaErrorDomain:4864 - The data is wrong: secret", "(NSCocoaErrorDomain:4864)"},
        {"Error FoundationModels.LanguageModelError:3 - secret", "Xcode 26.4"},
        {"Error secret words - x", NULL},
        {"Error Domain:1", NULL},
        {"Error ", NULL},
        {"", NULL},
        {"secret", NULL},
        {"Error a\nb:1 - x", NULL},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct fm_error error;
        const struct fm_apple_end end = {.status = 255, .text = texts[i].text};
        assert_int_equal(fm_apple_end_reason(&end, &error), FM_REASON_ERROR);
        assert_non_null(strstr(error.detail, texts[i].named ? texts[i].named : "status 255"));
        assert_null(strstr(error.detail, " words"));
        assert_null(strstr(error.detail, "- "));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reasons),
        cmocka_unit_test(test_statuses),
        cmocka_unit_test(test_the_limit),
        cmocka_unit_test(test_unknown_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
