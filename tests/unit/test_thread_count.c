/* How many threads compute: fewer where the machine has other work, all of them when that is over. */
#include "engine/llama/thread_count.h"
#include "wire.h"

#define STEP_US 10000 /* what a token takes */

/* A machine: how much of the processors `threads` threads get, where others want `busy` of its `cores`. */
static double share(int cores, double busy, int threads) {
    double room = cores - busy;
    double fair = (double)cores / 2;
    double most = room > fair ? room : fair;
    return threads < most ? threads : most;
}

static int64_t run(struct fm_thread_count *count, int cores, double busy, int64_t from_ms, int64_t for_ms) {
    int64_t now = from_ms;
    for (; now < from_ms + for_ms; now += STEP_US / 1000) {
        fm_thread_count_note(count, now, STEP_US, (int64_t)(STEP_US * share(cores, busy, count->now)));
    }
    return now;
}

static void all_of_a_free_machine(void **state) {
    (void)state;
    static const int cores[] = {1, 2, 4, 16};
    for (size_t i = 0; i < COUNT(cores); i++) {
        struct fm_thread_count count;
        fm_thread_count_init(&count, cores[i]);
        run(&count, cores[i], 0.1, 0, 60000); /* a desktop's small programs */
        assert_int_equal(count.now, cores[i]);
    }
}

static void as_many_as_are_not_held_up(void **state) {
    (void)state;
    static const struct {
        int cores;
        double busy;
        int expected;
    } rows[] = {{1, 1, 1}, {2, 1, 1}, {2, 2, 1}, {4, 1, 3}, {8, 1, 7}, {8, 4, 4}, {8, 8, 4}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fm_thread_count count;
        fm_thread_count_init(&count, rows[i].cores);
        run(&count, rows[i].cores, rows[i].busy, 0, 200);
        assert_int_equal(count.now, rows[i].expected);
    }
}

static void all_again_when_the_machine_is_free(void **state) {
    (void)state;
    struct fm_thread_count count;
    fm_thread_count_init(&count, 8);
    int64_t now = run(&count, 8, 7.5, 0, 30000);
    assert_int_equal(count.now, 4);
    now = run(&count, 8, 0, now, 5000);
    assert_int_equal(count.now, 8);
    run(&count, 8, 1, now, 200); /* at once */
    assert_int_equal(count.now, 7);
}

/* How much of a minute beside a busy neighbour more threads are tried than there is room for. */
static void trials_are_rare(void **state) {
    (void)state;
    struct fm_thread_count count;
    int64_t tried = 0;
    fm_thread_count_init(&count, 2);
    for (int64_t now = 0; now < 60000; now += STEP_US / 1000) {
        tried += count.now == 2;
        fm_thread_count_note(&count, now, STEP_US, (int64_t)(STEP_US * share(2, 2, count.now)));
    }
    assert_in_range(tried, 8 * 8, 14 * 8); /* a window is 8 steps; each 8 s, and some more in the beginning */
}

/* A trial that goes well for a moment only does not come back at once. */
static void short_luck_is_no_luck(void **state) {
    (void)state;
    struct fm_thread_count count;
    fm_thread_count_init(&count, 2);
    int changes = 0;
    for (int64_t now = 0; now < 60000; now += STEP_US / 1000) {
        int before = count.now;
        double busy = now % 400 < 200 ? 0 : 2;
        fm_thread_count_note(&count, now, STEP_US, (int64_t)(STEP_US * share(2, busy, count.now)));
        changes += before != count.now;
    }
    assert_in_range(changes, 2, 60);
}

static void a_long_batch_is_given_up(void **state) {
    (void)state;
    struct fm_thread_count count;
    fm_thread_count_init(&count, 2);
    assert_false(fm_thread_count_is_lost(&count, 10000, 10000)); /* too short to tell */
    assert_false(fm_thread_count_is_lost(&count, 100000, 195000));
    assert_true(fm_thread_count_is_lost(&count, 100000, 110000));
    fm_thread_count_note(&count, 100, 100000, 110000);
    assert_int_equal(count.now, 1);
    assert_false(fm_thread_count_is_lost(&count, 100000, 50000)); /* one thread is the least */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_a_free_machine),
        cmocka_unit_test(as_many_as_are_not_held_up),
        cmocka_unit_test(all_again_when_the_machine_is_free),
        cmocka_unit_test(trials_are_rare),
        cmocka_unit_test(short_luck_is_no_luck),
        cmocka_unit_test(a_long_batch_is_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
