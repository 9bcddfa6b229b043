/* Records, recovery and views, on texts in memory. */
#include "loop.h"

#include "sessions/recovery.h"
#include "sessions/transcript.h"
#include "sessions/views.h"

#include <json-c/json.h>

#define NOW 1764061300000

#define SESSION "{\"seq\":1,\"time\":1000,\"type\":\"session\",\"agentId\":\"assistant\"}\n"
#define START   "{\"seq\":2,\"time\":2000,\"type\":\"run_started\",\"runId\":\"r1\",\"requestKey\":\"k\"}\n"
#define HELLO                                                                                                          \
    "{\"seq\":3,\"time\":3000,\"type\":\"message\",\"runId\":\"r1\",\"role\":\"user\",\"content\":\"  "                \
    "Hello\\nthere\"}\n"
#define CALL                                                                                                           \
    "{\"seq\":4,\"time\":4000,\"type\":\"tool_call\",\"runId\":\"r1\",\"callId\":\"c1\",\"name\":\"bash\","            \
    "\"input\":{\"command\":\"ls\"}}\n"
#define OPENED                                                                                                         \
    "{\"seq\":5,\"time\":5000,\"type\":\"approval_opened\",\"runId\":\"r1\",\"approvalId\":\"a1\",\"callId\":\"c1\"}"  \
    "\n"
#define APPROVED                                                                                                       \
    "{\"seq\":6,\"time\":6000,\"type\":\"approval_settled\",\"runId\":\"r1\",\"approvalId\":\"a1\","                   \
    "\"verdict\":\"approved\"}\n"
#define DENIED                                                                                                         \
    "{\"seq\":6,\"time\":6000,\"type\":\"approval_settled\",\"runId\":\"r1\",\"approvalId\":\"a1\","                   \
    "\"verdict\":\"denied\"}\n"
#define RESULT                                                                                                         \
    "{\"seq\":8,\"time\":8000,\"type\":\"tool_result\",\"runId\":\"r1\",\"callId\":\"c1\",\"output\":\"a```b\"}\n"
#define ANSWER                                                                                                         \
    "{\"seq\":9,\"time\":9000,\"type\":\"message\",\"runId\":\"r1\",\"role\":\"assistant\",\"content\":\"Hi\"}\n"
#define ENDED "{\"seq\":10,\"time\":9500,\"type\":\"run_ended\",\"runId\":\"r1\",\"outcome\":\"final\"}\n"
#define WHOLE SESSION START HELLO CALL OPENED APPROVED RESULT ANSWER ENDED

static struct gw_recovered recovered;

static void recover_bytes(const char *text, size_t len) {
    struct fm_error error;
    char *copy = malloc(len + 1); /* of exactly this length, for the sanitizer */
    memcpy(copy, text, len);
    copy = realloc(copy, len ? len : 1);
    assert_int_equal(gw_recover(copy, len, NOW, &recovered, &error), FM_OK);
    free(copy);
}

/* The text after a start has repaired it. The caller frees it. */
static char *mended(const char *text, size_t *len) {
    const char *start = recovered.damaged ? recovered.kept.data : text;
    char *all = malloc(recovered.whole + recovered.closing.len + 1);
    if (recovered.whole) {
        memcpy(all, start, recovered.whole);
    }
    if (recovered.closing.len) {
        memcpy(all + recovered.whole, recovered.closing.data, recovered.closing.len);
    }
    *len = recovered.whole + recovered.closing.len;
    all[*len] = '\0';
    return all;
}

static const struct {
    const char *name;
    const char *text;
    size_t runs;
    size_t approvals;
    size_t tools;
    const char *outcome; /* the tool's outcome */
} rows[] = {
    {"nothing", "", 0, 0, 0, NULL},
    {"a session", SESSION, 0, 0, 0, NULL},
    {"all of it", WHOLE, 0, 0, 0, NULL},
    {"a run", SESSION START HELLO, 1, 0, 0, NULL},
    {"a tool that was called", SESSION START HELLO CALL, 1, 0, 1, "unknown"},
    {"a tool that waits", SESSION START HELLO CALL OPENED, 1, 1, 1, "not_run"},
    {"a tool that was approved", SESSION START HELLO CALL OPENED APPROVED, 1, 0, 1, "unknown"},
    {"a tool that was denied", SESSION START HELLO CALL OPENED DENIED, 1, 0, 1, "not_run"},
    {"a tool with its result", SESSION START HELLO CALL OPENED APPROVED RESULT, 1, 0, 0, NULL},
    {"another run's id",
     SESSION START CALL "{\"seq\":5,\"time\":1,\"type\":\"tool_result\",\"runId\":\"r2\",\"callId\":"
                        "\"c1\",\"output\":\"\"}\n",
     1, 0, 1, "unknown"},
    {"a type of later", SESSION "{\"seq\":2,\"time\":1,\"type\":\"weather\"}\n", 0, 0, 0, NULL},
};

static void what_is_open_is_closed(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t len;
        recover_bytes(rows[i].text, strlen(rows[i].text));
        if (recovered.damaged || recovered.runs != rows[i].runs || recovered.approvals != rows[i].approvals ||
            recovered.tools != rows[i].tools || recovered.whole != strlen(rows[i].text)) {
            fail_msg("%s: %zu runs, %zu approvals, %zu tools", rows[i].name, recovered.runs, recovered.approvals,
                     recovered.tools);
        }
        char *text = mended(rows[i].text, &len);
        char wanted[64];
        snprintf(wanted, sizeof wanted, "\"outcome\":\"%s\"", rows[i].outcome ? rows[i].outcome : "-");
        if (rows[i].outcome && !strstr(text, wanted)) {
            fail_msg("%s: %s", rows[i].name, text);
        }
        int64_t seq = recovered.facts.seq;
        gw_recovered_free(&recovered);
        recover_bytes(text, len); /* a second start has nothing to do */
        assert_int_equal(recovered.closing.len, 0);
        assert_int_equal(recovered.facts.seq, seq);
        assert_false(recovered.damaged);
        gw_recovered_free(&recovered);
        free(text);
    }
}

/* How many of the first `len` bytes are complete lines. */
static size_t whole_lines(const char *text, size_t len) {
    size_t end = 0;
    for (size_t i = 0; i < len; i++) {
        end = text[i] == '\n' ? i + 1 : end;
    }
    return end;
}

static void each_cut_is_mended(void **state) {
    const char *text = WHOLE;
    (void)state;
    for (size_t cut = 0; cut <= strlen(text); cut++) {
        size_t len;
        recover_bytes(text, cut);
        assert_false(recovered.damaged);
        assert_int_equal(recovered.whole, whole_lines(text, cut));
        char *after = mended(text, &len);
        gw_recovered_free(&recovered);
        recover_bytes(after, len);
        assert_int_equal(recovered.whole, len);
        assert_int_equal(recovered.closing.len, 0);
        assert_false(recovered.damaged);
        gw_recovered_free(&recovered);
        free(after);
    }
}

static const struct {
    const char *name;
    const char *text;
    const char *kept;
} damages[] = {
    {"no JSON", SESSION "{\"seq\":2,\n" HELLO, SESSION HELLO},
    {"at the end", SESSION "\n", SESSION},
    {"zeros", SESSION "\x01\x02\n" HELLO "tor", SESSION HELLO},
    {"seq again", SESSION HELLO HELLO, SESSION HELLO},
    {"seq falls", SESSION HELLO START, SESSION HELLO},
    {"a member is missing", SESSION "{\"seq\":2,\"time\":1,\"type\":\"message\",\"role\":\"user\"}\n", SESSION},
    {"a member of another kind", SESSION "{\"seq\":2,\"time\":1,\"type\":\"title\",\"title\":7}\n", SESSION},
    {"seq 0", "{\"seq\":0,\"time\":1,\"type\":\"title\",\"title\":\"x\"}\n" SESSION, SESSION},
    {"seq leaps", SESSION "{\"seq\":9223372036854775807,\"time\":1,\"type\":\"run_started\",\"runId\":\"r\"}\n",
     SESSION},
    {"nothing whole", "hello\n", ""},
    {"an array", "[]\n" SESSION, SESSION},
};

static void damage_is_told_from_a_tear(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        recover_bytes(damages[i].text, strlen(damages[i].text));
        if (!recovered.damaged || recovered.kept.len != strlen(damages[i].kept) ||
            memcmp(recovered.kept.data ? recovered.kept.data : "", damages[i].kept, recovered.kept.len) != 0 ||
            recovered.whole != recovered.kept.len) {
            fail_msg("%s: %.*s", damages[i].name, (int)recovered.kept.len, recovered.kept.data);
        }
        gw_recovered_free(&recovered);
    }
}

static void facts(void **state) {
    (void)state;
    recover_bytes(WHOLE, strlen(WHOLE));
    assert_string_equal(recovered.facts.title, "Hello");
    assert_string_equal(recovered.facts.agent_id, "assistant");
    assert_int_equal(recovered.facts.created_ms, 1000);
    assert_int_equal(recovered.facts.updated_ms, 9000);
    assert_int_equal(recovered.facts.messages, 2);
    assert_int_equal(recovered.facts.seq, 10);
    assert_false(recovered.facts.renamed);
    gw_recovered_free(&recovered);
    const char *renamed = SESSION "{\"seq\":2,\"time\":1,\"type\":\"title\",\"title\":\"My\\ttitle\"}\n" HELLO;
    recover_bytes(renamed, strlen(renamed));
    assert_string_equal(recovered.facts.title, "My title");
    assert_true(recovered.facts.renamed);
    gw_recovered_free(&recovered);
}

/* A time that is too large for an event's number. Multiplied by 1000, it may even wrap to a small number. */
static void ends_far_away_have_no_event(void **state) {
    static const char *const times[] = {"9007199254741", "18446744073709552", "9223372036854775807"};
    char text[256];
    (void)state;
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        int len =
            snprintf(text, sizeof text,
                     SESSION "{\"seq\":2,\"time\":%s,\"type\":\"run_ended\",\"runId\":\"r1\",\"outcome\":\"final\"}\n",
                     times[i]);
        recover_bytes(text, (size_t)len);
        assert_false(recovered.damaged);
        assert_int_equal(recovered.facts.event, 0);
        gw_recovered_free(&recovered);
    }
}

static void titles_are_cut_between_characters(void **state) {
    char title[GW_TITLE_MAX + 1];
    char text[4 * 300 + 1];
    (void)state;
    for (int i = 0; i < 300; i++) {
        memcpy(text + 4 * i, "\xf0\x9f\x98\x80", 5);
    }
    gw_title_set(title, text, 60);
    assert_int_equal(strlen(title), 240);
    gw_title_set(title, text, 300);
    assert_int_equal(strlen(title), GW_TITLE_MAX);
    gw_title_set(title, "", 60);
    assert_string_equal(title, "");
}

/* ---- views ---- */

static const struct {
    const char *name;
    struct gw_view view;
    const char *expected;
    bool cut;
} views[] = {
    {"messages",
     {.form = GW_VIEW_MESSAGES},
     "[{\"role\":\"user\",\"content\":\"  Hello\\nthere\",\"seq\":3,\"time\":3000,\"runId\":\"r1\"},"
     "{\"role\":\"assistant\",\"content\":\"Hi\",\"seq\":9,\"time\":9000,\"runId\":\"r1\"}]",
     false},
    {"the last message",
     {.form = GW_VIEW_MESSAGES, .limit = 1},
     "[{\"role\":\"assistant\",\"content\":\"Hi\",\"seq\":9,\"time\":9000,\"runId\":\"r1\"}]",
     false},
    {"no room", {.form = GW_VIEW_MESSAGES, .max_bytes = 2}, "[]", true},
    {"room for one",
     {.form = GW_VIEW_MESSAGES, .max_bytes = 100},
     "[{\"role\":\"assistant\",\"content\":\"Hi\",\"seq\":9,\"time\":9000,\"runId\":\"r1\"}]",
     true},
    {"records from there on",
     {.form = GW_VIEW_RECORDS, .after_seq = 9},
     "[{\"seq\":10,\"time\":9500,\"type\":\"run_ended\",\"runId\":\"r1\",\"outcome\":\"final\"}]",
     false},
    {"nothing new", {.form = GW_VIEW_RECORDS, .after_seq = 10}, "[]", false},
    {"itself", {.form = GW_VIEW_JSONL}, WHOLE, false},
    {"for people",
     {.form = GW_VIEW_MARKDOWN},
     "## user (1970-01-01 00:00 UTC)\n\n  Hello\nthere\n\n"
     "### Tool: bash (1970-01-01 00:00 UTC)\n\n```\n{\"command\":\"ls\"}\n```\n\n"
     "Approval: approved (1970-01-01 00:00 UTC)\n\n"
     "Result:\n\n````\na```b\n````\n\n"
     "## assistant (1970-01-01 00:00 UTC)\n\nHi\n\n",
     false},
};

static void views_show_what_is_there(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
        struct fm_buf out;
        bool cut;
        fm_buf_init(&out, 1u << 20);
        assert_true(gw_view_write(WHOLE, strlen(WHOLE), &views[i].view, &out, &cut));
        fm_buf_append(&out, "", 1);
        if (strcmp(out.data, views[i].expected) != 0 || cut != views[i].cut) {
            fail_msg("%s: %s", views[i].name, out.data);
        }
        fm_buf_free(&out);
    }
}

/* ---- random ---- */

/* Random bytes of a transcript are changed, removed and inserted: the result is always complete. */
static void random_damage_comes_out_whole(void **state) {
    (void)state;
    srand(11);
    for (int round = 0; round < 3000; round++) {
        char text[2 * sizeof WHOLE];
        size_t len = strlen(WHOLE);
        size_t again;
        memcpy(text, WHOLE, len + 1);
        for (int change = rand() % 4; change >= 0; change--) {
            size_t at = (size_t)rand() % len;
            switch (rand() % 3) {
            case 0: text[at] = (char)rand(); break;
            case 1:
                memmove(text + at, text + at + 1, len - at);
                len--;
                break;
            default:
                memmove(text + at + 1, text + at, len - at);
                text[at] = "\n\"{}\0"[rand() % 5];
                len++;
            }
        }
        recover_bytes(text, len);
        char *after = mended(text, &again);
        gw_recovered_free(&recovered);
        recover_bytes(after, again);
        assert_int_equal(recovered.whole, again);
        assert_int_equal(recovered.closing.len, 0);
        assert_false(recovered.damaged);
        gw_recovered_free(&recovered);
        free(after);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_open_is_closed),      cmocka_unit_test(each_cut_is_mended),
        cmocka_unit_test(damage_is_told_from_a_tear),  cmocka_unit_test(facts),
        cmocka_unit_test(ends_far_away_have_no_event), cmocka_unit_test(titles_are_cut_between_characters),
        cmocka_unit_test(views_show_what_is_there),    cmocka_unit_test(random_damage_comes_out_whole),
    };
    return cmocka_run_group_tests_name("recovery", tests, NULL, NULL);
}
