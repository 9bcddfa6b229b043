/*
 * Log lines: which are written, what they look like, and that a blocked stderr never blocks a log call. Each test
 * replaces stderr by a pipe and reads its output.
 */
#include "base/log.h"
#include "base/platform.h"
#include "wire.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

static int real_stderr = -1;
static int read_end = -1;

static int pipe_as_stderr(void **state) {
    (void)state;
    int write_end;
    assert_int_equal(fm_pipe(&read_end, &write_end), 0);
    real_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
    assert_true(dup2(write_end, STDERR_FILENO) >= 0);
    close(write_end);
    fm_set_nonblocking(read_end);
    return 0;
}

static int stderr_again(void **state) {
    (void)state;
    dup2(real_stderr, STDERR_FILENO);
    close(real_stderr);
    close(read_end);
    fm_log_init("fm", FM_LOG_OFF);
    fm_log_use_prefix(NULL);
    return 0;
}

/* Everything that was written to stderr since the last call. */
static const char *drain(void) {
    static char text[1u << 20];
    size_t len = 0;
    ssize_t got;
    while ((got = read(read_end, text + len, sizeof text - 1 - len)) > 0) {
        len += (size_t)got;
    }
    text[len] = '\0';
    return text;
}

/* Fills the pipe until it accepts nothing more. */
static void fill_stderr(void) {
    static const char block[4096] = {0};
    int flags = fcntl(STDERR_FILENO, F_GETFL);
    fcntl(STDERR_FILENO, F_SETFL, flags | O_NONBLOCK);
    while (write(STDERR_FILENO, block, sizeof block) > 0) {
    }
    fcntl(STDERR_FILENO, F_SETFL, flags);
}

static void levels(void **state) {
    (void)state;
    static const char *const lines[] = {"", "fm: error: e 1\n", "fm: warn: w\n", "fm: info: i\n", "fm: debug: d\n"};
    for (int level = FM_LOG_OFF; level <= FM_LOG_DEBUG; level++) {
        char expected[128] = "";
        for (int i = 0; i <= level; i++) {
            snprintf(expected + strlen(expected), sizeof expected - strlen(expected), "%s", lines[i]);
        }
        fm_log_init("fm", (enum fm_log_level)level);
        assert_int_equal(fm_log_level_get(), level);
        fm_log(FM_LOG_OFF, "never");
        fm_log(FM_LOG_ERROR, "e %d", 1);
        fm_log(FM_LOG_WARN, "w");
        fm_log(FM_LOG_INFO, "i");
        fm_log(FM_LOG_DEBUG, "d");
        assert_string_equal(drain(), expected);
    }
}

/* The form in session mode: the host's prefix, and a word for lines that need attention. */
static void prefix(void **state) {
    (void)state;
    fm_log_init("fm", FM_LOG_DEBUG);
    fm_log_use_prefix("[Kit] ");
    fm_log(FM_LOG_ERROR, "e %d", 1);
    fm_log(FM_LOG_WARN, "w");
    fm_log(FM_LOG_INFO, "i");
    fm_log(FM_LOG_DEBUG, "d");
    assert_string_equal(drain(), "[Kit] Error: e 1\n[Kit] Warning: w\n[Kit] i\n[Kit] Debug: d\n");
    fm_log_use_prefix("");
    fm_log(FM_LOG_INFO, "i");
    assert_string_equal(drain(), "i\n");
}

/* The line about dropped lines has the prefix too, and so has a shortened line. */
static void prefix_of_every_line(void **state) {
    (void)state;
    char longest[201];
    memset(longest, 'p', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    fm_log_init("fm", FM_LOG_WARN);
    fm_log_use_prefix(longest);
    fill_stderr();
    fm_log(FM_LOG_WARN, "lost");
    fm_log(FM_LOG_WARN, "lost");
    drain();
    fm_log(FM_LOG_WARN, "back");
    char expected[600];
    snprintf(expected, sizeof expected, "%sWarning: 2 log lines dropped\n%sWarning: back\n", longest, longest);
    assert_string_equal(drain(), expected);
    char text[3000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    fm_log(FM_LOG_WARN, "%s", text);
    const char *got = drain();
    assert_memory_equal(got, longest, 200);
    assert_in_range(strlen(got), 1000, 1024);
    assert_int_equal(got[strlen(got) - 1], '\n');
}

/*
 * Lines of another program: at each level except off, without control characters, and with a beginning that it can't
 * forge.
 */
static void relayed_lines(void **state) {
    (void)state;
    static const struct {
        const char *text;
        const char *shown;
        const char *prefixed;
    } rows[] = {
        {"abort: 3 < 2", "fake: abort: 3 < 2\n", "[Kit] abort: 3 < 2\n"},
        {"fake: info: load", "fake: info: load\n", "[Kit] fake: info: load\n"},
        {"[Kit] Error: e", "fake: [Kit] Error: e\n", "[Kit] Error: e\n"},
        {"fm-proxy: error: e", "fake: fm-proxy: error: e\n", "[Kit] fm-proxy: error: e\n"},
        {"\33]52;c;eA==\a", "fake: ?]52;c;eA==?\n", "[Kit] ?]52;c;eA==?\n"},
        {"a\rb\x7f\t\xc2\x9b", "fake: a?b????\n", "[Kit] a?b????\n"},
        {"\x9b" "2J \xff\xc3", "fake: ?2J ??\n", "[Kit] ?2J ??\n"}, /* C1 as a byte, invalid UTF-8, a cut character */
        {"\xc3\xa9 \xf0\x9f\x98\x80", "fake: \xc3\xa9 \xf0\x9f\x98\x80\n", "[Kit] \xc3\xa9 \xf0\x9f\x98\x80\n"},
    };
    for (int prefixed = 0; prefixed < 2; prefixed++) {
        fm_log_use_prefix(prefixed ? "[Kit] " : NULL);
        for (size_t i = 0; i < COUNT(rows); i++) {
            fm_log_init("fm", FM_LOG_ERROR);
            fm_log_relay("fake", rows[i].text, strlen(rows[i].text));
            assert_string_equal(drain(), prefixed ? rows[i].prefixed : rows[i].shown);
            fm_log_init("fm", FM_LOG_OFF);
            fm_log_relay("fake", rows[i].text, strlen(rows[i].text));
#ifndef FM_SANITIZE /* a sanitizer's reports are always shown */
            assert_string_equal(drain(), "");
#else
            drain();
#endif
        }
    }
}

static void relayed_lines_are_cut_and_counted(void **state) {
    (void)state;
    char text[3000];
    memset(text, 'x', sizeof text);
    text[2] = '\0'; /* an ordinary control character */
    fm_log_init("fm", FM_LOG_INFO);
    fm_log_relay("fake", text, sizeof text);
    const char *got = drain();
    assert_memory_equal(got, "fake: xx?xx", 11);
    assert_in_range(strlen(got), 1000, 1024);
    assert_int_equal(got[strlen(got) - 1], '\n');
    fill_stderr();
    fm_log_relay("fake", "lost", 4);
    drain();
    fm_log_relay("fake", "back", 4);
    assert_string_equal(drain(), "fm: 1 log lines dropped\nfake: back\n");
}

static void level_words(void **state) {
    (void)state;
    static const char *const words[] = {"off", "error", "warn", "info", "debug"};
    static const char *const wrong[] = {"", "Off", "ERROR", "warning", "inf", "debugs", "1", " info"};
    enum fm_log_level level;
    for (size_t i = 0; i < COUNT(words); i++) {
        assert_true(fm_log_level_parse(words[i], &level));
        assert_int_equal(level, i);
        assert_string_equal(fm_log_level_name(level), words[i]);
    }
    for (size_t i = 0; i < COUNT(wrong); i++) {
        assert_false(fm_log_level_parse(wrong[i], &level));
    }
}

static void long_lines_are_cut(void **state) {
    (void)state;
    char text[3000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    fm_log_init("fm", FM_LOG_ERROR);
    fm_log(FM_LOG_ERROR, "%s", text);
    fm_log(FM_LOG_ERROR, "next");
    const char *got = drain();
    const char *line_end = strchr(got, '\n');
    assert_non_null(line_end);
    assert_in_range(line_end - got, 1000, 1023);
    assert_string_equal(line_end + 1, "fm: error: next\n");
}

/* A full pipe: lines are dropped without waiting, and the next line that succeeds says how many. */
static void full_stderr_drops_and_counts(void **state) {
    (void)state;
    fm_log_init("fm", FM_LOG_WARN);
    fill_stderr();
    alarm(20); /* a log call that waits would never return */
    for (int i = 0; i < 1000; i++) {
        fm_log(FM_LOG_WARN, "lost %d", i);
        fm_log(FM_LOG_INFO, "not counted");
    }
    alarm(0);
    drain();
    fm_log(FM_LOG_WARN, "back");
    fm_log(FM_LOG_WARN, "on");
    assert_string_equal(drain(), "fm: 1000 log lines dropped\nfm: warn: back\nfm: warn: on\n");
}

static void closed_reader_is_survived(void **state) {
    (void)state;
    signal(SIGPIPE, SIG_IGN); /* as fm_watch_for_end does */
    fm_log_init("fm", FM_LOG_WARN);
    close(read_end);
    for (int i = 0; i < 3; i++) {
        fm_log(FM_LOG_WARN, "lost");
    }
    int write_end;
    assert_int_equal(fm_pipe(&read_end, &write_end), 0);
    fm_set_nonblocking(read_end);
    close(STDERR_FILENO); /* now there is no stderr at all */
    fm_log(FM_LOG_WARN, "lost");
    dup2(write_end, STDERR_FILENO);
    close(write_end);
    fm_log(FM_LOG_WARN, "back");
    assert_string_equal(drain(), "fm: 4 log lines dropped\nfm: warn: back\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(levels, pipe_as_stderr, stderr_again),
        cmocka_unit_test_setup_teardown(prefix, pipe_as_stderr, stderr_again),
        cmocka_unit_test_setup_teardown(prefix_of_every_line, pipe_as_stderr, stderr_again),
        cmocka_unit_test_setup_teardown(relayed_lines, pipe_as_stderr, stderr_again),
        cmocka_unit_test_setup_teardown(relayed_lines_are_cut_and_counted, pipe_as_stderr, stderr_again),
        cmocka_unit_test(level_words),
        cmocka_unit_test_setup_teardown(long_lines_are_cut, pipe_as_stderr, stderr_again),
        cmocka_unit_test_setup_teardown(full_stderr_drops_and_counts, pipe_as_stderr, stderr_again),
        cmocka_unit_test_setup_teardown(closed_reader_is_survived, pipe_as_stderr, stderr_again),
    };
    return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
