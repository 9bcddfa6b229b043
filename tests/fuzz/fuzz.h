/*
 * Shared by the fuzz targets. Each target is one file with LLVMFuzzerTestOneInput. libFuzzer calls it
 * (tests/fuzz/run.sh); in every build, replay.c calls it with the files of the corpus.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include "base/buf.h"
#include "base/utf8.h"
#include "protocol/json_check.h"

#include <json-c/json.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Runs one input, in a heap block of exactly `size` bytes. Returns 0; a broken rule aborts the process. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Checks a rule, also in a build without assert(). HOLDS_OR prints more, like printf. */
#define HOLDS(condition)         ((condition) ? (void)0 : does_not_hold(__FILE__, __LINE__, #condition, " "))
#define HOLDS_OR(condition, ...) ((condition) ? (void)0 : does_not_hold(__FILE__, __LINE__, #condition, __VA_ARGS__))

static inline _Noreturn FM_PRINTF(4, 5) void does_not_hold(const char *file, int line, const char *what,
                                                           const char *fmt, ...) {
    va_list args;
    fprintf(stderr, "\n%s:%d: does not hold: %s\n", file, line, what);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
    abort();
}

/* Returns a copy of exactly `len` bytes, so that a sanitizer notices a read after the last byte. */
static inline char *exact_copy(const void *data, size_t len) {
    char *copy = malloc(len ? len : 1);
    HOLDS(copy);
    if (len) {
        memcpy(copy, data, len);
    }
    return copy;
}

/* ---- an input as a list of choices; 0 when it is used up ---- */

struct choices {
    const uint8_t *at;
    const uint8_t *end;
};

static inline size_t choices_left(const struct choices *from) {
    return (size_t)(from->end - from->at);
}

static inline unsigned choose(struct choices *from) {
    return from->at < from->end ? *from->at++ : 0;
}

/* Chooses one of `count` things. */
static inline size_t choose_of(struct choices *from, size_t count) {
    return choose(from) % count;
}

/* Takes the next `*len` bytes, or fewer if there are not enough. */
static inline const char *choose_bytes(struct choices *from, size_t *len) {
    const char *bytes = (const char *)from->at;
    *len = *len < choices_left(from) ? *len : choices_left(from);
    from->at += *len;
    return bytes;
}

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* ---- JSON ---- */

/* Parses with json-c. A NULL result may also be the value null, so check `ok`. */
static inline struct json_object *json_parse(const char *text, size_t len, int flags, bool *ok) {
    struct json_tokener *tokener = json_tokener_new_ex(FM_JSON_DEPTH_MAX + 1);
    HOLDS(tokener);
    json_tokener_set_flags(tokener, flags);
    struct json_object *root = json_tokener_parse_ex(tokener, text, (int)len);
    if (json_tokener_get_error(tokener) == json_tokener_continue) {
        root = json_tokener_parse_ex(tokener, "", -1);
    }
    *ok = json_tokener_get_error(tokener) == json_tokener_success;
    json_tokener_free(tokener);
    return root;
}

/* Parses what our side has written: our check must accept the text, and json-c must read it. The caller frees the value
 * with json_object_put. */
static inline struct json_object *json_must_parse(const char *text, size_t len) {
    size_t offset = 0;
    const char *fault = fm_json_check(text, len, FM_JSON_VALUES_MAX, &offset);
    HOLDS_OR(!fault, "%s, at byte %zu of %.*s", fault, offset, (int)len, text);
    bool ok = false;
    struct json_object *value = json_parse(text, len, 0, &ok);
    HOLDS_OR(ok, "json-c refuses %.*s", (int)len, text);
    return value;
}

static inline bool is_utf8(const char *text, size_t len) {
    while (len) {
        int step = fm_utf8_sequence(text, len);
        if (step <= 0) {
            return false;
        }
        text += step;
        len -= (size_t)step;
    }
    return true;
}

#endif
