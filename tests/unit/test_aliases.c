/* Other names of models, as given by --aliases. */
#include "front/engines/aliases.h"
#include "wire.h"

#define A50  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define A255 A50 A50 A50 A50 A50 "aaaaa"

static void lists(void **state) {
    (void)state;
    static const char *const valid[] = {"", "a=b", "a=b,c=d", "a=b,", "*=default", "a=b=c", "a b=c d", A255 "=" A255};
    static const char *const invalid[] = {"a",    "=b",       "a=",    "a=b,c",    ",",
                                          ",a=b", "a=b,,c=d", "a=b,=", A255 "a=b", "b=" A255 "a"};
    for (size_t i = 0; i < COUNT(valid); i++) {
        assert_true(fm_aliases_valid(valid[i]));
    }
    for (size_t i = 0; i < COUNT(invalid); i++) {
        if (fm_aliases_valid(invalid[i])) {
            fail_msg("taken: %s", invalid[i]);
        }
    }
}

static void names(void **state) {
    (void)state;
    static const struct {
        const char *list;
        const char *name;
        const char *model; /* NULL: it is not an alias */
    } cases[] = {
        {NULL, "a", NULL},     {"", "a", NULL},       {"a=b", "a", "b"},     {"a=b", "b", NULL},
        {"a=b", "", NULL},     {"a=b", "A", NULL},    {"a=b", "aa", NULL},   {"aa=b", "a", NULL},
        {"a=b,a=c", "a", "b"}, {"a=b,c=d", "c", "d"}, {"a=b=c", "a", "b=c"}, {"a=b,*=d", "a", "b"},
        {"*=d,a=b", "a", "b"}, {"*=d,a=b", "c", "d"}, {"*=d,*=e", "c", "d"}, {A255 "=" A255 ",a=b", A255, A255},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char model[FM_ALIAS_MAX + 1] = "";
        assert_int_equal(fm_aliases_find(cases[i].list, cases[i].name, model), cases[i].model != NULL);
        assert_string_equal(model, cases[i].model ? cases[i].model : "");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(lists), cmocka_unit_test(names)};
    return cmocka_run_group_tests_name("aliases", tests, NULL, NULL);
}
