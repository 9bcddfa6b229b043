/* Recent files, from a list as desktops write it. */
#include "desktop/recent.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BOOKMARK(uri, modified, private)                                                                               \
    "<bookmark href=\"" uri "\" added=\"2026-11-01T10:00:00Z\" modified=\"" modified                                   \
    "\" visited=\"2026-11-01T10:00:00Z\"><info><metadata owner=\"http://freedesktop.org\">"                            \
    "<mime:mime-type type=\"text/plain\"/>" private "<bookmark:applications><bookmark:application name=\"x\" "         \
                                                    "exec=\"&apos;x %u&apos;\" "                                       \
                                                    "modified=\"2026-11-01T10:00:00Z\" "                               \
                                                    "count=\"1\"/></bookmark:applications></metadata></info></"        \
                                                    "bookmark>"

static const char list[] = "<?xml version=\"1.0\" encoding=\"UTF-8\"?><xbel version=\"1.0\" "
                           "xmlns:bookmark=\"http://www.freedesktop.org/standards/desktop-bookmarks\" "
                           "xmlns:mime=\"http://www.freedesktop.org/standards/shared-mime-info\">" //
    BOOKMARK("file:///home/u/old.txt", "2026-11-01T10:00:00Z", "")                                 //
    BOOKMARK("file:///home/u/new%20one.txt", "2026-11-20T10:00:00Z", "")                           //
    BOOKMARK("file:///home/u/secret.txt", "2026-11-21T10:00:00Z", "<bookmark:private/>")           //
    BOOKMARK("sftp://host/home/u/far.txt", "2026-11-22T10:00:00Z", "")                             //
    "</xbel>";

/* GLib reads the variable once per process, so there is one folder. */
static char folder[] = "/tmp/fm-recent-XXXXXX";
static char path[sizeof folder + 32];

static void write_list(const char *text) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

static int set_up(void **state) {
    (void)state;
    if (!mkdtemp(folder)) {
        return -1;
    }
    snprintf(path, sizeof path, "%s/recently-used.xbel", folder);
    return setenv("XDG_DATA_HOME", folder, 1);
}

static int tear_down(void **state) {
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static void none_without_a_list(void **state) {
    (void)state;
    char *paths[4];
    assert_int_equal(sy_recent_files(paths, 4), 0);
    write_list("no XML <");
    assert_int_equal(sy_recent_files(paths, 4), 0);
    write_list("");
    assert_int_equal(sy_recent_files(paths, 4), 0);
}

static void the_latest_first(void **state) {
    (void)state;
    char *paths[4];
    write_list(list);
    assert_int_equal(sy_recent_files(paths, 4), 2);
    assert_string_equal(paths[0], "/home/u/new one.txt");
    assert_string_equal(paths[1], "/home/u/old.txt");
    free(paths[0]);
    free(paths[1]);
    assert_int_equal(sy_recent_files(paths, 1), 1);
    assert_string_equal(paths[0], "/home/u/new one.txt");
    free(paths[0]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(none_without_a_list), cmocka_unit_test(the_latest_first)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
