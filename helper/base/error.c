/*
 * Knows the names of the error codes, and fills a struct fm_error. A detail is always valid UTF-8 and ends with a NUL.
 */
#include "base/error.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const code_names[] = {
    [FM_OK] = "OK",
    [FM_UNAVAILABLE] = "UNAVAILABLE",
    [FM_TIMEOUT] = "TIMEOUT",
    [FM_CANCELLED] = "CANCELLED",
    [FM_INTERNAL] = "INTERNAL",
    [FM_INVALID_REQUEST] = "INVALID_REQUEST",
    [FM_NOT_FOUND] = "NOT_FOUND",
    [FM_CONTEXT_OVERFLOW] = "CONTEXT_OVERFLOW",
    [FM_RATE_LIMITED] = "RATE_LIMITED",
    [FM_OVERLOADED] = "OVERLOADED",
    [FM_GUARDRAIL] = "GUARDRAIL",
};

const char *fm_code_name(enum fm_code code) {
    return code_names[code];
}

enum fm_code fm_code_parse(const char *name) {
    for (size_t i = FM_OK + 1; i < sizeof code_names / sizeof code_names[0]; i++) {
        if (strcmp(name, code_names[i]) == 0) {
            return (enum fm_code)i;
        }
    }
    return FM_INTERNAL;
}

static void set_detail(struct fm_error *error, const char *fmt, va_list args) FM_PRINTF(2, 0);

static void set_detail(struct fm_error *error, const char *fmt, va_list args) {
    int len = vsnprintf(error->detail, sizeof error->detail, fmt, args);
    if (len >= (int)sizeof error->detail) {
        size_t whole = fm_utf8_whole_prefix(error->detail, strlen(error->detail));
        error->detail[whole] = '\0';
    }
}

enum fm_code fm_fail(struct fm_error *error, enum fm_code code, const char *fmt, ...) {
    *error = (struct fm_error){.code = code};
    va_list args;
    va_start(args, fmt);
    set_detail(error, fmt, args);
    va_end(args);
    return code;
}

enum fm_code fm_fail_too_many(struct fm_error *error, const char *fmt, ...) {
    *error = (struct fm_error){.code = FM_RATE_LIMITED, .reason = "too_many_requests"};
    va_list args;
    va_start(args, fmt);
    set_detail(error, fmt, args);
    va_end(args);
    return FM_RATE_LIMITED;
}

enum fm_code fm_fail_no_memory(struct fm_error *error) {
    return fm_fail(error, FM_INTERNAL, "out of memory");
}
