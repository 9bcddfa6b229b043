/* How many threads compute: fewer if that is faster, all of them if the machine is free. */
#include "engine/llama/thread_count.h"
#include "wire.h"

#define QUIET_US 10000 /* time for a token with one thread and no other work */

/* A machine with `cores` cores, `busy` of which other programs want. */
struct machine {
    int cores;
    double busy;
    double waits; /* how much longer a token takes if threads are delayed, because each thread waits for the slowest */
};

/* How many processors' time `threads` threads get. */
static double share(const struct machine *machine, int threads) {
    double room = machine->cores - machine->busy;
    double fair = (double)machine->cores / 2;
    double most = room > fair ? room : fair;
    return threads < most ? threads : most;
}

static int64_t token_us(const struct machine *machine, int threads) {
    double got = share(machine, threads);
    double slower = got < threads - 0.1 ? machine->waits : 1; /* small programs delay no thread */
    return (int64_t)(QUIET_US * slower / (0.4 + 0.6 * got));
}

/* Runs batches of `tokens` for this long. Returns how much of this time was with fewer threads than `all`. */
static int64_t run(struct fm_thread_count *count, const struct machine *machine, int64_t *now_us, int64_t for_ms,
                   int64_t tokens) {
    int64_t fewer = 0;
    for (int64_t end = *now_us + for_ms * 1000; *now_us < end;) {
        int64_t wall = token_us(machine, count->now) * tokens;
        int64_t cpu = (int64_t)((double)wall * share(machine, count->now));
        const struct fm_computed computed = {.tokens = tokens, .wall_us = wall, .cpu_us = cpu};
        fewer += count->now < count->most ? wall : 0;
        *now_us += wall;
        fm_thread_count_note(count, *now_us / 1000, &computed);
    }
    return fewer / 1000;
}

static void all_of_a_free_machine(void **state) {
    (void)state;
    static const int cores[] = {1, 2, 4, 16};
    for (size_t i = 0; i < COUNT(cores); i++) {
        struct fm_thread_count count;
        struct machine machine = {cores[i], 0.1, 10}; /* the small programs of a desktop */
        int64_t now = 0;
        fm_thread_count_init(&count, cores[i]);
        assert_int_equal(run(&count, &machine, &now, 60000, 1), 0);
    }
}

static void as_many_as_are_fast(void **state) {
    (void)state;
    static const struct {
        struct machine machine;
        int expected;
    } rows[] = {
        {{1, 1, 5}, 1}, {{2, 2, 5}, 1}, {{2, 1, 5}, 1},    {{4, 1, 5}, 3},
        {{8, 4, 5}, 4}, {{8, 8, 5}, 4}, {{2, 1, 1.05}, 2}, /* delayed, but still faster than one thread */
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fm_thread_count count;
        int64_t now = 0;
        fm_thread_count_init(&count, rows[i].machine.cores);
        run(&count, &rows[i].machine, &now, 5000, 1);
        assert_int_equal(count.before ? count.before : count.now, rows[i].expected);
    }
}

static void all_again_when_the_machine_is_free(void **state) {
    (void)state;
    struct fm_thread_count count;
    struct machine machine = {8, 7.5, 5};
    int64_t now = 0;
    fm_thread_count_init(&count, 8);
    run(&count, &machine, &now, 30000, 1);
    assert_int_equal(count.before ? count.before : count.now, 4);
    machine.busy = 0;
    run(&count, &machine, &now, 9000, 1);
    assert_int_equal(count.now, 8);
    machine.busy = 1;
    run(&count, &machine, &now, 1000, 1); /* the count changes at once */
    assert_int_equal(count.before ? count.before : count.now, 7);
}

/* Another program sometimes takes a processor, for less than two windows. */
static void a_moment_changes_nothing(void **state) {
    (void)state;
    struct fm_thread_count count;
    int64_t now = 0;
    fm_thread_count_init(&count, 2);
    for (int i = 0; i < 100; i++) {
        struct machine machine = {2, i % 2, 3};
        assert_int_equal(run(&count, &machine, &now, 85, 1), 0);
    }
}

/* The part of a minute that failed trials take. */
static void trials_are_rare(void **state) {
    (void)state;
    struct fm_thread_count count;
    struct machine machine = {2, 2, 3};
    int64_t now = 0;
    fm_thread_count_init(&count, 2);
    int64_t fewer = run(&count, &machine, &now, 60000, 1);
    assert_in_range(now / 1000 - fewer, 500, 2000);
}

/* A token of a long batch takes less time than a single token. So these times are not compared. */
static void only_batches_of_a_kind_are_compared(void **state) {
    (void)state;
    struct fm_thread_count count;
    struct machine machine = {2, 1, 1.05};
    int64_t now = 0;
    fm_thread_count_init(&count, 2);
    run(&count, &machine, &now, 160, 1);
    assert_int_equal(count.before, 2);
    assert_int_equal(count.now, 1);
    const struct fm_computed prompt = {.tokens = 100, .wall_us = 300000, .cpu_us = 300000};
    fm_thread_count_note(&count, now / 1000, &prompt);
    assert_int_equal(count.before, 2); /* not known yet */
    run(&count, &machine, &now, 80, 1);
    assert_int_equal(count.before, 0);
    assert_int_equal(count.now, 2);
}

static void a_long_batch_is_given_up(void **state) {
    (void)state;
    struct fm_thread_count count;
    fm_thread_count_init(&count, 2);
    assert_false(fm_thread_count_is_lost(&count, 10000, 10000)); /* too short to tell */
    assert_false(fm_thread_count_is_lost(&count, 100000, 150000));
    assert_true(fm_thread_count_is_lost(&count, 100000, 110000));
    const struct fm_computed aborted = {.wall_us = 100000, .cpu_us = 195000}; /* by an abort of its job */
    fm_thread_count_note(&count, 100, &aborted);
    assert_int_equal(count.now, 2);
    const struct fm_computed lost = {.wall_us = 100000, .cpu_us = 110000};
    fm_thread_count_note(&count, 200, &lost);
    assert_int_equal(count.now, 1);
    assert_false(fm_thread_count_is_lost(&count, 100000, 50000)); /* there is at least one thread */
}

/* A trial with more threads ends if its first batch does not end. */
static void a_trial_is_given_up(void **state) {
    (void)state;
    struct fm_thread_count count;
    struct machine machine = {2, 2, 3};
    int64_t now = 0;
    fm_thread_count_init(&count, 2);
    for (int i = 0; i < 10000 && count.before != 1; i++) {
        run(&count, &machine, &now, 1, 1);
    }
    assert_int_equal(count.now, 2);
    assert_true(fm_thread_count_is_lost(&count, 100000, 170000));
    const struct fm_computed lost = {.wall_us = 100000, .cpu_us = 170000};
    fm_thread_count_note(&count, now / 1000, &lost);
    assert_int_equal(count.now, 1);
    assert_int_equal(count.before, 0);
}

static void batches_are_long_between_trials(void **state) {
    (void)state;
    struct fm_thread_count count;
    struct machine machine = {2, 1, 1.05}; /* delayed, but still faster than one thread */
    int64_t now = 0;
    fm_thread_count_init(&count, 2);
    assert_true(fm_thread_count_is_settled(&count, 0));
    run(&count, &machine, &now, 100, 1);
    assert_false(fm_thread_count_is_settled(&count, now / 1000)); /* fewer threads will be tried next */
    run(&count, &machine, &now, 100, 1);
    assert_int_equal(count.before, 2);
    assert_false(fm_thread_count_is_settled(&count, now / 1000));
    while (count.before) {
        run(&count, &machine, &now, 100, 1);
    }
    assert_true(fm_thread_count_is_settled(&count, count.next_ms - 1));
    assert_false(fm_thread_count_is_settled(&count, count.next_ms));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_a_free_machine),
        cmocka_unit_test(batches_are_long_between_trials),
        cmocka_unit_test(as_many_as_are_fast),
        cmocka_unit_test(all_again_when_the_machine_is_free),
        cmocka_unit_test(a_moment_changes_nothing),
        cmocka_unit_test(trials_are_rare),
        cmocka_unit_test(only_batches_of_a_kind_are_compared),
        cmocka_unit_test(a_long_batch_is_given_up),
        cmocka_unit_test(a_trial_is_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
