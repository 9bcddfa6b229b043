#include "surface/limits.h"
#include "surface/surface.h"

#include <json-c/json.h>

#define LIMIT(member)                                                                                                  \
    { .name = member, .check = fm_check_int, .min = 1, .max = 86400000 }

const struct fm_rule fm_limits_rules[] = {
    LIMIT("queue_timeout_ms"),
    LIMIT("first_token_timeout_ms"),
    LIMIT("no_progress_timeout_ms"),
    LIMIT("timeout_ms"),
    {0},
};

static int64_t read_limit(struct json_object *fm, const char *name, int64_t otherwise) {
    struct json_object *value = json_object_object_get(fm, name);
    return value ? json_object_get_int64(value) : otherwise;
}

struct fm_limits fm_limits_read(struct json_object *fm) {
    struct fm_limits limits = FM_LIMITS_DEFAULT;
    limits.queue_ms = read_limit(fm, "queue_timeout_ms", limits.queue_ms);
    limits.first_token_ms = read_limit(fm, "first_token_timeout_ms", limits.first_token_ms);
    limits.no_progress_ms = read_limit(fm, "no_progress_timeout_ms", limits.no_progress_ms);
    limits.total_ms = read_limit(fm, "timeout_ms", limits.total_ms);
    return limits;
}
