/* The time limits of a request: reading them from `fm`, and which of them fires next. */
#include "surface/limits.h"
#include "surface/surface.h"

#include <json-c/json.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#define DAY "86400000"

/*
 * A request that arrived at 1,000,000; its prompt was accepted at 1,100,000, and a sign of progress came at 1,150,000.
 */
static void test_which_fires_next(void **state) {
    (void)state;
    static const struct {
        const char *fm;
        bool accepted;
        bool produced;
        const char *name;
        int64_t at; /* seconds after the arrival */
    } rows[] = {
        /* a default limit counts from the last sign of progress */
        {"{}", false, false, "queue", 150 + 120},
        {"{}", true, false, "no_progress", 150 + 60},
        {"{}", true, true, "no_progress", 150 + 60},
        {"{\"no_progress_timeout_ms\":" DAY "}", true, false, "first_token", 150 + 120},
        {"{\"no_progress_timeout_ms\":" DAY "}", true, true, "total", 600},
        /* a limit in the request is exact, even if it equals the default */
        {"{\"queue_timeout_ms\":120000}", false, false, "queue", 120},
        {"{\"first_token_timeout_ms\":90000}", true, false, "first_token", 100 + 90},
        {"{\"first_token_timeout_ms\":120000,\"no_progress_timeout_ms\":" DAY "}", true, false, "first_token", 100 + 120},
        {"{\"first_token_timeout_ms\":1}", false, false, "queue", 150 + 120},
        {"{\"first_token_timeout_ms\":1}", true, true, "no_progress", 150 + 60},
        {"{\"queue_timeout_ms\":1}", true, false, "no_progress", 150 + 60},
        {"{\"no_progress_timeout_ms\":1}", false, false, "queue", 150 + 120},
        /* the total always counts from the arrival */
        {"{\"timeout_ms\":200000}", true, true, "total", 200},
        {"{\"timeout_ms\":200000}", false, false, "total", 200},
        {"{\"queue_timeout_ms\":null,\"first_token_timeout_ms\":null}", false, false, "queue", 150 + 120},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct json_object *fm = json_tokener_parse(rows[i].fm);
        struct fm_limits limits = fm_limits_read(fm);
        struct fm_progress progress = {.accepted = rows[i].accepted,
                                       .produced = rows[i].produced,
                                       .arrived_ms = 1000000,
                                       .accepted_ms = 1100000,
                                       .sign_ms = 1150000};
        struct fm_limit next = fm_limit_next(&limits, &progress);
        assert_string_equal(next.name, rows[i].name);
        assert_int_equal(next.since_ms + next.length_ms, 1000000 + 1000 * rows[i].at);
        json_object_put(fm);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_which_fires_next)};
    return cmocka_run_group_tests_name("surface_limits", tests, NULL, NULL);
}
