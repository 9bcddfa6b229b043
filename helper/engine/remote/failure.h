/*
 * Translates a server's refusal, or a failed connection, into an error for the front: a code of PROTOCOL.md, the
 * reason, and when to try again (the table in docs/remote.md). Pure.
 */
#ifndef FM_ENGINE_REMOTE_FAILURE_H
#define FM_ENGINE_REMOTE_FAILURE_H

#include "base/error.h"
#include "engine/remote/key.h"

#include <stdbool.h>

struct json_object;

#define FM_FAILURE_BODY_MAX 65536u /* bytes of an error's body that are read */

/* An answer whose status is not 200. */
struct fm_refusal {
    const char *host; /* the endpoint's name */
    long status;
    const char *body; /* the part of the body that has come */
    size_t len;
    const char *retry_after;    /* the header's value; "": the header is missing */
    const char *retry_after_ms; /* OpenAI's */
    const char *location;       /* of a redirect */
    int64_t now;                /* seconds since 1970; by the server's clock if the server sent its time */
};

/* Fills `error` and returns its code. */
enum fm_code fm_failure_of_status(const struct fm_refusal *refusal, const struct fm_secrets *secrets,
                                  struct fm_error *error);

/*
 * Fills `error` from an error object in the middle of a stream, and returns its code. NULL: the object was not found.
 */
enum fm_code fm_failure_of_event(const char *host, struct json_object *object, const struct fm_secrets *secrets,
                                 struct fm_error *error);

/* How far a transfer was when it failed. */
enum fm_transfer_phase {
    FM_PHASE_CONNECTING, /* nothing of the request was sent yet */
    FM_PHASE_WAITING,    /* nothing of the answer has come */
    FM_PHASE_ANSWERING,
};

/*
 * Fills `error` for a failed transfer. `result` is libcurl's code, `text` is its description (borrowed, masked here).
 */
enum fm_code fm_failure_of_transfer(const char *host, int result, const char *text, enum fm_transfer_phase phase,
                                    const struct fm_secrets *secrets, struct fm_error *error);

/* Fills `error` for a proxy that refused the connection to the server with this status. */
enum fm_code fm_failure_of_proxy(const char *host, long status, struct fm_error *error);

/* Whether another endpoint may succeed after this failure, as long as there was no output. */
bool fm_failure_moves_on(const struct fm_error *error);

#endif
