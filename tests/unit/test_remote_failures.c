/* The errors for a server's refusal and for a failed transfer; Retry-After; secrets in texts. */
#include "engine/remote/failure.h"
#include "engine/remote/retry_after.h"

#include "wire.h"

#include <json-c/json.h>

#define SAYS(members) "{\"error\":{" members "}}"

static const struct row {
    long status;
    const char *body;
    const char *retry_after;
    const char *expected; /* code, reason, retry_ms, where the request may succeed, param */
} rows[] = {
    {400, SAYS("\"message\":\"no\""), "", "INVALID_REQUEST - 0 here -"},
    {400, SAYS("\"message\":\"no\",\"param\":\"temperature\""), "", "INVALID_REQUEST - 0 here temperature"},
    {400, SAYS("\"message\":\"no\",\"param\":\"max_output_tokens\""), "", "INVALID_REQUEST - 0 here max_tokens"},
    {400, SAYS("\"message\":\"no\",\"param\":\"text.format.schema\""), "", "INVALID_REQUEST - 0 here format"},
    {400, SAYS("\"message\":\"no\",\"param\":\"unheard_of\""), "", "INVALID_REQUEST - 0 here -"},
    {422, "{\"detail\":\"no\"}", "", "INVALID_REQUEST - 0 here -"},
    {400, SAYS("\"code\":\"context_length_exceeded\""), "", "CONTEXT_OVERFLOW - 0 elsewhere -"},
    {400, SAYS("\"type\":\"exceed_context_size_error\",\"code\":400"), "", "CONTEXT_OVERFLOW - 0 elsewhere -"},
    {400, "{\"message\":\"This model's maximum context length is 512 tokens\"}", "",
     "CONTEXT_OVERFLOW - 0 elsewhere -"},
    {400,
     "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"prompt is too long: 9 > 8\"}}",
     "", "CONTEXT_OVERFLOW - 0 elsewhere -"},
    {413, "", "", "CONTEXT_OVERFLOW - 0 elsewhere -"},
    {400, SAYS("\"code\":\"content_filter\""), "", "GUARDRAIL - 0 here -"},
    {401, SAYS("\"message\":\"bad key\""), "", "UNAVAILABLE AUTH_FAILED 0 here -"},
    {403, "<html>", "", "UNAVAILABLE AUTH_FAILED 0 here -"},
    {402, "", "", "UNAVAILABLE QUOTA 0 here -"},
    {429, SAYS("\"code\":\"insufficient_quota\""), "", "UNAVAILABLE QUOTA 0 here -"},
    {404, SAYS("\"code\":\"model_not_found\""), "", "NOT_FOUND - 0 elsewhere -"},
    {404, "", "", "NOT_FOUND - 0 elsewhere -"},
    {429, "", "", "RATE_LIMITED - 0 here -"},
    {429, "", "2", "RATE_LIMITED - 2000 here -"},
    {429, "", "Sun, 06 Nov 1994 08:50:37 GMT", "RATE_LIMITED - 60000 here -"},
    {429, "", "soon", "RATE_LIMITED - 0 here -"},
    {408, "", "", "OVERLOADED - 0 here -"},
    {500, SAYS("\"message\":\"the context size\""), "", "OVERLOADED - 0 again -"},
    {501, "", "", "INVALID_REQUEST - 0 elsewhere -"},
    {502, "<html>", "", "OVERLOADED - 0 untaken -"},
    {502, "", "1", "OVERLOADED - 1000 here -"},
    {503, "", "", "OVERLOADED - 0 here -"},
    {504, "", "", "OVERLOADED - 0 again -"},
    {505, "", "", "OVERLOADED - 0 here -"},
    {503, "", "1", "OVERLOADED - 1000 here -"},
    {529, "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}", "", "OVERLOADED - 0 here -"},
    {302, "", "", "UNAVAILABLE NOT_CONFIGURED 0 here -"},
    {308, "", "", "UNAVAILABLE NOT_CONFIGURED 0 here -"},
    {204, "", "", "INTERNAL - 0 here -"},
    {400, "[1]", "", "INVALID_REQUEST - 0 here -"},
    {400, "{\"error\":\"no\"}", "", "INVALID_REQUEST - 0 here -"},
    {400, "{\"error\":[]}", "", "INVALID_REQUEST - 0 here -"},
    {400, "{\"error\":", "", "INVALID_REQUEST - 0 here -"},
};

static const char *summary(const struct fm_error *error) {
    static char text[512];
    snprintf(text, sizeof text, "%s %s %lld %s %s", fm_code_name(error->code),
             error->reason_code[0] ? error->reason_code : "-", (long long)error->retry_ms,
             error->elsewhere                  ? "elsewhere"
             : error->again && error->untaken ? "untaken"
             : error->again                   ? "again"
                                              : "here",
             error->param[0] ? error->param : "-");
    return text;
}

static void statuses(void **state) {
    (void)state;
    const struct fm_secrets none = {.count = 0};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fm_error error = {.code = FM_OK};
        const struct fm_refusal refusal = {.host = "host",
                                           .status = rows[i].status,
                                           .body = rows[i].body,
                                           .len = strlen(rows[i].body),
                                           .retry_after = rows[i].retry_after,
                                           .retry_after_ms = "",
                                           .location = "https://other/",
                                           .now = 784111777};
        enum fm_code code = fm_failure_of_status(&refusal, &none, &error);
        assert_int_equal(code, error.code);
        expect_text(rows[i].body, "row", i, rows[i].expected, summary(&error));
        assert_memory_equal(error.detail, "host ", 5);
    }
}

static void events(void **state) {
    (void)state;
    static const struct {
        const char *object;
        const char *expected;
    } cases[] = {
        {"{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"x\"}}", "OVERLOADED - 0 here -"},
        {"{\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\"}}", "RATE_LIMITED - 0 here -"},
        {"{\"type\":\"error\",\"code\":\"server_error\",\"message\":\"x\"}", "OVERLOADED - 0 again -"},
        {"{\"error\":{\"code\":\"invalid_api_key\",\"type\":\"authentication_error\"}}",
         "UNAVAILABLE AUTH_FAILED 0 here -"},
        {"{\"error\":{\"type\":\"billing_error\"}}", "UNAVAILABLE QUOTA 0 here -"},
        {"{\"error\":{\"code\":500,\"type\":\"odd\"}}", "OVERLOADED - 0 again -"},
        {"{\"error\":{\"code\":400,\"type\":\"odd\"}}", "INVALID_REQUEST - 0 here -"},
        {"{\"error\":{\"code\":-32603,\"type\":\"odd\"}}", "OVERLOADED - 0 again -"},
        {"{\"error\":{\"message\":\"Stream error\",\"type\":\"stream_error\"}}", "OVERLOADED - 0 again -"},
        {"{\"error\":{\"code\":\"content_filter\"}}", "GUARDRAIL - 0 here -"},
        {"{\"error\":{\"code\":\"context_length_exceeded\"}}", "CONTEXT_OVERFLOW - 0 elsewhere -"},
        {"{}", "OVERLOADED - 0 again -"},
    };
    const struct fm_secrets none = {.count = 0};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct fm_error error = {.code = FM_OK};
        struct json_object *object = json_tokener_parse(cases[i].object);
        (void)fm_failure_of_event("host", object, &none, &error);
        expect_text(cases[i].object, "row", i, cases[i].expected, summary(&error));
        json_object_put(object);
    }
}

static void transfers(void **state) {
    (void)state;
    static const struct {
        int result;
        enum fm_transfer_phase phase;
        const char *expected;
        bool moves_on;
    } cases[] = {
        {6, FM_PHASE_CONNECTING, "UNAVAILABLE OFFLINE 0 here -", true},
        {7, FM_PHASE_CONNECTING, "UNAVAILABLE OFFLINE 0 here -", true},
        {28, FM_PHASE_CONNECTING, "UNAVAILABLE OFFLINE 0 here -", true},
        {35, FM_PHASE_CONNECTING, "UNAVAILABLE TLS_FAILED 0 here -", true},
        {60, FM_PHASE_CONNECTING, "UNAVAILABLE TLS_FAILED 0 here -", true},
        {77, FM_PHASE_CONNECTING, "UNAVAILABLE TLS_FAILED 0 here -", true},
        {56, FM_PHASE_WAITING, "OVERLOADED - 0 again -", true},
        {52, FM_PHASE_WAITING, "OVERLOADED - 0 again -", true},
        {28, FM_PHASE_WAITING, "OVERLOADED - 0 here -", true},
        {18, FM_PHASE_ANSWERING, "OVERLOADED - 0 again -", true},
        {28, FM_PHASE_ANSWERING, "OVERLOADED - 0 here -", true},
        {56, FM_PHASE_ANSWERING, "OVERLOADED - 0 again -", true},
    };
    const struct fm_secrets none = {.count = 0};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct fm_error error = {.code = FM_OK};
        (void)fm_failure_of_transfer("host", cases[i].result, "words", cases[i].phase, &none, &error);
        expect_text("transfer", "row", i, cases[i].expected, summary(&error));
        assert_int_equal(fm_failure_moves_on(&error), cases[i].moves_on);
    }
}

/* A request that is wrong is wrong for every server. */
static void what_does_not_move_on(void **state) {
    (void)state;
    assert_false(fm_failure_moves_on(&(struct fm_error){.code = FM_INVALID_REQUEST}));
    assert_false(fm_failure_moves_on(&(struct fm_error){.code = FM_GUARDRAIL}));
    assert_false(fm_failure_moves_on(&(struct fm_error){.code = FM_NOT_FOUND}));
    assert_true(fm_failure_moves_on(&(struct fm_error){.code = FM_NOT_FOUND, .elsewhere = true}));
}

static void retry_after(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t ms;
    } cases[] = {
        {"0", 0},
        {"1", 1000},
        {"1.5", 1500},
        {"7 ", 7000},
        {"99999999999", FM_RETRY_AFTER_MAX_MS},
        {"1e5", -1},
        {"-1", -1},
        {"+1", -1},
        {"0x10", -1},
        {"", -1},
        {".5", -1},
        {"1 2", -1},
        {"inf", -1},
        {"Sun, 06 Nov 1994 08:49:37 GMT", 0},
        {"Sun, 06 Nov 1994 08:49:38 GMT", 1000},
        {"Sun, 06 Nov 1994 08:49:36 GMT", 0},
        {"Sunday, 06-Nov-94 08:49:47 GMT", 10000},
        {"Sun Nov  6 08:49:47 1994", 10000},
        {"Sun, 06 Nov 2094 08:49:37 GMT", FM_RETRY_AFTER_MAX_MS},
        {"Sun, 06 Nov 1994 24:49:37 GMT", -1},
        {"Sun, 06 Nov 1994 08:60:37 GMT", -1},
        {"Sun, 32 Nov 1994 08:49:37 GMT", -1},
        {"Sun, 06 Foo 1994 08:49:37 GMT", -1},
        {"Sun, 06 Nov 1994", -1},
        {"Sun, 06 Nov 1994 08:49:37 CET", -1},
        {"06 Nov 1994 08:49:37 GMT", -1},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        if (fm_retry_after(cases[i].text, 784111777) != cases[i].ms) {
            fail_msg("%s: %lld", cases[i].text, (long long)fm_retry_after(cases[i].text, 784111777));
        }
    }
    assert_int_equal(fm_retry_after_ms("1500"), 1500);
    assert_int_equal(fm_retry_after_ms("x"), -1);
    assert_int_equal(fm_http_date("Thu, 01 Jan 1970 00:00:00 GMT"), 0);
    assert_int_equal(fm_http_date("Thu, 29 Feb 2024 12:00:00 GMT"), 1709208000);
    assert_int_equal(fm_http_date("Fri, 01 Mar 2024 00:00:00 GMT"), 1709251200);
}

static void masking(void **state) {
    (void)state;
    static const struct {
        const char *in;
        const char *out;
    } cases[] = {
        {"nothing of it", "nothing of it"},
        {"key sk-abcdefghijklmnop.", "key *******************."},
        {"twice sk-abcdefghijklmnop sk-abcdefghijklmnop", "twice ******************* *******************"},
        {"a part: cdefghij", "a part: ********"},
        {"a short part: cdefghi", "a short part: cdefghi"},
        {"the short one: tiny!", "the short one: ****!"},
        {"sk-abcde", "********"},
        {"xsk-abcdefghijklmnopx", "x*******************x"},
        {"sk%2Dabcdefgh%69jklmnop.", "***********************."},
        {"a part: cd%65%66gh%69%6a.", "a part: ****************."},
        {"of a query: a b/c+d=1", "of a query: *********"},
        {"of a query: a%20b%2fc%2Bd%3d1.", "of a query: *****************."},
        {"100%, %2", "100%, %2"},
        {"", ""},
    };
    struct fm_secrets secrets = {.count = 0};
    fm_secrets_add(&secrets, "sk-abcdefghijklmnop");
    fm_secrets_add(&secrets, "tiny");
    fm_secrets_add(&secrets, "a%20b%2Fc%2bd=1");
    fm_secrets_add(&secrets, "it");
    fm_secrets_add(&secrets, NULL);
    assert_int_equal(secrets.count, 3);
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[64];
        snprintf(text, sizeof text, "%s", cases[i].in);
        fm_secrets_mask(&secrets, text, strlen(text));
        expect_text(cases[i].in, "row", i, cases[i].out, text);
    }
}

/* A server's text becomes one line, without keys, and with a limited length. */
static void words(void **state) {
    (void)state;
    struct fm_error error = {.code = FM_OK};
    struct fm_secrets secrets = {.count = 0};
    char body[2048];
    char long_text[1000];
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    fm_secrets_add(&secrets, "sk-canary-0123456789");
    snprintf(body, sizeof body, SAYS("\"message\":\"bad key\\nsk-canary-0123456789 %s\""), long_text);
    const struct fm_refusal refusal = {.host = "host",
                                       .status = 401,
                                       .body = body,
                                       .len = strlen(body),
                                       .retry_after = "",
                                       .retry_after_ms = "",
                                       .location = ""};
    (void)fm_failure_of_status(&refusal, &secrets, &error);
    assert_null(strstr(error.detail, "canary"));
    assert_null(strchr(error.detail, '\n'));
    assert_non_null(strstr(error.detail, "bad key ********************"));
    assert_in_range(strlen(error.detail), 300, 360);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statuses),    cmocka_unit_test(events),
        cmocka_unit_test(transfers),   cmocka_unit_test(what_does_not_move_on),
        cmocka_unit_test(masking),     cmocka_unit_test(words),
        cmocka_unit_test(retry_after),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
