/*
 * The project's one error idiom: a function that can fail returns `enum fm_code` (FM_OK is 0), returns data through
 * pointers, and describes what went wrong in a caller-provided `struct fm_error`, which is written only on failure. The
 * codes are those of protocol/PROTOCOL.md, "Errors".
 */
#ifndef FM_BASE_ERROR_H
#define FM_BASE_ERROR_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

enum fm_code {
    FM_OK = 0,
    FM_UNAVAILABLE,
    FM_TIMEOUT,
    FM_CANCELLED,
    FM_INTERNAL,
    FM_INVALID_REQUEST,
    FM_NOT_FOUND,
    FM_CONTEXT_OVERFLOW,
    FM_RATE_LIMITED,
    FM_OVERLOADED,
    FM_GUARDRAIL,
};

struct fm_error {
    enum fm_code code;
    const char *reason; /* tells apart errors with the same code: a word of the layer that reports it; NULL: none.
                           Must outlive the error; mostly a literal */
    const char *limit;  /* FM_TIMEOUT: "queue", "first_token", "no_progress" or "total"; else NULL */
    int64_t limit_ms;   /* FM_TIMEOUT: how long that limit is */
    int64_t retry_ms;   /* a retry may succeed after this many ms; 0: not known */
    bool elsewhere;     /* another engine may be able to do what this one can't */
    bool again;         /* the same request may succeed if it is sent again to the same place at once */
    bool untaken;       /* with `again`: no work on the request seems to have begun, so it may be sent several times */
    char
        reason_code[32]; /* why an engine is not available: "OFFLINE", say (ENGINE.md, Availability); "": not known */
    char param[256];     /* path of the field at fault, such as "tools[0].type"; "": no field */
    char detail[512];    /* one sentence in English; never user text beyond a field's or a file's name */
};

/* The code's name on the wire, such as "NOT_FOUND". */
const char *fm_code_name(enum fm_code code);

/* The reverse of fm_code_name; FM_INTERNAL for any other text. */
enum fm_code fm_code_parse(const char *name);

/*
 * Fills `error` and returns `code`, so that a failing function ends in one statement:
 *     return fm_fail(error, FM_NOT_FOUND, "no such model: %s", id);
 * A detail that is too long is cut between characters.
 */
enum fm_code fm_fail(struct fm_error *error, enum fm_code code, const char *fmt, ...) FM_PRINTF(3, 4);

/*
 * Shorthand for an error at a limit of the helper on how many things run at the same time; `error->reason` is
 * "too_many_requests".
 */
enum fm_code fm_fail_too_many(struct fm_error *error, const char *fmt, ...) FM_PRINTF(2, 3);

/* Shorthand for running out of memory. */
enum fm_code fm_fail_no_memory(struct fm_error *error);

#endif
