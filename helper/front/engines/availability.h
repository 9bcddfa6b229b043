/*
 * The known availability of an engine (ENGINE.md, Availability), and how long it counts. Pure: no locks; the caller
 * passes the time.
 */
#ifndef FM_FRONT_ENGINES_AVAILABILITY_H
#define FM_FRONT_ENGINES_AVAILABILITY_H

#include "base/error.h"
#include "protocol/engine.h"

#include <stddef.h>

#define FM_GOOD_MS     60000    /* the answer that an engine is available holds for this long */
#define FM_BAD_MS      300000   /* the answer that it is not available holds for this long */
#define FM_OFFLINE_MS  5000     /* the same if the reason is the network, which may come back at any moment */
#define FM_WAIT_MAX_MS 86400000 /* upper limit of ttl_ms and retry_after_ms */

struct json_object;

/* A model that an engine lists. */
struct fm_listed {
    char *id;               /* owned */
    int64_t context_length; /* 0: unknown */
};

enum fm_known { FM_KNOWN_NOT, FM_KNOWN_GOOD, FM_KNOWN_BAD };

/* All zero is a valid start: nothing is known. */
struct fm_verdict {
    enum fm_known known;      /* what the engine's last answer said */
    int64_t until_ms;         /* the last answer holds until this time */
    struct fm_error error;    /* FM_KNOWN_BAD: FM_UNAVAILABLE with the reason_code and what to do */
    bool has_models;          /* the engine has listed its models */
    struct fm_listed *models; /* the default model first; owned */
    size_t model_count;
};

/*
 * Takes the result of engine.available (borrowed). A malformed result counts as HELPER_UNHEALTHY. If the result has no
 * list of models, an earlier list stays.
 */
void fm_availability_take(struct fm_verdict *availability, struct json_object *result, int64_t now_ms);

/*
 * Notes that the engine could not be asked, or refused a load: `error` says why. An error without a reason_code counts
 * as HELPER_UNHEALTHY.
 */
void fm_availability_fail(struct fm_verdict *availability, const struct fm_error *error, int64_t now_ms);

/* Notes that a load succeeded. */
void fm_availability_good(struct fm_verdict *availability, int64_t now_ms);

/*
 * Notes the end of a job for the default model. If it ended well (`error` NULL), an engine that was unavailable is
 * available again. An UNAVAILABLE with a reason_code counts as the engine's report about itself, for at most
 * `retry_ms`. Other errors say nothing about the engine.
 */
void fm_availability_job(struct fm_verdict *availability, const struct fm_error *error, int64_t now_ms);

/* What is known now. */
enum fm_known fm_availability_known(const struct fm_verdict *availability, int64_t now_ms);

/* The listed model with the id; NULL: there is none. */
const struct fm_listed *fm_availability_find(const struct fm_verdict *availability, const char *id);

/* Whether `code` is one that an engine may use (ENGINE.md, Availability). */
bool fm_is_reason_code(const char *code);

/* Frees what is owned; afterwards nothing is known. */
void fm_availability_free(struct fm_verdict *availability);

#endif
