/*
 * An engine's stderr goes into our log: lines that come in pieces, the end, and pipes that do not end. Each test writes
 * to the engine's pipe, and reads our stderr from another pipe.
 */
#include "front/engines/relay.h"
#include "base/log.h"
#include "base/platform.h"
#include "wire.h"

#include <fcntl.h>
#include <unistd.h>

static int real_stderr = -1;
static int shown = -1;  /* reads our stderr */
static int engine = -1; /* the engine's end of its pipe */
static struct fm_relay relay;

static int set_up(void **state) {
    (void)state;
    int fd;
    assert_int_equal(fm_pipe(&shown, &fd), 0);
    real_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
    assert_true(dup2(fd, STDERR_FILENO) >= 0);
    close(fd);
    fm_set_nonblocking(shown);
    fm_log_init("fm", FM_LOG_ERROR);
    assert_int_equal(fm_pipe(&fd, &engine), 0);
    fm_relay_begin(&relay, fd, "fake");
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    dup2(real_stderr, STDERR_FILENO);
    close(real_stderr);
    close(shown);
    return 0;
}

static void expect_shown(const char *expected) {
    char text[4096];
    ssize_t got = read(shown, text, sizeof text - 1);
    text[got > 0 ? got : 0] = '\0';
    assert_string_equal(text, expected);
}

static void say(const char *text) {
    assert_true(fm_write_all(engine, text, strlen(text)));
}

static void lines_out_of_pieces(void **state) {
    (void)state;
    assert_false(fm_relay_take(&relay)); /* there is no data, and the call does not wait */
    say("on");
    assert_true(fm_relay_take(&relay));
    expect_shown("");
    say("e\ntwo\r\n\n\r\nthr");
    assert_true(fm_relay_take(&relay));
    expect_shown("fake: one\nfake: two\n");
    say("ee");
    close(engine);
    fm_relay_end(&relay);
    expect_shown("fake: three\n");
    assert_int_equal(relay.fd, -1);
    assert_false(fm_relay_take(&relay));
}

static void a_long_line_is_cut(void **state) {
    (void)state;
    char text[3 * FM_RELAY_LINE + 2];
    memset(text, 'x', sizeof text - 2);
    memcpy(text + sizeof text - 2, "\n", 2);
    for (int i = 0; i < 2; i++) {
        char got[4096];
        say(text);
        while (fm_relay_take(&relay)) {
        }
        assert_in_range(read(shown, got, sizeof got), 1000, 1024);
    }
    say("next\n");
    assert_true(fm_relay_take(&relay));
    expect_shown("fake: next\n");
    close(engine);
    fm_relay_end(&relay);
}

/* A process that outlives the engine still has the engine's stderr. */
static void an_end_does_not_wait_for_it(void **state) {
    (void)state;
    say("why I abort\nand");
    alarm(20);
    fm_relay_end(&relay);
    alarm(0);
    expect_shown("fake: why I abort\nfake: and\n");
    close(engine);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lines_out_of_pieces, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_long_line_is_cut, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_end_does_not_wait_for_it, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("relay", tests, NULL, NULL);
}
