/*
 * Shared by the tests of modules with their own thread: a folder for the test, and a loop that runs until a condition
 * is met.
 */
#ifndef TESTS_GATEWAY_LOOP_H
#define TESTS_GATEWAY_LOOP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* needed by cmocka.h, so included before it */
#include <cmocka.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

static char folder_path[64];

/* Makes a new folder with the mode 0700. */
static inline int make_folder(void) {
    snprintf(folder_path, sizeof folder_path, "/tmp/fm-gw-test-XXXXXX");
    assert_non_null(mkdtemp(folder_path));
    int fd = open(folder_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static inline const char *in_folder(const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder_path, name);
    return path;
}

/* The content of a file; the caller frees it. NULL: the file does not exist. */
static inline char *file_text(const char *name, size_t *len) {
    FILE *file = fopen(in_folder(name), "rb");
    if (!file) {
        return NULL;
    }
    fseek(file, 0, SEEK_END);
    *len = (size_t)ftell(file);
    rewind(file);
    char *text = malloc(*len + 1);
    assert_int_equal(fread(text, 1, *len, file), *len);
    text[*len] = '\0';
    fclose(file);
    return text;
}

static inline void put_file(const char *name, const void *text, size_t len) {
    int fd = open(in_folder(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, len), len);
    close(fd);
}

static inline void run_until(uv_loop_t *loop, const bool *flag) {
    while (!*flag) {
        assert_true(uv_run(loop, UV_RUN_ONCE) || *flag);
    }
}

static inline void end_loop(uv_loop_t *loop) {
    uv_run(loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(loop), 0);
}

#endif
