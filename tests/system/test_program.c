/* The programs of processes and of desktop entries, in one form. */
#include "desktop/program.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/fm-program-XXXXXX";
static char script[64];

#define SCRIPT     "#!/bin/sh\necho\nread line\n"
#define ARGS(text) text, sizeof text - 1 /* the text may contain NULs; the NUL at its end does not count */

static void is_made(const char *program, const char *args, size_t args_len, const char *path, const char *rest,
                    size_t rest_len) {
    struct sy_program runs;
    assert_true(sy_program_make(program, args, args_len, &runs));
    assert_int_equal(runs.len, strlen(path) + 1 + rest_len);
    assert_string_equal(runs.items, path);
    assert_memory_equal(runs.items + strlen(path) + 1, rest, rest_len);
    sy_program_free(&runs);
}

static void write_file(const char *path, const char *text, mode_t mode) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(chmod(path, mode), 0);
}

static void test_one_form(void **state) {
    char linked[96];
    char args[128];
    char sh[PATH_MAX];
    (void)state;
    assert_non_null(realpath("/bin/sh", sh));
    is_made("/bin/sh", ARGS("-c\0true\0"), sh, ARGS("-c\0true\0"));
    is_made("/bin/sh", "", 0, sh, "", 0);
    snprintf(linked, sizeof linked, "%s/link", folder);
    assert_int_equal(symlink(script, linked), 0);
    int len = snprintf(args, sizeof args, "%s%ca", linked, 0) + 1;
    is_made("/bin/sh", args, (size_t)len, script, ARGS("a\0"));
    is_made(linked, ARGS("a\0"), script, ARGS("a\0"));
    assert_int_equal(chmod(script, 0600), 0); /* now the script is a text to read, and can't be run */
    is_made("/bin/sh", args, (size_t)len, sh, args, (size_t)len);
    assert_int_equal(chmod(script, 0700), 0);
    assert_int_equal(unlink(linked), 0);
    struct sy_program runs;
    assert_true(sy_program_make("/no/such/program", ARGS("a\0"), &runs));
    assert_int_equal(runs.len, 0);
}

/* If an interpreter runs a script, the script counts as the program. An editor counts as itself, whatever file it
 * shows. */
static void test_a_script_is_its_interpreters(void **state) {
    static const char *const heads[] = {"#!/bin/sh\n", "#! /bin/sh -e\n", "#!/usr/bin/env sh\n",
                                        "#!/usr/bin/env -S A=b sh -e\n"};
    char cat[PATH_MAX];
    char args[128];
    (void)state;
    assert_non_null(realpath("/bin/cat", cat));
    int len = snprintf(args, sizeof args, "%s", script) + 1;
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        write_file(script, heads[i], 0700);
        is_made("/bin/sh", args, (size_t)len, script, "", 0);
        is_made("/bin/cat", args, (size_t)len, cat, args, (size_t)len);
    }
    write_file(script, "#!\n", 0700);
    is_made("/bin/cat", args, (size_t)len, cat, args, (size_t)len);
    write_file(script, "#!/usr/bin/env\n", 0700);
    is_made("/bin/cat", args, (size_t)len, cat, args, (size_t)len);
    write_file(script, SCRIPT, 0700);
}

/* Starts the program, and waits until it runs, which it reports by a line on stdout. */
static pid_t start(const char *program, const char *const *argv) {
    int told[2];
    int held[2];
    char byte;
    assert_int_equal(pipe(told), 0);
    assert_int_equal(pipe(held), 0);
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* so that it does not outlive a failing test */
        dup2(held[0], STDIN_FILENO); /* reading gives no data and no end, because the child also holds the other end */
        dup2(told[1], STDOUT_FILENO);
        execv(program, (char *const *)argv);
        _exit(127);
    }
    close(told[1]);
    assert_int_equal(read(told[0], &byte, 1), 1);
    close(told[0]);
    close(held[0]);
    close(held[1]);
    return pid;
}

static void end(pid_t pid) {
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_of_a_script(void **state) {
    const char *const argv[] = {script, "one", "two", NULL};
    struct sy_program runs;
    struct sy_program entry;
    (void)state;
    pid_t pid = start(script, argv);
    assert_true(sy_program_of_process(pid, &runs));
    assert_true(sy_program_make(script, ARGS("one\0"), &entry));
    assert_true(sy_program_begins(&runs, &entry));
    sy_program_free(&entry);
    assert_true(sy_program_make(script, ARGS("on\0"), &entry));
    assert_false(sy_program_begins(&runs, &entry));
    sy_program_free(&entry);
    sy_program_free(&runs);
    end(pid);
    assert_true(sy_program_of_process(pid, &runs));
    assert_int_equal(runs.len, 0);
    assert_true(sy_program_of_process(0, &runs));
    assert_int_equal(runs.len, 0);
}

static void copy_shell(const char *path) {
    char piece[65536];
    size_t len;
    FILE *from = fopen("/bin/sh", "r");
    FILE *to = fopen(path, "w");
    assert_non_null(from);
    assert_non_null(to);
    while ((len = fread(piece, 1, sizeof piece, from)) > 0) {
        assert_int_equal(fwrite(piece, 1, len, to), len);
    }
    fclose(from);
    fclose(to);
    assert_int_equal(chmod(path, 0700), 0);
}

/* A new file replaces the program's file, as an update does. */
static void test_of_a_program_that_was_replaced(void **state) {
    char copy[96];
    const char *const argv[] = {copy, "-c", "echo; read line", NULL};
    struct sy_program runs;
    (void)state;
    snprintf(copy, sizeof copy, "%s/copy", folder);
    copy_shell(copy);
    pid_t pid = start(copy, argv);
    assert_int_equal(unlink(copy), 0);
    copy_shell(copy);
    assert_true(sy_program_of_process(pid, &runs));
    assert_int_not_equal(runs.len, 0);
    assert_string_equal(runs.items, copy);
    sy_program_free(&runs);
    end(pid);
    assert_int_equal(unlink(copy), 0);
}

static void test_what_is_not_known(void **state) {
    struct sy_program none = {.items = NULL};
    struct sy_program copy;
    struct sy_program some;
    (void)state;
    assert_true(sy_program_make("/bin/sh", "", 0, &some));
    assert_false(sy_program_begins(&some, &none));
    assert_false(sy_program_begins(&none, &some));
    assert_false(sy_program_begins(&none, &none));
    assert_true(sy_program_copy(&none, &copy));
    assert_int_equal(copy.len, 0);
    assert_true(sy_program_copy(&some, &copy));
    assert_true(sy_program_begins(&copy, &some));
    sy_program_free(&copy);
    sy_program_free(&some);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_form),
        cmocka_unit_test(test_a_script_is_its_interpreters),
        cmocka_unit_test(test_of_a_script),
        cmocka_unit_test(test_of_a_program_that_was_replaced),
        cmocka_unit_test(test_what_is_not_known),
    };
    if (!mkdtemp(folder)) {
        return 1;
    }
    snprintf(script, sizeof script, "%s/script", folder);
    write_file(script, SCRIPT, 0700);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return unlink(script) == 0 && rmdir(folder) == 0 ? failed : 1;
}
