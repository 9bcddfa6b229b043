/* What the front knows about an engine's availability, and for how long. */
#include "front/engines/availability.h"
#include "wire.h"

#include <json-c/json.h>

static void take(struct fm_verdict *verdict, const char *text, int64_t now_ms) {
    struct json_object *result = json_tokener_parse(text);
    assert_non_null(result);
    fm_availability_take(verdict, result, now_ms);
    json_object_put(result);
}

static void how_long_it_holds(void **state) {
    static const struct {
        const char *result;
        enum fm_known known;
        int64_t ms;
        const char *reason_code;
    } rows[] = {
        {"{\"available\":true}", FM_KNOWN_GOOD, FM_GOOD_MS, NULL},
        {"{\"available\":true,\"ttl_ms\":7}", FM_KNOWN_GOOD, 7, NULL},
        {"{\"available\":true,\"ttl_ms\":900000000000}", FM_KNOWN_GOOD, FM_WAIT_MAX_MS, NULL},
        {"{\"available\":true,\"ttl_ms\":-1}", FM_KNOWN_GOOD, FM_GOOD_MS, NULL},
        {"{\"available\":false,\"reason_code\":\"AI_DISABLED\"}", FM_KNOWN_BAD, FM_BAD_MS, "AI_DISABLED"},
        {"{\"available\":false,\"reason_code\":\"OFFLINE\"}", FM_KNOWN_BAD, FM_OFFLINE_MS, "OFFLINE"},
        {"{\"available\":false,\"reason_code\":\"OFFLINE\",\"ttl_ms\":9}", FM_KNOWN_BAD, 9, "OFFLINE"},
        {"{\"available\":false,\"reason_code\":\"BAD_MOOD\"}", FM_KNOWN_BAD, FM_BAD_MS, "HELPER_UNHEALTHY"},
        {"{\"available\":false}", FM_KNOWN_BAD, FM_BAD_MS, "HELPER_UNHEALTHY"},
        {"{\"available\":1}", FM_KNOWN_BAD, FM_BAD_MS, "HELPER_UNHEALTHY"},
        {"{}", FM_KNOWN_BAD, FM_BAD_MS, "HELPER_UNHEALTHY"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fm_verdict verdict = {.known = FM_KNOWN_NOT};
        assert_int_equal(fm_availability_known(&verdict, 0), FM_KNOWN_NOT);
        take(&verdict, rows[i].result, 1000);
        assert_int_equal(fm_availability_known(&verdict, 1000 + rows[i].ms - 1), rows[i].known);
        assert_int_equal(fm_availability_known(&verdict, 1000 + rows[i].ms), FM_KNOWN_NOT);
        if (rows[i].reason_code) {
            assert_string_equal(verdict.error.reason_code, rows[i].reason_code);
            assert_int_equal(verdict.error.code, FM_UNAVAILABLE);
        }
        fm_availability_free(&verdict);
    }
}

static void lists(void **state) {
    (void)state;
    struct fm_verdict verdict = {.known = FM_KNOWN_NOT};
    take(&verdict,
         "{\"available\":true,\"models\":[{\"id\":\"a\",\"context_length\":9},{\"id\":\"b\"},{\"id\":\"a\"},{},7,"
         "{\"id\":\"\"}]}",
         0);
    assert_true(verdict.has_models);
    assert_int_equal(verdict.model_count, 2);
    assert_int_equal(fm_availability_find(&verdict, "a")->context_length, 9);
    assert_null(fm_availability_find(&verdict, "c"));
    take(&verdict, "{\"available\":false,\"reason_code\":\"OFFLINE\"}", 0);
    assert_int_equal(verdict.model_count, 2); /* the engine had models before, and may have them again */
    take(&verdict, "{\"available\":true,\"models\":[]}", 0);
    assert_true(verdict.has_models);
    assert_int_equal(verdict.model_count, 0);
    fm_availability_free(&verdict);
}

static void loads_count_too(void **state) {
    (void)state;
    struct fm_verdict verdict = {.known = FM_KNOWN_NOT};
    struct fm_error error;
    (void)fm_fail(&error, FM_OVERLOADED, "no thread");
    fm_availability_fail(&verdict, &error, 0);
    assert_int_equal(fm_availability_known(&verdict, 1), FM_KNOWN_BAD);
    assert_string_equal(verdict.error.reason_code, "HELPER_UNHEALTHY");
    fm_availability_good(&verdict, 5);
    assert_int_equal(fm_availability_known(&verdict, 5), FM_KNOWN_GOOD);
}

static void jobs_count_too(void **state) {
    (void)state;
    static const struct {
        enum fm_code code;
        const char *reason_code;
        int64_t retry_ms;
        enum fm_known known; /* from 0 to `ms` */
        int64_t ms;
    } rows[] = {
        {FM_UNAVAILABLE, "AUTH_FAILED", 0, FM_KNOWN_BAD, FM_BAD_MS},
        {FM_UNAVAILABLE, "OFFLINE", 0, FM_KNOWN_BAD, FM_OFFLINE_MS},
        {FM_UNAVAILABLE, "QUOTA", 9, FM_KNOWN_BAD, 9},
        {FM_UNAVAILABLE, "QUOTA", FM_BAD_MS + 1, FM_KNOWN_BAD, FM_BAD_MS},
        {FM_UNAVAILABLE, "", 0, FM_KNOWN_GOOD, FM_GOOD_MS},
        {FM_RATE_LIMITED, "", 9, FM_KNOWN_GOOD, FM_GOOD_MS},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fm_verdict verdict = {.known = FM_KNOWN_NOT};
        struct fm_error error;
        fm_availability_good(&verdict, 0);
        (void)fm_fail(&error, rows[i].code, "no");
        snprintf(error.reason_code, sizeof error.reason_code, "%s", rows[i].reason_code);
        error.retry_ms = rows[i].retry_ms;
        fm_availability_job(&verdict, &error, 0);
        assert_int_equal(fm_availability_known(&verdict, rows[i].ms - 1), rows[i].known);
        assert_int_equal(fm_availability_known(&verdict, rows[i].ms), FM_KNOWN_NOT);
    }
}

static void a_good_job_ends_a_bad_verdict(void **state) {
    (void)state;
    struct fm_verdict verdict = {.known = FM_KNOWN_NOT};
    struct fm_error error;
    fm_availability_job(&verdict, NULL, 0);
    assert_int_equal(fm_availability_known(&verdict, 0), FM_KNOWN_NOT); /* asked again: its models are not known yet */
    (void)fm_fail(&error, FM_UNAVAILABLE, "no");
    fm_availability_fail(&verdict, &error, 0);
    fm_availability_job(&verdict, NULL, 1);
    assert_int_equal(fm_availability_known(&verdict, FM_GOOD_MS), FM_KNOWN_GOOD);
    fm_availability_job(&verdict, NULL, 2);
    assert_int_equal(fm_availability_known(&verdict, FM_GOOD_MS + 1), FM_KNOWN_NOT); /* asked again after some time */
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(how_long_it_holds), cmocka_unit_test(lists),
                                       cmocka_unit_test(loads_count_too), cmocka_unit_test(jobs_count_too),
                                       cmocka_unit_test(a_good_job_ends_a_bad_verdict)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
