/*
 * Grammars that the real llguidance compiles at the same time. The vocabulary has bytes as tokens, and tests can block
 * it.
 */
#include "base/buf.h"
#include "base/clock.h"
#include "engine/guide/grammar.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES     256 /* the number of byte tokens; the token after them ends a turn */
#define COMPILERS 8   /* the same number as COMPILERS_MAX of grammar.c */
#define GIVE_UP   INT64_MAX

/* ---- a vocabulary ---- */

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static atomic_int wakes[16]; /* a counter for each vocabulary, because its last wake may come after it is freed */
static atomic_int *woken = wakes;

static bool ends_turn(const void *argument, int32_t token) {
    (void)argument;
    return token == BYTES;
}

/*
 * Waits while a test holds the gate. The first compilation builds llguidance's vocabulary here, and the others need it.
 */
static size_t piece(const void *argument, int32_t token, bool control, char *text, size_t room) {
    (void)argument;
    assert_true(room >= 3);
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    if (token == BYTES) {
        memcpy(text, "end", 3);
        return control ? 3 : 0;
    }
    text[0] = (char)token;
    return 1;
}

static enum fm_code tokenize(const void *argument, const char *text, size_t len, int32_t **tokens, size_t *count,
                             struct fm_error *error) {
    (void)argument;
    (void)error;
    *tokens = malloc((len + 1) * sizeof **tokens);
    assert_non_null(*tokens);
    for (size_t i = 0; i < len; i++) {
        (*tokens)[i] = (unsigned char)text[i];
    }
    *count = len;
    return FM_OK;
}

static void expect_wakes(int count) {
    for (int64_t end = fm_now_ms() + 60000; atomic_load(woken) < count && fm_now_ms() < end;) {
        fm_sleep_ms(1);
    }
    assert_int_equal(atomic_load(woken), count);
}

static void wake(void *count) {
    atomic_fetch_add((atomic_int *)count, 1);
}

static struct fm_grammar_vocab *new_vocab(int32_t size) {
    const struct fm_vocabulary vocabulary = {
        .size = size, .end_of_turn = BYTES, .ends_turn = ends_turn, .piece = piece, .tokenize = tokenize};
    struct fm_grammar_vocab *vocab;
    struct fm_error error;
    woken++;
    assert_int_equal(fm_grammar_vocab_new(&vocabulary, wake, woken, &vocab, &error), FM_OK);
    return vocab;
}

static struct fm_grammar *new_grammar(struct fm_grammar_vocab *vocab, const char *kind, const char *text) {
    struct fm_grammar *grammar;
    struct fm_error error;
    assert_int_equal(fm_grammar_new(vocab, kind, text, &grammar, &error), FM_OK);
    return grammar;
}

static void assert_compiles_to(struct fm_grammar *grammar, char first) {
    struct fm_error error;
    assert_int_equal(fm_grammar_wait(grammar, GIVE_UP, &error), FM_OK);
    assert_false(fm_grammar_compiles(grammar));
    for (int32_t byte = 'a'; byte <= 'z'; byte++) {
        assert_int_equal(fm_grammar_allows(grammar, byte), byte == first);
    }
    fm_grammar_free(grammar);
}

/* The grammar of an object with optional keys. With three times as many keys, llguidance takes ten times as long. */
static struct fm_grammar *new_optional_keys(struct fm_grammar_vocab *vocab, int count) {
    char key[40];
    struct fm_buf text;
    fm_buf_init(&text, PTRDIFF_MAX);
    fm_buf_append_str(&text, "{\"type\":\"object\",\"properties\":{");
    for (int i = 0; i < count; i++) {
        snprintf(key, sizeof key, "%s\"p%d\":{\"type\":\"string\"}", i ? "," : "", i);
        fm_buf_append_str(&text, key);
    }
    fm_buf_append(&text, "}}", sizeof "}}");
    assert_false(text.failed);
    struct fm_grammar *grammar = new_grammar(vocab, "json_schema", text.data);
    fm_buf_free(&text);
    return grammar;
}

/* ---- the tests ---- */

/* Inside of a JSON string a class has no more characters than outside of it, escaped or not. */
static void a_class_inside_of_a_string(void **state) {
    static const struct {
        const char *pattern;
        const char *escapes; /* what may come after a backslash */
    } rows[] = {
        {"^[^\\\"]{3}$", "\\nrtbf"},       /* [^"] */
        {"^[^\\\\\\\\]{3}$", "\"nrtbf"},   /* [^\\] */
        {"^[^\\\\\\\\\\\"]{3}$", "nrtbf"}, /* [^\\"] */
        {"^[^a]{3}$", "\"\\nrtbf"},        /* [^a] */
        {"^[^\\\\n]{3}$", "\"\\rtbf"},     /* [^\n] */
        {"^[b\\\"]{3}$", "\""},            /* [b"] */
    };
    (void)state;
    struct fm_grammar_vocab *vocab = new_vocab(BYTES + 1);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char schema[200];
        struct fm_error error;
        snprintf(schema, sizeof schema,
                 "{\"x-guidance\":{\"json_allowed_escapes\":\"nrbtf\\\\\\\"\"},\"type\":\"string\",\"pattern\":\"%s\"}",
                 rows[i].pattern);
        struct fm_grammar *grammar = new_grammar(vocab, "json_schema", schema);
        assert_int_equal(fm_grammar_wait(grammar, GIVE_UP, &error), FM_OK);
        assert_true(fm_grammar_take(grammar, '"') && fm_grammar_take(grammar, '\\'));
        for (int32_t byte = 1; byte < 128; byte++) {
            bool expected = strchr(rows[i].escapes, byte) != NULL;
            if (fm_grammar_allows(grammar, byte) != expected) {
                fail_msg("%s: \\%c %s", rows[i].pattern, byte, expected ? "is missing" : "is allowed");
            }
        }
        fm_grammar_free(grammar);
    }
    fm_grammar_vocab_free(vocab);
}

static void what_is_wrong_is_told(void **state) {
    (void)state;
    struct fm_error error;
    struct fm_grammar_vocab *vocab = new_vocab(BYTES + 1);
    assert_compiles_to(new_grammar(vocab, "regex", "bc"), 'b');
    assert_true(atomic_load(woken) > 0);
    struct fm_grammar *grammar = new_grammar(vocab, "regex", "a(b");
    assert_int_equal(fm_grammar_wait(grammar, GIVE_UP, &error), FM_INVALID_REQUEST);
    assert_non_null(strstr(error.detail, "the grammar can't be used: "));
    fm_grammar_free(grammar);
    fm_grammar_vocab_free(vocab);
    vocab = new_vocab(BYTES); /* without the token that ends a turn */
    grammar = new_grammar(vocab, "regex", "a");
    assert_int_equal(fm_grammar_wait(grammar, GIVE_UP, &error), FM_INTERNAL);
    assert_non_null(strstr(error.detail, "vocabulary"));
    fm_grammar_free(grammar);
    fm_grammar_vocab_free(vocab);
}

/* Errors are in the words of people who write formats: they do not know llguidance or its options. */
static void reasons(void **state) {
    (void)state;
#define TOO_LARGE \
    "it is too large or too complex; make it smaller: fewer or simpler patterns, a shorter maxLength"
    static const char *const rows[][3] = {
        {"regex", "a(b", "the grammar can't be used: invalid regular expression: unclosed group"},
        {"regex", "a\n(?x)\n(b", "the grammar can't be used: invalid regular expression: unclosed group"},
        {"regex", "\\ba", "the grammar can't be used: invalid regular expression: \\b, and ^ or $ amid the text, are "
                         "not supported; leave them out"},
        {"regex", "[^\\x00-\\U0010ffff]", "the grammar can't be used: no text fits it"},
        {"lark", "start: a\na: /(c/", "the grammar can't be used: line 2, column 4: invalid regular expression: "
                                     "unclosed group"},
        {"lark", "start: foo", "the grammar can't be used: line 1, column 8: unknown name: \"foo\""},
        {"lark", "start: %json {\"type\": \"foo\"}", "the grammar can't be used: line 1, column 8: invalid JSON schema: "
                                                   "Invalid type: foo"},
        {"lark", "start: %json {\"allOf\": [{\"pattern\": \"^.*a.{30}$\"}, {\"pattern\": \"^.*b.{31}$\"}]}",
         "the grammar can't be used: line 1, column 8: invalid JSON schema: " TOO_LARGE},
        {"json_schema", "{\"allOf\": [{\"pattern\": \"^.*a.{30}$\"}, {\"pattern\": \"^.*b.{31}$\"}]}",
         "the schema can't be used: " TOO_LARGE},
    };
    struct fm_error error;
    struct fm_grammar_vocab *vocab = new_vocab(BYTES + 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fm_grammar *grammar = new_grammar(vocab, rows[i][0], rows[i][1]);
        assert_int_equal(fm_grammar_wait(grammar, GIVE_UP, &error), FM_INVALID_REQUEST);
        assert_string_equal(error.detail, rows[i][2]);
        fm_grammar_free(grammar);
    }
    fm_grammar_vocab_free(vocab);
}

/* A grammar whose problem appears while the text is made: its lexer soon has 50,000 states. */
static void a_reason_amid_the_text(void **state) {
    (void)state;
    struct fm_error error;
    struct fm_grammar_vocab *vocab = new_vocab(BYTES + 1);
    struct fm_grammar *grammar = new_grammar(vocab, "regex", "(.*a.{16}b|.*c.{17}d|.*e.{18}f)*");
    assert_int_equal(fm_grammar_wait(grammar, GIVE_UP, &error), FM_OK);
    uint32_t random = 1;
    for (int i = 0; fm_grammar_mask(grammar) && fm_grammar_take(grammar, "ace"[(random >> 16) % 3]); i++) {
        assert_true(i < 100000);
        random = random * 1664525 + 1013904223;
    }
    assert_string_equal(fm_grammar_reason(grammar), TOO_LARGE);
    fm_grammar_free(grammar);
    fm_grammar_vocab_free(vocab);
}

/* 700 optional keys compile in time, but llguidance takes at most 2,000 items at one point of the text. */
static void too_many_ways(void **state) {
    (void)state;
    struct fm_error error;
    struct fm_grammar_vocab *vocab = new_vocab(BYTES + 1);
    struct fm_grammar *grammar = new_optional_keys(vocab, 700);
    assert_int_equal(fm_grammar_wait(grammar, GIVE_UP, &error), FM_OK);
    assert_false(fm_grammar_take(grammar, '{') && fm_grammar_mask(grammar));
    assert_string_equal(fm_grammar_reason(grammar), "at one point it goes on in too many ways; give it fewer optional "
                                                    "properties or alternatives");
    fm_grammar_free(grammar);
    fm_grammar_vocab_free(vocab);
}

/* Once, a slow format made the next one fail. */
static void one_that_takes_too_long(void **state) {
    (void)state;
    struct fm_error error;
    struct fm_grammar_vocab *vocab = new_vocab(BYTES + 1);
    struct fm_grammar *hostile = new_optional_keys(vocab, 5000);
    enum fm_code code = FM_OK;
    while (code == FM_OK && fm_grammar_compiles(hostile)) {
        assert_compiles_to(new_grammar(vocab, "regex", "a"), 'a'); /* this compiles at the same time */
        code = fm_grammar_wait(hostile, 0, &error);
    }
    assert_int_equal(code, FM_INVALID_REQUEST);
    assert_non_null(strstr(error.detail, "ms to compile"));
    fm_grammar_free(hostile);
    assert_compiles_to(new_grammar(vocab, "regex", "b"), 'b');
    fm_grammar_vocab_free(vocab);
}

/* No format fails because other formats take all threads, given up or not: it waits. */
static void when_all_threads_are_stuck(void **state) {
    (void)state;
    struct fm_error error;
    struct fm_grammar *stuck[COMPILERS];
    struct fm_grammar_vocab *vocab = new_vocab(BYTES + 1);
    pthread_mutex_lock(&gate);
    for (size_t i = 0; i < COMPILERS; i++) {
        stuck[i] = new_grammar(vocab, "regex", "s");
    }
    struct fm_grammar *first = new_grammar(vocab, "regex", "f");
    struct fm_grammar *left = new_grammar(vocab, "regex", "l");
    struct fm_grammar *last = new_grammar(vocab, "regex", "m");
    fm_grammar_free(left);
    for (size_t i = 1; i < COMPILERS; i++) {
        fm_grammar_free(stuck[i]);
    }
    assert_int_equal(fm_grammar_wait(last, fm_now_ms() + 2 * FM_GRAMMAR_POLL_MS, &error), FM_OK);
    assert_int_equal(fm_grammar_wait(first, 0, &error), FM_OK);
    assert_true(fm_grammar_compiles(first) && fm_grammar_compiles(last));
    assert_int_equal(atomic_load(woken), 0);
    pthread_mutex_unlock(&gate);
    assert_compiles_to(last, 'm'); /* when a grammar is used, the ones queued before it begin too */
    assert_compiles_to(first, 'f');
    assert_compiles_to(stuck[0], 's');
    fm_grammar_vocab_free(vocab);
    expect_wakes(COMPILERS + 2);
}

/* Hostile formats that were given up do not take the turn of another format, however many they are. */
static void when_all_were_given_up(void **state) {
    (void)state;
    struct fm_grammar_vocab *vocab = new_vocab(BYTES + 1);
    pthread_mutex_lock(&gate);
    for (size_t i = 0; i < COMPILERS; i++) {
        fm_grammar_free(new_grammar(vocab, "regex", "s"));
    }
    struct fm_grammar *next = new_grammar(vocab, "regex", "n");
    struct fm_grammar *later = new_grammar(vocab, "regex", "l");
    fm_grammar_free(next); /* the thread of `next` has begun, and wakes the engine too; the thread of `later` has not */
    fm_grammar_free(later);
    pthread_mutex_unlock(&gate);
    fm_grammar_vocab_free(vocab);
    expect_wakes(COMPILERS + 1);
}

#ifdef WRAPPED
static bool no_threads;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument) {
    return no_threads ? EAGAIN : __real_pthread_create(thread, attributes, body, argument);
}

static void without_a_thread(void **state) {
    (void)state;
    struct fm_error error;
    struct fm_grammar_vocab *vocab = new_vocab(BYTES + 1);
    for (int i = 0; i < COMPILERS + 1; i++) {
        no_threads = true;
        struct fm_grammar *grammar = new_grammar(vocab, "regex", "a");
        assert_int_equal(fm_grammar_wait(grammar, 0, &error), FM_INTERNAL);
        assert_non_null(strstr(error.detail, "memory"));
        no_threads = false;
        fm_grammar_free(grammar);
    }
    assert_compiles_to(new_grammar(vocab, "regex", "b"), 'b');
    fm_grammar_vocab_free(vocab);
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_class_inside_of_a_string),
        cmocka_unit_test(what_is_wrong_is_told),
        cmocka_unit_test(reasons),
        cmocka_unit_test(a_reason_amid_the_text),
        cmocka_unit_test(too_many_ways),
        cmocka_unit_test(one_that_takes_too_long),
        cmocka_unit_test(when_all_threads_are_stuck),
        cmocka_unit_test(when_all_were_given_up),
#ifdef WRAPPED
        cmocka_unit_test(without_a_thread),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
