/*
 * Shared by the tests of parsers: a transcript of a parser's events, compared as text, and three ways to feed one
 * input. Each piece is in a heap block of exactly its size, which is freed before the next piece comes, so that a
 * sanitizer notices any read beyond it.
 */
#ifndef TESTS_UNIT_WIRE_H
#define TESTS_UNIT_WIRE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A literal with its length, so that it may hold NULs. */
#define BYTES(literal) (literal), sizeof(literal) - 1

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

#define SHOWN_BODY_MAX  60u  /* bytes of a body that a transcript quotes; for a longer body it only has the length */
#define SPLIT_INPUT_MAX 700u /* inputs up to this length are split at every position */

struct transcript {
    char text[8192];
    size_t len;
};

static inline __attribute__((format(printf, 2, 3))) void note(struct transcript *log, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(log->text + log->len, sizeof log->text - log->len, fmt, args);
    va_end(args);
    assert_true(len >= 0 && (size_t)len < sizeof log->text - log->len);
    log->len += (size_t)len;
}

static inline void note_body(struct transcript *log, const char *body, size_t len) {
    if (len > SHOWN_BODY_MAX) {
        note(log, "body[%zu] ", len);
    } else {
        note(log, "body(%.*s) ", (int)len, body);
    }
}

/* A copy of exactly `len` bytes. */
static inline char *exact_copy(const char *data, size_t len) {
    char *copy = malloc(len ? len : 1);
    assert_non_null(copy);
    memcpy(copy, data, len);
    return copy;
}

typedef void (*piece_fn)(void *context, const char *piece, size_t len);

static inline void feed_piece(piece_fn feed, void *context, const char *data, size_t len) {
    char *piece = exact_copy(data, len);
    feed(context, piece, len);
    free(piece);
}

/* Feeds pieces of `step` bytes; the last one may be shorter. */
static inline void feed_steps(piece_fn feed, void *context, const char *data, size_t len, size_t step) {
    for (size_t at = 0; at < len; at += step) {
        feed_piece(feed, context, data + at, len - at < step ? len - at : step);
    }
}

static inline void expect_text(const char *name, const char *way, size_t at, const char *expected, const char *got) {
    if (strcmp(expected, got) != 0) {
        fail_msg("%s (%s %zu)\n  expected: %s\n  got:      %s", name, way, at, expected, got);
    }
}

/* A parser under test. `start` makes a new parser that writes to `log`. `end` writes the last event and frees the
 * parser. */
struct subject {
    void *(*start)(struct transcript *log);
    piece_fn feed;
    void (*end)(void *context);
};

/*
 * Feeds `data` whole, byte by byte, and (if it is short) split at every position. The result must always be `expected`.
 */
static inline void expect_in_any_split(const struct subject *subject, const char *name, const char *data, size_t len,
                                       const char *expected) {
    static struct transcript log;
    size_t splits = len <= SPLIT_INPUT_MAX ? len : 1;
    for (size_t at = 0; at <= splits; at++) { /* at 0: byte by byte; at 1 of a long input: whole */
        log = (struct transcript){.len = 0};
        void *context = subject->start(&log);
        if (at == 0) {
            feed_steps(subject->feed, context, data, len, 1);
        } else if (len > SPLIT_INPUT_MAX) {
            feed_piece(subject->feed, context, data, len);
        } else {
            feed_piece(subject->feed, context, data, at);
            feed_piece(subject->feed, context, data + at, len - at);
        }
        subject->end(context);
        expect_text(name, at ? "split at" : "byte by byte", at, expected, log.text);
    }
}

#endif
