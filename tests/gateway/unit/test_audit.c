/* The audit: its records contain no secrets, and are complete after a crash. Also on a full disk. */
#include "loop.h"

#include "security/audit.h"

#include <json-c/json.h>
#include <signal.h>
#include <sys/resource.h>

static uv_loop_t loop;
static struct gw_journal *journal;
static struct gw_audit *audit;
static struct gw_known *known;
static struct fm_error error;
static struct fm_error last;
static bool done;

static const struct gw_audit_tool bash = {"0123456789abcdef0123456789abcdef", "r1", "c1", "bash"};

static void on_done(void *context, const struct fm_error *failure) {
    (void)context;
    last = failure ? *failure : (struct fm_error){.code = FM_OK};
    done = true;
}

static void wait_for_it(void) {
    done = false;
    run_until(&loop, &done);
}

static void start(bool on) {
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(gw_journal_open(&loop, &journal, &error), FM_OK);
    assert_int_equal(gw_audit_open(journal, folder_path, on, known, &audit, &error), FM_OK);
}

static void stop(void) {
    gw_audit_free(audit);
    gw_journal_close(journal);
    end_loop(&loop);
}

static int set_up(void **state) {
    (void)state;
    close(make_folder());
    known = gw_known_new();
    assert_true(gw_known_add(known, "the-real-token", 14));
    start(true);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    stop();
    gw_known_free(known);
    unlink(in_folder("audit.jsonl"));
    return rmdir(folder_path);
}

/* The last line of the file, as JSON; `*lines` is the number of lines. */
static struct json_object *last_line(size_t *lines) {
    size_t len = 0;
    char *text = file_text("audit.jsonl", &len);
    char *line = text;
    *lines = 0;
    assert_non_null(text);
    assert_int_equal(text[len - 1], '\n');
    for (char *at = text; *at; at++) {
        if (*at == '\n') {
            *at = '\0';
            (*lines)++;
            line = at[1] ? at + 1 : line;
        }
    }
    struct json_object *json = json_tokener_parse(line);
    assert_non_null(json);
    free(text);
    return json;
}

static const char *text_of(struct json_object *json, const char *key) {
    return json_object_get_string(json_object_object_get(json, key));
}

static void logins(void **state) {
    size_t lines;
    (void)state;
    assert_int_equal(gw_audit_auth(audit, false, "wrong: the-real-token", on_done, NULL, &error), FM_OK);
    wait_for_it();
    assert_int_equal(last.code, FM_OK);
    struct json_object *json = last_line(&lines);
    assert_string_equal(text_of(json, "event"), "auth");
    assert_string_equal(text_of(json, "ok"), "false");
    assert_string_equal(text_of(json, "detail"), "wrong: " GW_REDACTED);
    assert_true(json_object_get_int64(json_object_object_get(json, "time")) > 1000000000000);
    json_object_put(json);
}

static void tools(void **state) {
    const char *details = "{\"command\":\"API_KEY=abc123 curl x\",\"workingDir\":\"/home/me\"}";
    const struct gw_audit_result result = {"done", 0, 120, false, 31};
    size_t lines;
    (void)state;
    assert_int_equal(gw_audit_tool_before(audit, &bash, "user", details, strlen(details), on_done, NULL, &error),
                     FM_OK);
    wait_for_it();
    struct json_object *json = last_line(&lines);
    struct json_object *shown = json_object_object_get(json, "details");
    assert_string_equal(text_of(shown, "command"), "API_KEY=" GW_REDACTED " curl x");
    assert_string_equal(text_of(shown, "workingDir"), "/home/me");
    assert_string_equal(text_of(json, "approval"), "user");
    json_object_put(json);
    assert_int_equal(gw_audit_tool_after(audit, &bash, &result, on_done, NULL, &error), FM_OK);
    wait_for_it();
    json = last_line(&lines);
    assert_int_equal(lines, 2);
    assert_string_equal(text_of(json, "outcome"), "done");
    assert_string_equal(text_of(json, "exitCode"), "0");
    assert_string_equal(text_of(json, "outputBytes"), "120");
    json_object_put(json);
}

static void details_that_are_no_json_are_text(void **state) {
    static const char *const details[] = {"not json", "{\n\"a\":1}", ""};
    size_t lines;
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(
            gw_audit_tool_before(audit, &bash, NULL, details[i], strlen(details[i]), on_done, NULL, &error), FM_OK);
        wait_for_it();
        struct json_object *json = last_line(&lines);
        assert_int_equal(lines, i + 1);
        assert_string_equal(text_of(json, "details"), details[i]);
        json_object_put(json);
    }
}

static void long_details_are_cut_and_said_to_be(void **state) {
    size_t len = GW_AUDIT_DETAILS_MAX + 10;
    char *details = malloc(len);
    size_t lines;
    (void)state;
    memset(details, 'x', len);
    assert_int_equal(gw_audit_tool_before(audit, &bash, NULL, details, len, on_done, NULL, &error), FM_OK);
    wait_for_it();
    struct json_object *json = last_line(&lines);
    assert_int_equal(strlen(text_of(json, "details")), GW_AUDIT_DETAILS_MAX);
    assert_int_equal(json_object_get_int64(json_object_object_get(json, "detailsBytes")), len);
    json_object_put(json);
    free(details);
}

static void a_torn_line_is_cut(void **state) {
    size_t lines;
    (void)state;
    assert_int_equal(gw_audit_auth(audit, true, NULL, on_done, NULL, &error), FM_OK);
    stop();
    int fd = open(in_folder("audit.jsonl"), O_WRONLY | O_APPEND);
    for (int i = 0; i < 20000; i++) {
        assert_int_equal(write(fd, "torn torn", 9), 9);
    }
    close(fd);
    start(true);
    assert_int_equal(gw_audit_auth(audit, true, "second", on_done, NULL, &error), FM_OK);
    wait_for_it();
    struct json_object *json = last_line(&lines);
    assert_int_equal(lines, 2);
    assert_string_equal(text_of(json, "detail"), "second");
    json_object_put(json);
}

static void a_full_disk_is_reported(void **state) {
    const struct rlimit none = {1, RLIM_INFINITY};
    const struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
    size_t lines;
    (void)state;
    setrlimit(RLIMIT_FSIZE, &none);
    assert_int_equal(gw_audit_tool_before(audit, &bash, "user", "{}", 2, on_done, NULL, &error), FM_OK);
    wait_for_it();
    setrlimit(RLIMIT_FSIZE, &all);
    assert_int_equal(last.code, FM_UNAVAILABLE); /* because of this error, no tool runs */
    assert_int_equal(gw_audit_tool_before(audit, &bash, "user", "{}", 2, on_done, NULL, &error), FM_OK);
    wait_for_it();
    assert_int_equal(last.code, FM_OK);
    json_object_put(last_line(&lines));
    assert_int_equal(lines, 1);
}

static void it_may_be_off(void **state) {
    (void)state;
    stop();
    start(false);
    assert_int_equal(gw_audit_auth(audit, true, NULL, on_done, NULL, &error), FM_OK);
    wait_for_it();
    assert_int_equal(last.code, FM_OK);
    assert_int_equal(access(in_folder("audit.jsonl"), F_OK), -1);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(logins),
        TEST(tools),
        TEST(details_that_are_no_json_are_text),
        TEST(long_details_are_cut_and_said_to_be),
        TEST(a_torn_line_is_cut),
        TEST(a_full_disk_is_reported),
        TEST(it_may_be_off),
    };
    signal(SIGXFSZ, SIG_IGN);
    return cmocka_run_group_tests_name("audit", tests, NULL, NULL);
}
