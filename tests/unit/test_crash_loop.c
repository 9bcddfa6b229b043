/* The crash loop: how long requests are refused after an engine has died several times in a row. */
#include "front/engines/crash_loop.h"
#include "wire.h"

static struct fm_error death(void) {
    struct fm_error error;
    fm_fail(&error, FM_INTERNAL, "the engine was ended by signal 11");
    return error;
}

/* How long requests for `model` are refused at `now`, in ms, found by trying. */
static int64_t refused_ms(const struct fm_crash_loop *loop, const char *model, int64_t now) {
    struct fm_error error;
    int64_t until = now;
    while (fm_crash_loop_check(loop, model, until, &error) != FM_OK) {
        until++;
    }
    return until - now;
}

static void doubles_up_to_a_maximum(void **state) {
    (void)state;
    static const int64_t expected[] = {0, 0, 1000, 2000, 4000, 8000, 16000, 30000, 30000};
    struct fm_crash_loop loop = {0};
    struct fm_error error = death();
    assert_int_equal(refused_ms(&loop, "m", 0), 0);
    for (size_t i = 0; i < COUNT(expected); i++) {
        fm_crash_loop_note(&loop, "m", &error, 5000);
        assert_int_equal(refused_ms(&loop, "m", 5000), expected[i]);
    }
    fm_crash_loop_reset(&loop, "m");
    assert_int_equal(refused_ms(&loop, "m", 5000), 0);
    fm_crash_loop_free(&loop);
}

static void die(struct fm_crash_loop *loop, const char *model, int times) {
    struct fm_error error = death();
    for (int i = 0; i < times; i++) {
        fm_crash_loop_note(loop, model, &error, 0);
    }
}

static void each_model_has_its_own_count(void **state) {
    (void)state;
    struct fm_crash_loop loop = {0};
    for (int i = 0; i < 3; i++) { /* two models die in turns */
        assert_int_equal(refused_ms(&loop, "m", 0), 0);
        assert_int_equal(refused_ms(&loop, "other", 0), 0);
        die(&loop, "m", 1);
        die(&loop, "other", 1);
    }
    assert_int_equal(refused_ms(&loop, "m", 0), 1000);
    assert_int_equal(refused_ms(&loop, "other", 0), 1000);
    assert_int_equal(refused_ms(&loop, "third", 0), 0);
    fm_crash_loop_reset(&loop, "third");
    fm_crash_loop_reset(&loop, "other");
    assert_int_equal(refused_ms(&loop, "other", 0), 0);
    assert_int_equal(refused_ms(&loop, "m", 0), 1000);
    die(&loop, "other", 1); /* the count of `other` begins with one again */
    assert_int_equal(refused_ms(&loop, "other", 0), 0);
    fm_crash_loop_free(&loop);
    assert_int_equal(refused_ms(&loop, "m", 0), 0);
}

/* The ninth model replaces the model whose last death is the oldest. */
static void eight_models_are_remembered(void **state) {
    (void)state;
    struct fm_crash_loop loop = {0};
    for (char name[] = "a"; name[0] < 'i'; name[0]++) {
        die(&loop, name, 3);
    }
    die(&loop, "a", 1);
    die(&loop, "i", 3);
    assert_int_equal(refused_ms(&loop, "b", 0), 0);
    assert_int_equal(refused_ms(&loop, "a", 0), 2000);
    for (char name[] = "c"; name[0] <= 'i'; name[0]++) {
        assert_int_equal(refused_ms(&loop, name, 0), 1000);
    }
    fm_crash_loop_free(&loop);
}

static void tells_the_reason(void **state) {
    (void)state;
    struct fm_crash_loop loop = {0};
    struct fm_error error = death();
    for (int i = 0; i < 3; i++) {
        fm_crash_loop_note(&loop, "m", &error, 100);
    }
    assert_int_equal(fm_crash_loop_check(&loop, "m", 200, &error), FM_UNAVAILABLE);
    assert_string_equal(error.detail,
                        "the engine failed 3 times in a row with the model m and is tried again in 900 ms; "
                        "the last time: the engine was ended by signal 11");
    fm_crash_loop_free(&loop);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(doubles_up_to_a_maximum),
        cmocka_unit_test(each_model_has_its_own_count),
        cmocka_unit_test(eight_models_are_remembered),
        cmocka_unit_test(tells_the_reason),
    };
    return cmocka_run_group_tests_name("crash_loop", tests, NULL, NULL);
}
