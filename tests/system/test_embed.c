/* The vectors from fm-proxy, with the fake engine's model: kept vectors equal the vectors that fm-proxy would compute
 * again. FM_PROXY names the program. */
#include "match/model.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MS         20000
#define SIZE       8
#define OTHER_SIZE 1024

static char script[] = "/tmp/fm-embed-XXXXXX";

/* Helpers that start after this call have a model with vectors of this many numbers. */
static void install(int dimension) {
    FILE *file = fopen(script, "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\nFM_PROXY_ENGINE=fake FM_ENGINE_FAKE_DIMENSION=%d exec '%s' \"$@\"\n", dimension,
            getenv("FM_PROXY"));
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(script, 0700), 0);
}

static struct sy_proxy *start(void) {
    const struct sy_proxy_options how = {.path = script, .embedding_models = "."};
    struct sy_proxy *proxy = sy_proxy_new(&how);
    install(SIZE);
    assert_non_null(proxy);
    return proxy;
}

static float *take(const struct sy_picker *picker, const char *const *texts, size_t count, size_t *size) {
    float *vectors = NULL;
    struct fm_error error = {.code = FM_OK};
    enum fm_code code = picker->embed(picker->self, texts, count, MS, &vectors, size, &error);
    assert_string_equal(code ? error.detail : "", "");
    return vectors;
}

static void kept_ones_are_the_same(void **state) {
    static const char *const one[] = {"a", "b", "a"};
    static const char *const other[] = {"c", "a", "b"};
    struct sy_proxy *proxy = start();
    const struct sy_picker picker = sy_proxy_picker(proxy);
    size_t size = 0;
    (void)state;
    float *first = take(&picker, one, 3, &size);
    assert_int_equal(size, SIZE);
    assert_memory_equal(first, first + 2 * SIZE, SIZE * sizeof *first);
    assert_memory_not_equal(first, first + SIZE, SIZE * sizeof *first);
    float *second = take(&picker, other, 3, &size);
    assert_int_equal(size, SIZE);
    assert_memory_equal(second + SIZE, first, 2 * SIZE * sizeof *first);
    assert_memory_not_equal(second, second + SIZE, SIZE * sizeof *first);
    free(first);
    free(second);
    sy_proxy_free(proxy);
}

/* The only child of this process. */
static pid_t helper(void) {
    char path[64];
    intmax_t pid = 0;
    snprintf(path, sizeof path, "/proc/self/task/%ld/children", (long)getpid());
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char digits[32] = "";
    assert_non_null(fgets(digits, sizeof digits, file));
    fclose(file);
    pid = strtoimax(digits, NULL, 10);
    assert_true(pid > 1);
    return (pid_t)pid;
}

/* Its helper dies, and the next one has another model. */
static void another_model_has_other_vectors(void **state) {
    static const char *const one[] = {"a", "b"};
    static const char *const other[] = {"a", "c"};
    struct sy_proxy *proxy = start();
    const struct sy_picker picker = sy_proxy_picker(proxy);
    size_t size = 0;
    float *vectors = NULL;
    struct fm_error error = {.code = FM_OK};
    (void)state;
    free(take(&picker, one, 2, &size));
    install(OTHER_SIZE);
    assert_int_equal(kill(helper(), SIGKILL), 0);
    /* one try may notice the death, and another try that the model has changed */
    for (int i = 0; i < 3 && !vectors; i++) {
        (void)!picker.embed(picker.self, other, 2, MS, &vectors, &size, &error);
    }
    sy_proxy_free(proxy);
    proxy = sy_proxy_new(&(struct sy_proxy_options){.path = script, .embedding_models = "."});
    assert_non_null(proxy);
    const struct sy_picker fresh = sy_proxy_picker(proxy);
    float *again = take(&fresh, other, 2, &size);
    assert_int_equal(size, OTHER_SIZE);
    assert_non_null(vectors);
    assert_memory_equal(vectors, again, 2 * OTHER_SIZE * sizeof *again);
    free(vectors);
    free(again);
    sy_proxy_free(proxy);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(kept_ones_are_the_same),
                                       cmocka_unit_test(another_model_has_other_vectors)};
    int fd = mkstemp(script);
    if (fd < 0) {
        return 1;
    }
    close(fd);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return unlink(script) == 0 ? failed : 1;
}
