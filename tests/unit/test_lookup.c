/* Drafts of the next tokens, copied from earlier text, and whether they are worth their cost. */
#include "engine/llama/speculation.h"
#include "wire.h"

#include <math.h>
#include <string.h>

#define ROOM 4096

/* Each letter is a token. */
static size_t spell(const char *text, int32_t *tokens) {
    for (size_t i = 0; text[i]; i++) {
        tokens[i] = text[i];
    }
    return strlen(text);
}

static void begin(struct fm_lookup *lookup) {
    struct fm_error error;
    assert_int_equal(fm_lookup_init(lookup, ROOM, &error), FM_OK);
}

/* Checks the draft after `answer` to `prompt`. */
static void assert_draft(const char *prompt, const char *answer, size_t most, const char *expected) {
    int32_t tokens[ROOM];
    int32_t drafts[FM_DRAFTS_MAX];
    char text[FM_DRAFTS_MAX + 1] = "";
    struct fm_lookup lookup;
    size_t from = spell(prompt, tokens);
    size_t count = from + spell(answer, tokens + from);
    begin(&lookup);
    for (size_t i = from; i <= count; i++) { /* calls it as often as for an answer that gets longer */
        fm_lookup_read(&lookup, tokens, i, from);
    }
    size_t drafted = fm_lookup_draft(&lookup, tokens, drafts, most);
    for (size_t i = 0; i < drafted; i++) {
        text[i] = (char)drafts[i];
    }
    assert_string_equal(text, expected);
    assert_int_equal(most > 0 && fm_lookup_chance(&lookup, 0) > 0, expected[0] != '\0');
    fm_lookup_free(&lookup);
}

static void what_followed_before_is_drafted(void **state) {
    (void)state;
    assert_draft("the cat sat on the mat.", "the", 5, " mat."); /* drafts what came after the last occurrence */
    assert_draft("one two three four.", "two", 6, " three");
    assert_draft("one two three four.", "two", 0, "");
    assert_draft("one two three four.", "tw", 6, ""); /* too short to search for */
    assert_draft("one two three four.", "xyz", 6, "");
    assert_draft("a cat sat here, a dog sat there.", "my cat sat", 6, " here,"); /* the longer match */
    assert_draft("abcdefabc", "", 3, "def");                                     /* a continued prompt */
    assert_draft("", "abcabc", 7, "abcabca");                                    /* a text that repeats itself */
}

static void an_answer_goes_on_after_a_difference(void **state) {
    (void)state;
    static const char prompt[] = "for (NAME of list) { push(NAME); count(NAME); show(NAME); } return;";
    assert_draft(prompt, "for (x o", 10, "f list) { ");
    assert_draft(prompt, "for (row of list) { ", 10, "push(row);"); /* once the answer has a new name, drafts use it */
    assert_draft(prompt, "for (row of list) { push(row); c", 20, "ount(row); show(row)");
}

static void a_change_that_was_none_is_forgotten(void **state) {
    (void)state;
    static const char prompt[] = "let abc = 1; let abd = 2; call abc; call abd; done;";
    assert_draft(prompt, "let xbc = 1; let abd = 2; call ", 3, "abc");
}

/* The places of an image have no tokens. */
static void an_image_is_never_drafted(void **state) {
    (void)state;
    const int32_t tokens[] = {1, 2, 3, 4, -1, -1, 5, 1, 2, 3};
    int32_t drafts[FM_DRAFTS_MAX];
    struct fm_lookup lookup;
    begin(&lookup);
    fm_lookup_read(&lookup, tokens, 7, 7);
    fm_lookup_read(&lookup, tokens, COUNT(tokens), 7);
    assert_int_equal(fm_lookup_draft(&lookup, tokens, drafts, 5), 1);
    assert_int_equal(drafts[0], 4);
    fm_lookup_free(&lookup);
}

/* Random tokens of a small alphabet, with repeated parts: the lookup never reads beyond the tokens. */
static void long_texts_with_few_tokens(void **state) {
    (void)state;
    static int32_t tokens[300000];
    int32_t drafts[FM_DRAFTS_MAX];
    struct fm_error error;
    uint32_t random = 1;
    for (uint32_t letters = 1; letters < 200; letters = letters * 3 + 1) {
        struct fm_lookup lookup;
        assert_int_equal(fm_lookup_init(&lookup, COUNT(tokens), &error), FM_OK);
        for (size_t i = 0; i < COUNT(tokens); i++) {
            random = random * 1664525 + 1013904223;
            tokens[i] = i > 40 && random >> 29 ? tokens[i - 37] : (int32_t)((random >> 8) % letters);
        }
        for (size_t count = 100; count <= COUNT(tokens); count += 1 + count % 7) {
            fm_lookup_read(&lookup, tokens, count, 50);
            size_t drafted = fm_lookup_draft(&lookup, tokens, drafts, FM_DRAFTS_MAX);
            for (size_t i = 0; i < drafted; i++) {
                assert_in_range(drafts[i], 0, letters);
            }
            for (size_t i = 0; i < 3; i++) {
                assert_true(fm_lookup_chance(&lookup, i * 10) >= 0 && fm_lookup_chance(&lookup, i * 10) <= 1);
            }
        }
        fm_lookup_free(&lookup);
    }
}

/* ---- when drafts save time ---- */

/* A machine on which one token takes `single`, and each further token of a batch takes `more`. */
struct machine {
    double single;
    double more;
};

/* The speed with drafts, relative to that without, for an answer where each `wrong`th token differs from the prompt. */
static double speed(const struct machine *machine, size_t wrong, int64_t *drafted) {
    int32_t tokens[ROOM];
    int32_t drafts[FM_DRAFTS_MAX];
    struct fm_speculation speculation = {0};
    struct fm_speculation_account account = {0};
    struct fm_lookup lookup;
    const size_t prompt = 600;
    const size_t count = 1200;
    double took = 0;
    begin(&lookup);
    for (size_t i = 0; i < prompt; i++) {
        tokens[i] = tokens[prompt + i] = (int32_t)i;
        tokens[prompt + i] += wrong && i % wrong == 0 ? 10000 + (int32_t)i * 7 : 0;
    }
    *drafted = 0;
    for (size_t at = prompt; at < count;) {
        fm_lookup_read(&lookup, tokens, at, prompt);
        size_t more = fm_speculation_drafts(&speculation, &account, &lookup, FM_DRAFTS_MAX, machine->more);
        more = fm_lookup_draft(&lookup, tokens, drafts, more);
        size_t accepted = 0;
        while (accepted < more && at + accepted + 1 < count && drafts[accepted] == tokens[at + accepted]) {
            accepted++;
        }
        double batch = machine->single + (double)more * machine->more;
        fm_speculation_measure(&speculation, &account, more, accepted, batch);
        took += batch;
        at += accepted + 1;
        *drafted += (int64_t)more;
    }
    fm_lookup_free(&lookup);
    return (double)prompt * machine->single / took;
}

static void drafts_pay_or_are_left_out(void **state) {
    (void)state;
    const struct machine busy = {.single = 9000, .more = 5200};
    const struct machine waiting = {.single = 90000, .more = 1000};
    const struct machine serial = {.single = 9000, .more = 9000};
    int64_t drafted;
    assert_true(speed(&busy, 0, &drafted) > 1.5);
    assert_true(speed(&waiting, 0, &drafted) > 10);
    assert_true(speed(&waiting, 12, &drafted) > 3);
    assert_true(speed(&serial, 0, &drafted) >= 1);
    assert_int_equal(drafted, 0);
    for (size_t wrong = 1; wrong < 40; wrong++) { /* the speed holds however misleading the prompt is */
        assert_true(speed(&busy, wrong, &drafted) > 0.97);
        assert_true(speed(&waiting, wrong, &drafted) > 0.97);
    }
}

/*
 * A draft model that takes `cost` of the model's time, reports the probability `sure` for each token, and is wrong at
 * each `wrong`th token.
 */
struct guesser {
    double cost;
    double sure;
    size_t wrong;
};

/* The speed of an answer with its guesses, relative to that without. */
static double next_speed(struct fm_speculation *speculation, const struct machine *machine,
                         const struct guesser *guesser, size_t *guessed) {
    struct fm_speculation_account account = {0};
    const size_t count = 600;
    double took = 0;
    *guessed = 0;
    for (size_t at = 1; at < count;) {
        struct fm_guess guess = fm_guess_none();
        bool goes_on = true;
        while (goes_on && fm_speculation_guesses(speculation, &account, &guess, count - at, machine->more)) {
            guess.took_us += guesser->cost * machine->single;
            guess.step_us += guesser->cost * machine->single;
            guess.steps++;
            goes_on = fm_speculation_take(speculation, &account, &guess, guesser->sure, machine->more);
        }
        size_t accepted = 0;
        while (accepted < guess.count && (at + accepted) % guesser->wrong != 0) {
            accepted++;
        }
        double batch = machine->single + (double)guess.count * machine->more;
        fm_speculation_measure(speculation, &account, guess.count, accepted, batch);
        fm_speculation_measure_guess(speculation, &account, &guess, accepted);
        took += batch + guess.took_us;
        at += accepted + 1;
        *guessed += guess.count;
    }
    return (double)count * machine->single / took;
}

static double guessed_speed(const struct machine *machine, const struct guesser *guesser, size_t *guessed) {
    struct fm_speculation speculation = {0};
    return next_speed(&speculation, machine, guesser, guessed);
}

static void guesses_pay_or_are_left_out(void **state) {
    (void)state;
    const struct machine busy = {.single = 9000, .more = 5200};
    const struct machine waiting = {.single = 90000, .more = 1000};
    const double sure[] = {0.35, 0.6, 0.95, 1};
    size_t guessed;
    assert_true(guessed_speed(&waiting, &(struct guesser){0.05, 0.9, 1000}, &guessed) > 6);
    assert_true(guessed_speed(&waiting, &(struct guesser){0.1, 0.9, 5}, &guessed) > 1.8);
    assert_true(guessed_speed(&waiting, &(struct guesser){1, 0.99, 1000}, &guessed) > 0.98); /* not smaller */
    assert_true(guessed < 20);
    /* the speed holds whatever probability the draft model reports */
    for (size_t i = 0; i < sizeof sure / sizeof sure[0]; i++) {
        for (size_t wrong = 1; wrong < 12; wrong++) {
            assert_true(guessed_speed(&waiting, &(struct guesser){0.1, sure[i], wrong}, &guessed) > 0.96);
            assert_true(guessed_speed(&busy, &(struct guesser){0.1, sure[i], wrong}, &guessed) > 0.96);
        }
    }
    struct fm_speculation speculation = {0};
    next_speed(&speculation, &waiting, &(struct guesser){0.1, 0.9, 1}, &guessed);
    assert_true(next_speed(&speculation, &waiting, &(struct guesser){0.1, 0.9, 1}, &guessed) > 0.99);
    assert_true(guessed < 60); /* the second answer uses what the first one has shown */
    assert_true(next_speed(&speculation, &waiting, &(struct guesser){0.1, 0.9, 1000}, &guessed) > 1.5);
    guessed_speed(&waiting, &(struct guesser){0.05, 0.2, 1000}, &guessed);
    assert_int_equal(guessed, 0); /* too unlikely */
    guessed_speed(&waiting, &(struct guesser){0.05, NAN, 1000}, &guessed);
    assert_int_equal(guessed, 0);
}

/* A single token takes 1 ms here, and every batch 60 ms. */
static void a_batch_is_never_long(void **state) {
    (void)state;
    int32_t tokens[ROOM];
    struct fm_lookup lookup;
    struct fm_speculation speculation = {0};
    struct fm_speculation_account account = {0};
    begin(&lookup);
    for (size_t i = 0; i < 200; i++) {
        tokens[i] = (int32_t)(i % 100);
    }
    fm_lookup_read(&lookup, tokens, 200, 100);
    assert_int_equal(fm_speculation_drafts(&speculation, &account, &lookup, FM_DRAFTS_MAX, 20000),
                     0); /* not measured yet */
    fm_speculation_measure(&speculation, &account, 0, 0, 40000);
    assert_int_equal(fm_speculation_drafts(&speculation, &account, &lookup, FM_DRAFTS_MAX, 20000), 4); /* 120 ms */
    assert_int_equal(fm_speculation_drafts(&speculation, &account, &lookup, 3, 20000), 3);
    account.gained = -20000; /* of 40,000 */
    assert_int_equal(fm_speculation_drafts(&speculation, &account, &lookup, FM_DRAFTS_MAX, 20000), 0);
    fm_lookup_free(&lookup);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_followed_before_is_drafted),     cmocka_unit_test(an_answer_goes_on_after_a_difference),
        cmocka_unit_test(a_change_that_was_none_is_forgotten), cmocka_unit_test(an_image_is_never_drafted),
        cmocka_unit_test(long_texts_with_few_tokens),          cmocka_unit_test(drafts_pay_or_are_left_out),
        cmocka_unit_test(guesses_pay_or_are_left_out),         cmocka_unit_test(a_batch_is_never_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
