/* The tables of Apple's reasons and statuses: one row for each, and one for unknown ones. */
#include "engine/apple/status.h"

#include <stdio.h>
#include <string.h>

#define RATE_MS                                                                                                        \
    60000 /* the library does not say how long to wait; Apple's limits for apps in the background last minutes */

static const struct {
    int reason;
    const char *reason_code;
    const char *detail;
} reasons[] = {
    {FM_APPLE_NOT_ENABLED, "AI_DISABLED", "Apple Intelligence is off; turn it on in System Settings"},
    {FM_APPLE_NOT_ELIGIBLE, "UNSUPPORTED_HARDWARE", "this Mac can't run Apple Intelligence; use another engine"},
    {FM_APPLE_NOT_READY, "MODEL_NOT_READY", "macOS still downloads Apple's model; try again later"},
    {FM_APPLE_REASON_UNKNOWN, "HELPER_UNHEALTHY", "Apple's model is not available, and macOS does not say why"},
};

enum fm_code fm_apple_unavailable(int reason, struct fm_error *error) {
    size_t row = sizeof reasons / sizeof reasons[0] - 1;
    for (size_t i = 0; i < row; i++) {
        row = reasons[i].reason == reason ? i : row;
    }
    (void)fm_fail(error, FM_UNAVAILABLE, "%s", reasons[row].detail);
    snprintf(error->reason_code, sizeof error->reason_code, "%s", reasons[row].reason_code);
    return FM_UNAVAILABLE;
}

static const struct {
    int status;
    enum fm_code code;
    enum fm_reason after_output; /* how the job ends if there was output; FM_REASON_ERROR: the same as without output */
    const char *reason_code;     /* NULL: none */
    bool elsewhere;
    int64_t retry_ms;
    const char *detail;
} statuses[] = {
    {FM_APPLE_CONTEXT, FM_CONTEXT_OVERFLOW, FM_REASON_LENGTH, NULL, true, 0,
     "the conversation is longer than the context of Apple's model; shorten it"},
    {FM_APPLE_ASSETS, FM_UNAVAILABLE, FM_REASON_ERROR, "MODEL_NOT_READY", false, 0,
     "the files of Apple's model are not there; macOS may still be downloading them"},
    {FM_APPLE_GUARDRAIL, FM_GUARDRAIL, FM_REASON_CONTENT_FILTER, NULL, false, 0,
     "Apple's guardrails stopped the request or its answer"},
    {FM_APPLE_GUIDE, FM_INVALID_REQUEST, FM_REASON_ERROR, NULL, true, 0,
     "Apple's model can't follow a part of the schema; simplify it"},
    {FM_APPLE_LANGUAGE, FM_INVALID_REQUEST, FM_REASON_ERROR, NULL, true, 0,
     "Apple's model does not know the language of the request"},
    {FM_APPLE_DECODING, FM_INTERNAL, FM_REASON_ERROR, NULL, false, 0,
     "Apple's model wrote an answer that is not of the schema; try again, or simplify the schema"},
    {FM_APPLE_RATE, FM_RATE_LIMITED, FM_REASON_ERROR, NULL, false, RATE_MS,
     "macOS limits how often a program in the background may use Apple's model"},
    {FM_APPLE_CONCURRENT, FM_INTERNAL, FM_REASON_ERROR, NULL, false, 0,
     "two requests came to one session of Apple's model"},
    {FM_APPLE_SCHEMA, FM_INVALID_REQUEST, FM_REASON_ERROR, NULL, true, 0,
     "Apple's library does not take the schema; simplify it"},
    {FM_APPLE_ARGUMENT, FM_INTERNAL, FM_REASON_ERROR, NULL, false, 0, "Apple's library was called with no object"},
};

/* Copies DOMAIN:CODE from "Error DOMAIN:CODE - ...". The rest is dropped, because it may quote the request. */
static void name_unknown(int status, const char *text, struct fm_error *error) {
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-";
    const char *name = strncmp(text, "Error ", 6) == 0 ? text + 6 : "";
    size_t len = strspn(name, allowed);
    if (len == 0 || len > 120 || name[len] != ' ' || !memchr(name, ':', len)) {
        (void)fm_fail(error, FM_INTERNAL, "Apple's library failed with status %d", status);
    } else if (strstr(name, "LanguageModelError:") && strstr(name, "LanguageModelError:") < name + len) {
        /* The name of the errors in programs that were built with the SDK of macOS 27. */
        (void)fm_fail(error, FM_INTERNAL,
                      "Apple's library failed (%.*s). It was built with Xcode 27, whose errors it can't tell apart: "
                      "build it with Xcode 26.4",
                      (int)len, name);
    } else {
        (void)fm_fail(error, FM_INTERNAL, "Apple's library failed (%.*s)", (int)len, name);
    }
}

enum fm_reason fm_apple_end_reason(const struct fm_apple_end *end, struct fm_error *error) {
    if (end->status == FM_APPLE_REFUSAL) {
        return FM_REASON_STOP;
    }
    if (end->status == FM_APPLE_DECODING && end->at_limit) {
        return FM_REASON_LENGTH;
    }
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        if (statuses[i].status != end->status) {
            continue;
        }
        if (end->spoke && statuses[i].after_output != FM_REASON_ERROR) {
            return statuses[i].after_output;
        }
        (void)fm_fail(error, statuses[i].code, "%s", statuses[i].detail);
        error->elsewhere = statuses[i].elsewhere;
        error->retry_ms = statuses[i].retry_ms;
        snprintf(error->reason_code, sizeof error->reason_code, "%s",
                 statuses[i].reason_code ? statuses[i].reason_code : "");
        if (end->status == FM_APPLE_GUIDE || end->status == FM_APPLE_SCHEMA) {
            snprintf(error->param, sizeof error->param, "%s", end->tools ? "tools" : "format.schema");
        }
        return FM_REASON_ERROR;
    }
    name_unknown(end->status, end->text, error);
    return FM_REASON_ERROR;
}
