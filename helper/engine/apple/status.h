/* Translates what Apple's library reports about a model and a task into the words of protocol/ENGINE.md. Pure. */
#ifndef FM_ENGINE_APPLE_STATUS_H
#define FM_ENGINE_APPLE_STATUS_H

#include "engine/kit/kit.h"

/* Why a model is not available. */
enum { FM_APPLE_NOT_ENABLED = 0, FM_APPLE_NOT_ELIGIBLE = 1, FM_APPLE_NOT_READY = 2, FM_APPLE_REASON_UNKNOWN = 255 };

/* How a task ended. */
enum {
    FM_APPLE_OK = 0,
    FM_APPLE_CONTEXT = 1,
    FM_APPLE_ASSETS = 2,
    FM_APPLE_GUARDRAIL = 3,
    FM_APPLE_GUIDE = 4,
    FM_APPLE_LANGUAGE = 5,
    FM_APPLE_DECODING = 6,
    FM_APPLE_RATE = 7,
    FM_APPLE_CONCURRENT = 8,
    FM_APPLE_REFUSAL = 9,
    FM_APPLE_SCHEMA = 10,
    FM_APPLE_ARGUMENT = 11,
    FM_APPLE_UNKNOWN = 255,
};

/* Fills reason_code, detail and code of `error` from the reason of an unavailable model. Returns FM_UNAVAILABLE. */
enum fm_code fm_apple_unavailable(int reason, struct fm_error *error);

/* What is known of a task that ended with an error. */
struct fm_apple_end {
    int status;       /* not FM_APPLE_OK */
    const char *text; /* the library's text: may hold user text, so little of it is passed on. NUL-terminated */
    bool spoke;       /* there was output before the end */
    bool at_limit;    /* the job has a token limit */
    bool tools;       /* the answer had to follow a tool's schema; otherwise the format's schema */
};

/*
 * Returns how the job ends. FM_REASON_STOP: the model has refused, and `text` is its output. FM_REASON_LENGTH and
 * FM_REASON_CONTENT_FILTER: the answer is cut. FM_REASON_ERROR: `error` is filled.
 */
enum fm_reason fm_apple_end_reason(const struct fm_apple_end *end, struct fm_error *error);

#endif
