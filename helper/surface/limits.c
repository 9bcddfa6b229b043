/* The time limits of a request: reads them from its `fm` object, and finds which limit passes next. */
#include "surface/limits.h"
#include "surface/surface.h"

#include <json-c/json.h>

#define LONGEST_MS 86400000

#define LIMIT(member) {.name = member, .check = fm_check_int, .min = 1, .max = LONGEST_MS}

const struct fm_rule fm_limits_rules[] = {
    LIMIT("queue_timeout_ms"),
    LIMIT("first_token_timeout_ms"),
    LIMIT("no_progress_timeout_ms"),
    LIMIT("timeout_ms"),
    {.name = "keep_alive_ms", .check = fm_check_int, .min = -1, .max = LONGEST_MS},
    {0},
};

static int64_t read_limit(struct json_object *fm, const char *name, int64_t otherwise) {
    struct json_object *value = json_object_object_get(fm, name);
    return value ? json_object_get_int64(value) : otherwise;
}

struct fm_limits fm_limits_read(struct json_object *fm) {
    struct fm_limits limits = FM_LIMITS_DEFAULT;
    limits.queue_named = json_object_object_get(fm, "queue_timeout_ms");
    limits.first_token_named = json_object_object_get(fm, "first_token_timeout_ms");
    limits.queue_ms = read_limit(fm, "queue_timeout_ms", limits.queue_ms);
    limits.first_token_ms = read_limit(fm, "first_token_timeout_ms", limits.first_token_ms);
    limits.no_progress_ms = read_limit(fm, "no_progress_timeout_ms", limits.no_progress_ms);
    limits.keep_alive_ms = read_limit(fm, "keep_alive_ms", limits.keep_alive_ms);
    limits.total_ms = read_limit(fm, "timeout_ms", limits.total_ms);
    return limits;
}

struct fm_limit fm_limit_next(const struct fm_limits *limits, const struct fm_progress *progress) {
    int64_t sign = progress->sign_ms;
    const struct {
        bool counts;
        struct fm_limit limit;
    } rows[] = {
        {true, {"total", progress->arrived_ms, limits->total_ms}},
        {!progress->accepted, {"queue", limits->queue_named ? progress->arrived_ms : sign, limits->queue_ms}},
        {progress->accepted && (progress->produced || !progress->silent),
         {"no_progress", sign, limits->no_progress_ms}},
        {progress->accepted && !progress->produced,
         {"first_token", limits->first_token_named ? progress->accepted_ms : sign, limits->first_token_ms}},
    };
    struct fm_limit next = rows[0].limit;
    for (size_t i = 1; i < sizeof rows / sizeof rows[0]; i++) {
        const struct fm_limit *limit = &rows[i].limit;
        if (rows[i].counts && limit->since_ms + limit->length_ms < next.since_ms + next.length_ms) {
            next = *limit;
        }
    }
    return next;
}
