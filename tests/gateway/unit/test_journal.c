/* The journal: order, batches, a full disk, changes by other programs, and its end. */
#include "loop.h"

#include "base/private_files.h"
#include "sessions/journal.h"

#include <signal.h>
#include <sys/resource.h>

struct fixture {
    uv_loop_t loop;
    struct gw_journal *journal;
    struct gw_journal_file *file;
    int folder;
    size_t acknowledged;
    size_t failed;
    bool done;
    struct fm_error error;
};

static struct fixture f;

static void count(void *context, const struct fm_error *error) {
    f.acknowledged += !error;
    f.failed += error != NULL;
    if (error) {
        f.error = *error;
    }
    if (context) {
        *(bool *)context = true;
    }
}

static void append(const char *line, void *context) {
    struct fm_error error;
    assert_int_equal(gw_journal_append(f.file, line, strlen(line), count, context, &error), FM_OK);
}

static void append_and_wait(const char *line) {
    f.done = false;
    append(line, &f.done);
    run_until(&f.loop, &f.done);
}

static int set_up(void **state) {
    struct fm_error error;
    (void)state;
    memset(&f, 0, sizeof f);
    f.folder = make_folder();
    assert_int_equal(uv_loop_init(&f.loop), 0);
    assert_int_equal(gw_journal_open(&f.loop, &f.journal, &error), FM_OK);
    f.file = gw_journal_file_new(f.journal, f.folder, "x.jsonl", -1);
    assert_non_null(f.file);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    gw_journal_file_free(f.file, NULL, NULL);
    gw_journal_close(f.journal);
    end_loop(&f.loop);
    close(f.folder);
    unlink(in_folder("x.jsonl"));
    assert_int_equal(rmdir(folder_path), 0);
    return 0;
}

static void expect_file(const char *expected) {
    size_t len = 0;
    char *text = file_text("x.jsonl", &len);
    assert_non_null(text);
    assert_string_equal(text, expected);
    free(text);
}

static void it_is_on_the_disk_when_it_is_said(void **state) {
    struct stat info;
    (void)state;
    append_and_wait("one\n");
    expect_file("one\n");
    append_and_wait("two\n");
    expect_file("one\ntwo\n");
    assert_int_equal(stat(in_folder("x.jsonl"), &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
}

/* All writes that wait make one batch. Writes that come while it is written make the next batch. */
static void order_is_kept(void **state) {
    char expected[16 * 2000 + 1] = "";
    char line[16];
    size_t at = 0;
    (void)state;
    for (int i = 0; i < 2000; i++) {
        int len = snprintf(line, sizeof line, "line %d\n", i);
        memcpy(expected + at, line, (size_t)len + 1);
        at += (size_t)len;
        append(line, i == 1999 ? &f.done : NULL);
    }
    run_until(&f.loop, &f.done);
    assert_int_equal(f.acknowledged, 2000);
    expect_file(expected);
}

/* A full disk, imitated by a limit on the length of files. */
static void limit_files(rlim_t bytes) {
    const struct rlimit limit = {bytes, RLIM_INFINITY};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void a_full_disk_acknowledges_nothing(void **state) {
    (void)state;
    append_and_wait("one\n");
    limit_files(10);
    append_and_wait("a line that finds no room\n"); /* only the first 6 bytes of the line find room */
    assert_int_equal(f.failed, 1);
    assert_int_equal(f.error.code, FM_UNAVAILABLE);
    assert_non_null(strstr(f.error.detail, "x.jsonl"));
    expect_file("one\n");
    append_and_wait("two\n"); /* this fits */
    expect_file("one\ntwo\n");
    limit_files(RLIM_INFINITY);
    append_and_wait("a line that finds room\n");
    expect_file("one\ntwo\na line that finds room\n");
    assert_int_equal(f.acknowledged, 3);
}

/* The batch of a file is written completely or not at all, whatever its lines. */
static void random_limits_never_tear(void **state) {
    char expected[20000] = "";
    size_t at = 0;
    (void)state;
    srand(7);
    for (int round = 0; round < 300; round++) {
        char line[64];
        size_t before = f.acknowledged;
        int len =
            snprintf(line, sizeof line, "%d %.*s\n", round, rand() % 40, "........................................");
        limit_files((rlim_t)(at + (size_t)(rand() % 60)));
        append_and_wait(line);
        limit_files(RLIM_INFINITY);
        if (f.acknowledged > before) {
            memcpy(expected + at, line, (size_t)len + 1);
            at += (size_t)len;
        }
        if (at) {
            expect_file(expected);
        }
    }
    assert_in_range(f.acknowledged, 50, 250);
}

static void what_a_crash_left_is_cut(void **state) {
    (void)state;
    put_file("x.jsonl", "one\ntw", 6);
    gw_journal_file_free(f.file, NULL, NULL);
    f.file = gw_journal_file_new(f.journal, f.folder, "x.jsonl", 4);
    append_and_wait("three\n");
    expect_file("one\nthree\n");
}

static void another_program_is_not_overwritten(void **state) {
    (void)state;
    append_and_wait("one\n");
    put_file("x.jsonl", "one\nmore\n", 9);
    append_and_wait("two\n");
    assert_int_equal(f.failed, 1);
    assert_non_null(strstr(f.error.detail, "another program"));
    expect_file("one\nmore\n");
    put_file("x.jsonl", "o", 1);
    append_and_wait("two\n");
    assert_int_equal(f.failed, 2);
    expect_file("o");
}

static void a_file_that_is_gone_is_not_made_again(void **state) {
    (void)state;
    append_and_wait("one\n");
    unlink(in_folder("x.jsonl"));
    append_and_wait("two\n");
    assert_int_equal(f.failed, 1);
    assert_int_equal(access(in_folder("x.jsonl"), F_OK), -1);
}

static void too_much_may_not_wait(void **state) {
    struct fm_error error;
    size_t len = GW_JOURNAL_WAITING_MAX / 2 + 1;
    char *line = malloc(len);
    (void)state;
    memset(line, 'x', len);
    line[len - 1] = '\n';
    assert_int_equal(gw_journal_append(f.file, line, len, count, &f.done, &error), FM_OK);
    assert_int_equal(gw_journal_append(f.file, line, len, count, NULL, &error), FM_OVERLOADED);
    run_until(&f.loop, &f.done);
    assert_int_equal(gw_journal_append(f.file, line, 10, count, NULL, &error), FM_OK);
    free(line);
}

static char seen[8];

static enum fm_code look(void *context, struct fm_error *error) {
    size_t len = 0;
    char *text = file_text("x.jsonl", &len);
    (void)context;
    assert_in_range(len, 1, sizeof seen - 1);
    memcpy(seen, text, len + 1);
    free(text);
    return fm_fail(error, FM_NOT_FOUND, "nothing to see");
}

/* Queued work sees the writes that were queued before it, and no later ones. */
static void work_has_its_place(void **state) {
    struct fm_error error;
    (void)state;
    append("one\n", NULL);
    assert_int_equal(gw_journal_run(f.journal, look, count, NULL, &error), FM_OK);
    append("two\n", &f.done);
    run_until(&f.loop, &f.done);
    assert_string_equal(seen, "one\n");
    assert_int_equal(f.failed, 1);
    assert_int_equal(f.error.code, FM_NOT_FOUND);
    expect_file("one\ntwo\n");
}

static void append_more(void *context, const struct fm_error *error) {
    count(NULL, error);
    append(context, NULL);
}

static enum fm_code nothing(void *context, struct fm_error *error) {
    (void)context;
    (void)error;
    return FM_OK;
}

static void free_file(void *context, const struct fm_error *error) {
    (void)context;
    (void)error;
    gw_journal_file_free(f.file, NULL, NULL);
    f.file = NULL;
}

/* The end writes everything that waits, and what its callbacks add. */
static void the_end_waits(void **state) {
    struct fm_error error;
    (void)state;
    assert_int_equal(gw_journal_append(f.file, "one\n", 4, append_more, "two\n", &error), FM_OK);
    assert_int_equal(gw_journal_run(f.journal, nothing, free_file, NULL, &error), FM_OK);
    gw_journal_close(f.journal);
    assert_int_equal(f.acknowledged, 2);
    expect_file("one\ntwo\n");
    uv_run(&f.loop, UV_RUN_DEFAULT);
    assert_int_equal(gw_journal_open(&f.loop, &f.journal, &error), FM_OK);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(it_is_on_the_disk_when_it_is_said),
        TEST(order_is_kept),
        TEST(a_full_disk_acknowledges_nothing),
        TEST(random_limits_never_tear),
        TEST(what_a_crash_left_is_cut),
        TEST(another_program_is_not_overwritten),
        TEST(a_file_that_is_gone_is_not_made_again),
        TEST(too_much_may_not_wait),
        TEST(work_has_its_place),
        TEST(the_end_waits),
    };
    signal(SIGXFSZ, SIG_IGN);
    return cmocka_run_group_tests_name("journal", tests, NULL, NULL);
}
