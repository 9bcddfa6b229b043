/* The most recent loads that failed. */
#include "front/engines/failed_load.h"
#include "wire.h"

static struct fm_model model_of(const char *id, int64_t created) {
    return (struct fm_model){.id = (char *)(uintptr_t)id, .created = created};
}

static void remembered(void **state) {
    (void)state;
    struct fm_failed_loads failed = {0};
    struct fm_error error = {.code = FM_UNAVAILABLE, .detail = "cut short"};
    struct fm_model model = model_of("a", 5);
    struct fm_model other = model_of("ab", 5);
    struct fm_model replaced = model_of("a", 6);
    assert_null(fm_failed_load_of(&failed, &model, 0));
    fm_failed_load_note(&failed, &model, true, &error, 1000);
    assert_non_null(fm_failed_load_of(&failed, &model, 1000));
    assert_string_equal(fm_failed_load_of(&failed, &model, 1000)->error.detail, "cut short");
    assert_non_null(fm_failed_load_of(&failed, &model, 1000 + FM_FAILED_LOAD_MS - 1));
    assert_null(fm_failed_load_of(&failed, &model, 1000 + FM_FAILED_LOAD_MS));
    assert_null(fm_failed_load_of(&failed, &other, 1000));
    assert_null(fm_failed_load_of(&failed, &replaced, 1000));
    fm_failed_load_clear(&failed, &other);
    assert_non_null(fm_failed_load_of(&failed, &model, 1000));
    fm_failed_load_clear(&failed, &model);
    assert_null(fm_failed_load_of(&failed, &model, 1000));
}

static void several(void **state) {
    (void)state;
    struct fm_failed_loads failed = {0};
    struct fm_error error = {.code = FM_UNAVAILABLE};
    char id[2] = "a";
    for (; id[0] <= 'a' + FM_FAILED_LOADS_MAX; id[0]++) {
        struct fm_model model = model_of(id, 0);
        fm_failed_load_note(&failed, &model, true, &error, 0);
        fm_failed_load_note(&failed, &model, true, &error, 5); /* this note replaces the earlier one */
    }
    struct fm_model last = model_of("h", 0);
    assert_int_equal(fm_failed_load_of(&failed, &last, 10)->at_ms, 5);
    struct fm_model first = model_of("a", 0);
    assert_null(fm_failed_load_of(&failed, &first, 10));
}

static void a_long_id(void **state) {
    (void)state;
    char id[400];
    memset(id, 'x', sizeof id - 1);
    id[sizeof id - 1] = '\0';
    struct fm_failed_loads failed = {0};
    struct fm_error error = {.code = FM_UNAVAILABLE};
    struct fm_model model = model_of(id, 0);
    fm_failed_load_note(&failed, &model, false, &error, 0);
    assert_non_null(fm_failed_load_of(&failed, &model, 0));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(remembered), cmocka_unit_test(several),
                                       cmocka_unit_test(a_long_id)};
    return cmocka_run_group_tests_name("failed_load", tests, NULL, NULL);
}
