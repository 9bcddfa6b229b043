/* Splitting snapshots into pieces, the end of a task, and tool calls through trampolines: everything that callbacks
 * leave for the engine thread. */
#include "engine/apple/inbox.h"
#include "engine/kit/kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdint.h>
#include <string.h>

#define SNAPSHOTS 5

/* Snapshots, and the pieces that they give, with "|" after each. */
static const struct row {
    const char *snapshots[SNAPSHOTS];
    const char *pieces;
    bool rewritten;
} rows[] = {
    {{"One", "One two", "One two three"}, "One| two| three|", false},
    {{"", "One"}, "One|", false},
    {{"One", "One", "One!"}, "One|!|", false},
    {{"One two", "One"}, "One two|", true},
    {{"One", "Two"}, "One|", true},
    {{"One", "Onx two", "One two"}, "One|", true},
    {{"caf\xc3\xa9", "caf\xc3\xa9s"}, "caf\xc3\xa9|s|", false},
    {{NULL}, "", false},
};

static void test_pieces(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fm_apple_task task;
        struct fm_buf piece;
        struct fm_buf all;
        bool rewritten = false;
        fm_apple_task_init(&task);
        fm_buf_init(&piece, 1024);
        fm_buf_init(&all, 1024);
        for (size_t k = 0; k < SNAPSHOTS && rows[i].snapshots[k]; k++) {
            char copy[64]; /* this text is gone after the callback */
            size_t len = strlen(rows[i].snapshots[k]);
            memcpy(copy, rows[i].snapshots[k], len + 1);
            fm_apple_on_text(0, copy, len, &task);
            memset(copy, 'X', sizeof copy);
        }
        assert_false(fm_apple_task_ended(&task));
        fm_apple_on_text(0, NULL, 0, &task);
        assert_true(fm_apple_task_ended(&task));
        while (fm_apple_next_piece(&task, &piece, &rewritten)) {
            fm_buf_append(&all, piece.data, piece.len);
            fm_buf_append_char(&all, '|');
        }
        fm_buf_append_char(&all, '\0');
        assert_string_equal(all.data, rows[i].pieces);
        assert_int_equal(rewritten, rows[i].rewritten);
        fm_buf_free(&piece);
        fm_buf_free(&all);
        fm_apple_task_free(&task);
    }
}

static void test_ends(void **state) {
    (void)state;
    struct fm_apple_task task;
    fm_apple_task_init(&task);
    fm_apple_on_text(7, "slow", 4, &task);
    assert_int_equal(task.status, 7);
    assert_string_equal(task.why.data, "slow");
    fm_apple_task_free(&task);
    fm_apple_task_init(&task);
    fm_apple_on_count(0, 12, NULL, &task);
    assert_true(task.ended && task.tokens == 12);
    assert_string_equal(task.why.data, "");
    fm_apple_task_free(&task);
    fm_apple_task_init(&task);
    fm_apple_on_content(0, &task, &task);
    assert_ptr_equal(task.content, &task);
    fm_apple_task_free(&task);
}

/* Each trampoline is a different function, and knows its number. */
static void test_trampolines(void **state) {
    (void)state;
    struct fm_apple_call calls[FM_APPLE_CALLS_MAX];
    for (unsigned i = 0; i < FM_TOOLS_MAX; i++) {
        fm_apple_trampoline(i)((fm_apple_ref)(uintptr_t)(i + 1), 1000 + i);
        for (unsigned k = 0; k < i; k++) {
            assert_true(fm_apple_trampoline(i) != fm_apple_trampoline(k));
        }
    }
    assert_int_equal(fm_apple_take_calls(calls), FM_TOOLS_MAX);
    for (unsigned i = 0; i < FM_TOOLS_MAX; i++) {
        assert_true(calls[i].tool == i && calls[i].call == 1000 + i &&
                    calls[i].arguments == (fm_apple_ref)(uintptr_t)(i + 1));
    }
    assert_int_equal(fm_apple_take_calls(calls), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_trampolines),
    };
    return fm_apple_inbox_init() ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
