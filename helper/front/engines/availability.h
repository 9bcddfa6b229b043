/*
 * What is known of an engine's availability (ENGINE.md, Availability), and for how long. Pure: no locks, the clock is
 * handed in.
 */
#ifndef FM_FRONT_ENGINES_AVAILABILITY_H
#define FM_FRONT_ENGINES_AVAILABILITY_H

#include "base/error.h"
#include "protocol/engine.h"

#include <stddef.h>

#define FM_GOOD_MS     60000    /* the answer that an engine is available holds for this long */
#define FM_BAD_MS      300000   /* the answer that it is not available holds for this long */
#define FM_OFFLINE_MS  5000     /* the same if the network is the reason, which may come back at any moment */
#define FM_WAIT_MAX_MS 86400000 /* the most that ttl_ms and retry_after_ms may be */

struct json_object;

/* A model that an engine lists. */
struct fm_listed {
    char *id;               /* owned */
    int64_t context_length; /* 0: unknown */
};

enum fm_known { FM_KNOWN_NOT, FM_KNOWN_GOOD, FM_KNOWN_BAD };

/* Zeroed, it is ready: nothing is known. */
struct fm_verdict {
    enum fm_known known;      /* what the engine's last answer said */
    int64_t until_ms;         /* until then the last answer holds */
    struct fm_error error;    /* FM_KNOWN_BAD: FM_UNAVAILABLE with the reason_code and what to do */
    bool has_models;          /* the engine has listed its models */
    struct fm_listed *models; /* the default one first; owned */
    size_t model_count;
};

/*
 * Takes the result of engine.available (borrowed). A result that is wrong counts as HELPER_UNHEALTHY. If it has no list
 * of models, an earlier list stays.
 */
void fm_availability_take(struct fm_verdict *availability, struct json_object *result, int64_t now_ms);

/* The engine could not be asked, or refused a load: `error` says why. Without a reason_code it is HELPER_UNHEALTHY. */
void fm_availability_fail(struct fm_verdict *availability, const struct fm_error *error, int64_t now_ms);

/* A load went well. */
void fm_availability_good(struct fm_verdict *availability, int64_t now_ms);

/*
 * A job for the default model has ended: well (`error` NULL), after which an engine that was not available is, or not.
 * UNAVAILABLE with a reason_code counts as the engine's word on itself, for as long as `retry_ms` says at most; any
 * other error says nothing.
 */
void fm_availability_job(struct fm_verdict *availability, const struct fm_error *error, int64_t now_ms);

/* What is known now. */
enum fm_known fm_availability_known(const struct fm_verdict *availability, int64_t now_ms);

/* The listed model with the id; NULL: there is none. */
const struct fm_listed *fm_availability_find(const struct fm_verdict *availability, const char *id);

/* Whether `code` is one that an engine may use (ENGINE.md, Availability). */
bool fm_is_reason_code(const char *code);

/* Frees what is owned; ready again. */
void fm_availability_free(struct fm_verdict *availability);

#endif
