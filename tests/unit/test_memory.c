/* How much memory models take, and how the budget limits it. */
#include "front/engines/memory.h"
#include "wire.h"

static struct fm_model model_of(const char *id, int64_t created, int64_t size) {
    return (struct fm_model){.id = (char *)(uintptr_t)id, .created = created, .size = size};
}

static void remembered(void **state) {
    (void)state;
    struct fm_needs needs = {0};
    struct fm_model model = model_of("a", 5, 100);
    struct fm_model other = model_of("b", 5, 100);
    struct fm_model replaced = model_of("a", 6, 100);
    bool known = true;
    assert_int_equal(fm_needs_of(&needs, &model, &known), 100);
    assert_false(known);
    fm_needs_note(&needs, &model, 200);
    fm_needs_note(&needs, &model, 300);
    assert_int_equal(fm_needs_of(&needs, &model, &known), 300);
    assert_true(known);
    assert_int_equal(fm_needs_of(&needs, &other, NULL), 100);
    assert_int_equal(fm_needs_of(&needs, &replaced, NULL), 100);
    for (int i = 0; i < FM_NEEDS_MAX; i++) {
        char id[] = {'c', (char)('a' + i), '\0'};
        struct fm_model more = model_of(id, 0, 0);
        fm_needs_note(&needs, &more, 1);
    }
    assert_int_equal(fm_needs_of(&needs, &model, NULL), 100);
}

static void checked(void **state) {
    (void)state;
    struct fm_needs needs = {0};
    struct fm_model model = model_of("big", 0, (64 << 20) + 1);
    struct fm_error error = {.code = FM_OK};
    assert_int_equal(fm_needs_check(&needs, &model, 0, &error), FM_OK);
    assert_int_equal(fm_needs_check(&needs, &model, (64 << 20) + 1, &error), FM_OK);
    model.kind.context = 1 << 10;
    model.kind.kv_bytes = 1 << 20;
    assert_int_equal(fm_needs_check(&needs, &model, (64 << 20) + 1, &error), FM_OK);
    assert_int_equal(fm_needs_check(&needs, &model, 64 << 20, &error), FM_UNAVAILABLE);
    assert_string_equal(error.detail,
                        "the model big needs at least 65 MiB "
                        "of memory, and the option memoryBudget (--memory-budget) allows 64 MiB; 1153M would "
                        "be enough for this model, or choose a smaller one");
    fm_needs_note(&needs, &model, 80 << 20);
    assert_int_equal(fm_needs_check(&needs, &model, 80 << 20, &error), FM_OK);
    assert_int_equal(fm_needs_check(&needs, &model, (80 << 20) - 1, &error), FM_UNAVAILABLE);
    assert_string_equal(error.detail,
                        "the model big needs 80 MiB "
                        "of memory, and the option memoryBudget (--memory-budget) allows 79 MiB; 80M would "
                        "be enough for this model, or choose a smaller one");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(remembered), cmocka_unit_test(checked)};
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
