/* Approvals: each is settled once, by the first answer, in any order. */
#include "run/approval.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* the last one */
#include <cmocka.h>

#define TIMEOUT_MS 600000

struct seen {
    int count;
    enum gw_verdict verdict;
    char reason[GW_DENIAL_MAX + 1];
    char id[GW_APPROVAL_ID_LEN + 1];
    /* What the callback does, once: */
    struct gw_approvals *approvals;
    const char *answers; /* the id of the approval that it answers */
    struct seen *opens;
};

static void open_one(struct gw_approvals *approvals, const char *run, struct seen *seen, int64_t now);

static void decided(void *context, const char *id, enum gw_verdict verdict, const char *reason) {
    struct seen *seen = context;
    seen->count++;
    seen->verdict = verdict;
    snprintf(seen->reason, sizeof seen->reason, "%s", reason);
    assert_string_equal(id, seen->id);
    if (seen->answers) {
        /* an answer to itself is too late */
        assert_false(gw_approval_answer(seen->approvals, seen->id, true, NULL, 0));
        assert_true(gw_approval_answer(seen->approvals, seen->answers, true, NULL, 0));
    }
    if (seen->opens) {
        open_one(seen->approvals, "later", seen->opens, 0);
    }
}

static void open_one(struct gw_approvals *approvals, const char *run, struct seen *seen, int64_t now) {
    struct fm_error error;
    assert_int_equal(gw_approval_open(approvals, run, decided, seen, now, seen->id, &error), FM_OK);
}

static void an_answer_counts_once(void **state) {
    (void)state;
    struct gw_approvals *approvals = gw_approvals_new(TIMEOUT_MS);
    struct seen yes = {.count = 0};
    struct seen no = {.count = 0};
    assert_int_equal(gw_approvals_expire(approvals, 0), -1);
    open_one(approvals, "run", &yes, 0);
    open_one(approvals, "run", &no, 0);
    assert_int_equal(strlen(yes.id), GW_APPROVAL_ID_LEN);
    assert_int_equal(yes.id[14], '4');
    assert_string_not_equal(yes.id, no.id);
    assert_false(gw_approval_answer(approvals, "", true, NULL, 0));
    assert_false(gw_approval_answer(approvals, "00000000-0000-4000-8000-000000000000", true, NULL, 0));
    assert_true(gw_approval_answer(approvals, yes.id, true, "unused", 1));
    assert_false(gw_approval_answer(approvals, yes.id, true, NULL, 1));
    assert_false(gw_approval_answer(approvals, yes.id, false, NULL, 1));
    char reason[GW_DENIAL_MAX + 2];
    memset(reason, 'x', GW_DENIAL_MAX - 1);
    memcpy(reason + GW_DENIAL_MAX - 1, "\xc3\xa9", 3); /* the limit is inside a character */
    assert_true(gw_approval_answer(approvals, no.id, false, reason, 1));
    assert_int_equal(yes.count, 1);
    assert_int_equal(yes.verdict, GW_APPROVED);
    assert_string_equal(yes.reason, "");
    assert_int_equal(no.count, 1);
    assert_int_equal(no.verdict, GW_DENIED);
    assert_int_equal(strlen(no.reason), GW_DENIAL_MAX - 1);
    assert_int_equal(gw_approvals_count(approvals), 0);
    gw_approvals_free(approvals);
    assert_int_equal(yes.count + no.count, 2);
}

static void time_is_up(void **state) {
    (void)state;
    struct gw_approvals *approvals = gw_approvals_new(TIMEOUT_MS);
    struct seen seen[3] = {{.count = 0}};
    for (int i = 0; i < 3; i++) {
        open_one(approvals, "run", &seen[i], i * 10);
    }
    assert_int_equal(gw_approvals_expire(approvals, TIMEOUT_MS - 1), 1);
    assert_int_equal(seen[0].count, 0);
    assert_int_equal(gw_approvals_expire(approvals, TIMEOUT_MS), 10);
    assert_int_equal(seen[0].verdict, GW_EXPIRED);
    /* A late answer counts as late, even if the timer has not fired yet. */
    assert_false(gw_approval_answer(approvals, seen[1].id, true, NULL, TIMEOUT_MS + 10));
    assert_int_equal(seen[1].verdict, GW_EXPIRED);
    assert_true(gw_approval_answer(approvals, seen[2].id, true, NULL, TIMEOUT_MS + 19));
    assert_int_equal(gw_approvals_expire(approvals, 10 * TIMEOUT_MS), -1);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(seen[i].count, 1);
    }
    gw_approvals_free(approvals);
}

static void a_run_ends(void **state) {
    (void)state;
    struct gw_approvals *approvals = gw_approvals_new(TIMEOUT_MS);
    struct seen seen[5] = {{.count = 0}};
    const char *const runs[] = {"a", "b", "a", "b", "a"};
    for (int i = 0; i < 5; i++) {
        open_one(approvals, runs[i], &seen[i], 0);
    }
    gw_approvals_withdraw(approvals, "a");
    gw_approvals_withdraw(approvals, "a");
    for (int i = 0; i < 5; i++) {
        assert_int_equal(seen[i].count, *runs[i] == 'a');
    }
    assert_false(gw_approval_answer(approvals, seen[0].id, true, NULL, 0));
    struct seen last = {.count = 0};
    open_one(approvals, "c", &last, 0); /* the pointer to the list's end is still right */
    assert_int_equal(gw_approvals_count(approvals), 3);
    gw_approvals_free(approvals);
    assert_int_equal(seen[1].verdict, GW_WITHDRAWN);
    assert_int_equal(seen[1].count + seen[3].count + last.count, 3);
}

static void callbacks_change_the_list(void **state) {
    (void)state;
    struct gw_approvals *approvals = gw_approvals_new(TIMEOUT_MS);
    struct seen opened = {.count = 0};
    struct seen second = {.count = 0};
    struct seen first = {.approvals = approvals, .opens = &opened};
    open_one(approvals, "a", &first, 0);
    open_one(approvals, "a", &second, 0);
    first.answers = second.id;
    gw_approvals_withdraw(approvals, "a");
    assert_int_equal(first.verdict, GW_WITHDRAWN);
    assert_int_equal(second.count, 1);
    assert_int_equal(second.verdict, GW_APPROVED);
    assert_int_equal(opened.count, 0);
    assert_int_equal(gw_approvals_count(approvals), 1);
    gw_approvals_free(approvals);
    assert_int_equal(opened.count, 1);
}

/* The callback of a withdrawn approval answers the one before it in the list, which is then removed. */
static void a_callback_takes_the_one_before(void **state) {
    (void)state;
    struct gw_approvals *approvals = gw_approvals_new(TIMEOUT_MS);
    struct seen before = {.count = 0};
    struct seen other = {.count = 0};
    struct seen seen = {.approvals = approvals};
    open_one(approvals, "b", &before, 0);
    open_one(approvals, "a", &seen, 0);
    open_one(approvals, "a", &other, 0);
    seen.answers = before.id;
    gw_approvals_withdraw(approvals, "a");
    assert_int_equal(before.verdict, GW_APPROVED);
    assert_int_equal(other.count, 1);
    assert_int_equal(gw_approvals_count(approvals), 0);
    gw_approvals_free(approvals);
}

static void limits(void **state) {
    (void)state;
    static struct seen seen[GW_APPROVALS_MAX];
    struct gw_approvals *approvals = gw_approvals_new(TIMEOUT_MS);
    struct fm_error error;
    char id[GW_APPROVAL_ID_LEN + 1];
    char run[GW_RUN_ID_MAX + 2];
    memset(run, 'r', sizeof run - 1);
    run[sizeof run - 1] = '\0';
    assert_int_equal(gw_approval_open(approvals, run, decided, NULL, 0, id, &error), FM_INVALID_REQUEST);
    for (size_t i = 0; i < GW_APPROVALS_MAX; i++) {
        open_one(approvals, run + 1, &seen[i], 0);
    }
    assert_int_equal(gw_approval_open(approvals, "r", decided, NULL, 0, id, &error), FM_RATE_LIMITED);
    gw_approvals_withdraw(approvals, run + 1);
    assert_int_equal(gw_approvals_count(approvals), 0);
    gw_approvals_free(approvals);
    gw_approvals_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_counts_once),
        cmocka_unit_test(time_is_up),
        cmocka_unit_test(a_run_ends),
        cmocka_unit_test(callbacks_change_the_list),
        cmocka_unit_test(a_callback_takes_the_one_before),
        cmocka_unit_test(limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
