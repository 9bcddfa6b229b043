/*
 * Confirmation: the question and its state. A state is valid only for one request, for the same things to close, for a
 * limited time, and once.
 */
#include "backends/fake.h"
#include "commands/confirm.h"
#include "desktop/refuse.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

static const char desktop[] =
    "{\"monitors\":[{\"area\":[0,0,1920,1080],\"primary\":true}],"
    "\"windows\":[{\"id\":\"w1\",\"class\":\"XTerm\",\"title\":\"a\",\"bounds\":[0,0,9,9]},"
    "{\"id\":\"w2\",\"class\":\"XTerm\",\"title\":\"b\",\"bounds\":[0,0,9,9]}],"
    "\"tabs\":[{\"id\":\"t1\",\"window\":\"1\",\"title\":\"One\",\"url\":\"https://a.example/\"},"
    "{\"id\":\"t2\",\"window\":\"1\",\"title\":\"Two\\u001b[2J\\\" \\u202e\",\"url\":\"https://b.example/\"},"
    "{\"id\":\"t3\",\"window\":\"1\",\"title\":\"Three\",\"url\":\"https://c.example/\"}],"
    "\"rules\":[{\"on\":\"tab.activate "
    "t1\",\"do\":{\"window.open\":{\"id\":\"w3\",\"class\":\"XTerm\",\"title\":\"c\"}}},"
    "{\"on\":\"tab.activate t2\",\"do\":{\"tab.close\":\"t3\"}}]}";

struct fixture {
    struct sy_world world;
    struct sy_confirm confirm;
    struct json_object *request;
    struct sy_plan plan;
};

static void begin(struct fixture *fixture) {
    struct json_object *description = json_tokener_parse(desktop);
    struct fm_error error;
    *fixture = (struct fixture){.request = NULL};
    assert_int_equal(sy_fake_new(description, &fixture->world.desktop, &error), FM_OK);
    json_object_put(description);
    sy_confirm_init(&fixture->confirm);
}

static void drop_plan(struct fixture *fixture) {
    sy_plan_free(&fixture->plan);
    json_object_put(fixture->request);
    fixture->request = NULL;
}

/* Makes the plan of a request. */
static void plan(struct fixture *fixture, const char *request) {
    struct fm_error error = {.code = FM_OK};
    if (fixture->request) {
        drop_plan(fixture);
    }
    fixture->request = json_tokener_parse(request);
    assert_int_equal(sy_plan_envelope(&fixture->world, fixture->request, &fixture->plan, &error), FM_OK);
}

static void end(struct fixture *fixture) {
    drop_plan(fixture);
    sy_world_free(&fixture->world);
    fixture->world.desktop.backend->free(fixture->world.desktop.self);
}

static void expect(enum fm_code code, const struct fm_error *error, const char *reason) {
    assert_int_not_equal(code, FM_OK);
    assert_string_equal(sy_reason(error), reason);
}

#define CLOSE_APP "{\"commands\":[{\"type\":\"close_app\",\"app_name\":\"XTerm\"}]}"
#define CLOSE_AND_OPEN                                                                                                 \
    "{\"commands\":[{\"type\":\"close_tab\",\"tab_indices\":[1,2]},{\"type\":\"open_url\",\"url\":\"chatgpt\"}]}"
#define CLOSE(...) "{\"commands\":[{\"type\":\"close_tab\",\"tab_indices\":[" #__VA_ARGS__ "]}]}"

static void what_is_asked(void **state) {
    (void)state;
    static const struct {
        const char *request;
        bool asks;
        const char *text;
    } rows[] = {
        {CLOSE_APP, true, "Close XTerm (2 windows)?"},
        {CLOSE(1), false, "Close 1 tab: \"One\" (tab 1)?"},
        {CLOSE(1, 2), true, "Close 2 tabs: \"One\" (tab 1), \"Two[2J'\" (tab 2)?"},
        {CLOSE(3, 1, 2), true,
         "Close 3 tabs: \"One\" (tab 1), \"Two[2J'\" (tab 2), \"Three\" (tab 3)? No tab is left then, and Chrome "
         "quits."},
        {"{\"commands\":[{\"type\":\"close_tab\",\"tab_indices\":[1]},{\"type\":\"close_tab\",\"tab_indices\":[3]}]}",
         true, "Close 2 tabs: \"One\" (tab 1), \"Three\" (tab 3)?"},
        {"{\"commands\":[{\"type\":\"close_tab\",\"tab_indices\":[1]},{\"type\":\"close_tab\",\"tab_indices\":[1]}]}",
         false, "Close 1 tab: \"One\" (tab 1)?"},
        {"{\"commands\":[{\"type\":\"close_tab\",\"tab_indices\":[1]},{\"type\":\"close_app\",\"app_name\":\"XTerm\"}]"
         "}",
         true, "Close XTerm (2 windows)? Close 1 tab: \"One\" (tab 1)?"},
        {"{\"commands\":[{\"type\":\"switch_tab\",\"tab_index\":1},{\"type\":\"list_tabs\"},{\"type\":\"place_app\","
         "\"app_name\":\"XTerm\",\"monitor\":\"main\"}]}",
         false, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fixture fixture;
        struct sy_loss loss;
        struct fm_buf text;
        fm_buf_init(&text, 4096);
        begin(&fixture);
        plan(&fixture, rows[i].request);
        assert_int_equal(sy_loses(&fixture.plan, &loss), rows[i].asks);
        sy_confirm_text(&fixture.plan, &text);
        fm_buf_append_char(&text, '\0');
        assert_string_equal(text.data, rows[i].text);
        fm_buf_free(&text);
        end(&fixture);
    }
}

static void the_last_tab_is_asked_for(void **state) {
    (void)state;
    struct fixture fixture;
    struct sy_loss loss;
    struct fm_error error;
    begin(&fixture);
    for (int i = 1; i < 3; i++) {
        char id[] = {'t', (char)('0' + i), '\0'};
        assert_int_equal(fixture.world.desktop.backend->close_tab(fixture.world.desktop.self, id, &error), FM_OK);
    }
    plan(&fixture, CLOSE(1));
    assert_true(sy_loses(&fixture.plan, &loss));
    assert_true(loss.last_tab && loss.tabs == 1 && loss.windows == 0);
    end(&fixture);
}

static void it_holds_once(void **state) {
    (void)state;
    struct fixture fixture;
    char given[SY_STATE_SIZE];
    char other[SY_STATE_SIZE];
    struct fm_error error;
    begin(&fixture);
    plan(&fixture, CLOSE_APP);
    assert_int_equal(sy_confirm_issue(&fixture.confirm, &fixture.plan, 1000, given, &error), FM_OK);
    assert_int_equal(sy_confirm_issue(&fixture.confirm, &fixture.plan, 1000, other, &error), FM_OK);
    assert_string_not_equal(given, other);
    plan(&fixture,
         "{\"needs_clarification\":false,\"commands\":[{\"app_name\":\"XTerm\",\"type\":\"close_app\"}]}"); /* equal */
    assert_int_equal(sy_confirm_accept(&fixture.confirm, &fixture.plan, given, 1000 + SY_CONFIRM_MS - 1, &error),
                     FM_OK);
    expect(sy_confirm_accept(&fixture.confirm, &fixture.plan, given, 1000 + SY_CONFIRM_MS - 1, &error), &error,
           "denied");
    assert_int_equal(sy_confirm_accept(&fixture.confirm, &fixture.plan, other, 1000, &error), FM_OK);
    expect(sy_confirm_accept(&fixture.confirm, &fixture.plan, other, 1000, &error), &error, "denied");
    end(&fixture);
}

static void it_holds_for_a_time(void **state) {
    (void)state;
    struct fixture fixture;
    char given[SY_STATE_SIZE];
    struct fm_error error;
    begin(&fixture);
    plan(&fixture, CLOSE_APP);
    assert_int_equal(sy_confirm_issue(&fixture.confirm, &fixture.plan, 1000, given, &error), FM_OK);
    expect(sy_confirm_accept(&fixture.confirm, &fixture.plan, given, 1000 + SY_CONFIRM_MS, &error), &error, "timeout");
    end(&fixture);
}

static void it_holds_for_one_request(void **state) {
    (void)state;
    struct fixture fixture;
    char given[SY_STATE_SIZE];
    struct fm_error error;
    begin(&fixture);
    plan(&fixture, CLOSE(1, 2));
    assert_int_equal(sy_confirm_issue(&fixture.confirm, &fixture.plan, 0, given, &error), FM_OK);
    static const char *const others[] = {CLOSE(1, 3), CLOSE(1), CLOSE(2, 1), CLOSE(1, 2, 3), CLOSE_APP, CLOSE_AND_OPEN};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        plan(&fixture, others[i]);
        expect(sy_confirm_accept(&fixture.confirm, &fixture.plan, given, 0, &error), &error, "denied");
    }
    plan(&fixture, CLOSE(1, 2));
    assert_int_equal(sy_confirm_accept(&fixture.confirm, &fixture.plan, given, 0, &error), FM_OK);
    end(&fixture);
}

/* Something that the request concerns changes between the question and the answer. */
static void it_holds_for_what_was_there(void **state) {
    (void)state;
    struct fixture fixture;
    char given[SY_STATE_SIZE];
    struct fm_error error;
    const struct sy_desktop *at = &fixture.world.desktop;
    begin(&fixture);
    plan(&fixture, CLOSE_APP);
    assert_int_equal(sy_confirm_issue(&fixture.confirm, &fixture.plan, 0, given, &error), FM_OK);
    assert_int_equal(at->backend->activate(at->self, "t1", &error), FM_OK); /* this opens another XTerm */
    plan(&fixture, CLOSE_APP);
    expect(sy_confirm_accept(&fixture.confirm, &fixture.plan, given, 0, &error), &error, "stale_snapshot");
    plan(&fixture, CLOSE(1, 2));
    assert_int_equal(sy_confirm_issue(&fixture.confirm, &fixture.plan, 0, given, &error), FM_OK);
    assert_int_equal(at->backend->activate(at->self, "t2", &error), FM_OK); /* now tabs 1 and 2 are all tabs */
    plan(&fixture, CLOSE(1, 2));
    expect(sy_confirm_accept(&fixture.confirm, &fixture.plan, given, 0, &error), &error, "stale_snapshot");
    end(&fixture);
}

/* Pages with very long addresses: each tab has an address of a megabyte. */
static void it_holds_for_long_addresses(void **state) {
    (void)state;
    enum { SIZE = 1 << 20 };
    struct fixture fixture;
    char given[SY_STATE_SIZE];
    struct fm_error error;
    char *url = calloc(1, SIZE + 1);
    assert_non_null(url);
    memset(url, 'x', SIZE);
    memcpy(url, "data:,", strlen("data:,"));
    begin(&fixture);
    plan(&fixture, CLOSE(1, 2));
    for (size_t i = 0; i < 2; i++) {
        free(fixture.plan.snapshot.raw_tabs.at[i].url);
        fixture.plan.snapshot.raw_tabs.at[i].url = strdup(url);
    }
    assert_int_equal(sy_confirm_issue(&fixture.confirm, &fixture.plan, 0, given, &error), FM_OK);
    fixture.plan.snapshot.raw_tabs.at[1].url[SIZE - 1] = 'y'; /* another page */
    expect(sy_confirm_accept(&fixture.confirm, &fixture.plan, given, 0, &error), &error, "stale_snapshot");
    fixture.plan.snapshot.raw_tabs.at[1].url[SIZE - 1] = 'x';
    assert_int_equal(sy_confirm_accept(&fixture.confirm, &fixture.plan, given, 0, &error), FM_OK);
    free(url);
    end(&fixture);
}

static void a_forged_state_is_refused(void **state) {
    (void)state;
    struct fixture fixture;
    struct sy_confirm other;
    char given[SY_STATE_SIZE + 1];
    struct fm_error error;
    begin(&fixture);
    sy_confirm_init(&other);
    plan(&fixture, CLOSE_APP);
    assert_int_equal(sy_confirm_issue(&other, &fixture.plan, 0, given, &error), FM_OK);
    expect(sy_confirm_accept(&fixture.confirm, &fixture.plan, given, 0, &error), &error, "denied");
    assert_int_equal(sy_confirm_issue(&fixture.confirm, &fixture.plan, 0, given, &error), FM_OK);
    for (size_t i = 0; i < SY_STATE_SIZE - 1; i++) {
        static const char digits[] = "0f\x7fg";
        for (size_t d = 0; digits[d]; d++) {
            char before = given[i];
            if (before != digits[d]) {
                given[i] = digits[d];
                expect(sy_confirm_accept(&fixture.confirm, &fixture.plan, given, 0, &error), &error, "denied");
                given[i] = before;
            }
        }
    }
    given[SY_STATE_SIZE - 1] = '0';
    given[SY_STATE_SIZE] = '\0';
    expect(sy_confirm_accept(&fixture.confirm, &fixture.plan, given, 0, &error), &error, "denied");
    given[SY_STATE_SIZE - 2] = '\0';
    expect(sy_confirm_accept(&fixture.confirm, &fixture.plan, given, 0, &error), &error, "denied");
    expect(sy_confirm_accept(&fixture.confirm, &fixture.plan, "", 0, &error), &error, "denied");
    end(&fixture);
}

/*
 * More states than can be remembered: the next one is refused until the oldest have expired, and none is accepted
 * twice.
 */
static void too_many_at_once(void **state) {
    (void)state;
    struct fixture fixture;
    char first[SY_STATE_SIZE];
    char given[SY_STATE_SIZE];
    struct fm_error error;
    begin(&fixture);
    plan(&fixture, CLOSE_APP);
    for (size_t i = 0; i < SY_CONFIRM_USED_MAX; i++) {
        assert_int_equal(sy_confirm_issue(&fixture.confirm, &fixture.plan, 0, i ? given : first, &error), FM_OK);
        assert_int_equal(sy_confirm_accept(&fixture.confirm, &fixture.plan, i ? given : first, 0, &error), FM_OK);
    }
    assert_int_equal(sy_confirm_issue(&fixture.confirm, &fixture.plan, 1, given, &error), FM_OK);
    expect(sy_confirm_accept(&fixture.confirm, &fixture.plan, given, 1, &error), &error, "denied");
    expect(sy_confirm_accept(&fixture.confirm, &fixture.plan, first, 1, &error), &error, "denied");
    assert_int_equal(sy_confirm_accept(&fixture.confirm, &fixture.plan, given, SY_CONFIRM_MS, &error), FM_OK);
    end(&fixture);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_asked),
                                       cmocka_unit_test(the_last_tab_is_asked_for),
                                       cmocka_unit_test(it_holds_once),
                                       cmocka_unit_test(it_holds_for_a_time),
                                       cmocka_unit_test(it_holds_for_one_request),
                                       cmocka_unit_test(it_holds_for_what_was_there),
                                       cmocka_unit_test(it_holds_for_long_addresses),
                                       cmocka_unit_test(a_forged_state_is_refused),
                                       cmocka_unit_test(too_many_at_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
