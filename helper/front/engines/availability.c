/*
 * The known availability of an engine. An answer counts until its time is over, a list of models until the next list.
 */
#include "front/engines/availability.h"
#include "base/utf8.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const reason_codes[] = {
    "MODEL_NOT_READY", "AI_DISABLED",    "UNSUPPORTED_HARDWARE", "UNSUPPORTED_PLATFORM",
    "OS_TOO_OLD",      "NOT_CONFIGURED", "AUTH_FAILED",          "QUOTA",
    "OFFLINE",         "TLS_FAILED",     "RATE_LIMITED",         "HELPER_UNHEALTHY",
};

bool fm_is_reason_code(const char *code) {
    size_t i = 0;
    while (i < sizeof reason_codes / sizeof reason_codes[0] && strcmp(reason_codes[i], code) != 0) {
        i++;
    }
    return i < sizeof reason_codes / sizeof reason_codes[0];
}

static void free_models(struct fm_verdict *availability) {
    for (size_t i = 0; i < availability->model_count; i++) {
        free(availability->models[i].id);
    }
    free(availability->models);
    availability->models = NULL;
    availability->model_count = 0;
}

void fm_availability_free(struct fm_verdict *availability) {
    free_models(availability);
    *availability = (struct fm_verdict){0};
}

static const char *entry_text(struct json_object *object, const char *name) {
    struct json_object *value = json_object_object_get(object, name);
    return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : NULL;
}

/*
 * For how long an answer holds: `ttl` if the answer has it, else a time that depends on the reason in `error` (NULL:
 * available).
 */
static int64_t life_of(struct json_object *ttl, const struct fm_error *error) {
    int64_t ms = json_object_is_type(ttl, json_type_int) ? json_object_get_int64(ttl) : -1;
    if (ms >= 0) {
        return ms < FM_WAIT_MAX_MS ? ms : FM_WAIT_MAX_MS;
    }
    return !error ? FM_GOOD_MS : strcmp(error->reason_code, "OFFLINE") == 0 ? FM_OFFLINE_MS : FM_BAD_MS;
}

/* Reads the list of models. Malformed entries are left out, and so are those beyond FM_LISTED_MAX. */
static void take_models(struct fm_verdict *availability, struct json_object *list) {
    size_t count = json_object_array_length(list);
    struct fm_listed *models = calloc(count < FM_LISTED_MAX ? count + 1 : FM_LISTED_MAX, sizeof *models);
    if (!models) {
        return; /* the earlier list stays */
    }
    free_models(availability);
    availability->models = models;
    availability->has_models = true;
    for (size_t i = 0; i < count && availability->model_count < FM_LISTED_MAX; i++) {
        struct json_object *entry = json_object_array_get_idx(list, i);
        const char *id = entry_text(entry, "id");
        bool valid = id && *id && strlen(id) <= FM_LISTED_ID_MAX && !fm_availability_find(availability, id);
        char *copy = valid ? strdup(id) : NULL;
        if (copy) {
            int64_t context = json_object_get_int64(json_object_object_get(entry, "context_length"));
            models[availability->model_count++] =
                (struct fm_listed){.id = copy, .context_length = context > 0 ? context : 0};
        }
    }
}

void fm_availability_take(struct fm_verdict *availability, struct json_object *result, int64_t now_ms) {
    struct json_object *available = json_object_object_get(result, "available");
    struct json_object *models = json_object_object_get(result, "models");
    struct json_object *ttl = json_object_object_get(result, "ttl_ms");
    struct fm_error error;
    if (!json_object_is_type(available, json_type_boolean)) {
        (void)fm_fail(&error, FM_UNAVAILABLE, "the engine does not say whether it is available");
        fm_availability_fail(availability, &error, now_ms);
        return;
    }
    if (json_object_is_type(models, json_type_array)) {
        take_models(availability, models);
    }
    if (json_object_get_boolean(available)) {
        availability->known = FM_KNOWN_GOOD;
        availability->until_ms = now_ms + life_of(ttl, NULL);
        return;
    }
    const char *detail = entry_text(result, "detail");
    const char *code = entry_text(result, "reason_code");
    (void)fm_fail(&error, FM_UNAVAILABLE, "%s", detail ? detail : "the engine is not available, and gave no reason");
    snprintf(error.reason_code, sizeof error.reason_code, "%s", code && fm_is_reason_code(code) ? code : "");
    fm_availability_fail(availability, &error, now_ms);
    availability->until_ms = now_ms + life_of(ttl, &availability->error);
}

void fm_availability_fail(struct fm_verdict *availability, const struct fm_error *error, int64_t now_ms) {
    availability->known = FM_KNOWN_BAD;
    availability->error = *error;
    availability->error.code = FM_UNAVAILABLE;
    if (!error->reason_code[0]) {
        snprintf(availability->error.reason_code, sizeof availability->error.reason_code, "HELPER_UNHEALTHY");
    }
    availability->until_ms = now_ms + life_of(NULL, &availability->error);
}

void fm_availability_good(struct fm_verdict *availability, int64_t now_ms) {
    availability->known = FM_KNOWN_GOOD;
    availability->until_ms = now_ms + FM_GOOD_MS;
}

void fm_availability_job(struct fm_verdict *availability, const struct fm_error *error, int64_t now_ms) {
    if (error && error->code == FM_UNAVAILABLE && error->reason_code[0]) {
        fm_availability_fail(availability, error, now_ms);
        if (error->retry_ms > 0 && error->retry_ms < availability->until_ms - now_ms) {
            availability->until_ms = now_ms + error->retry_ms;
        }
    } else if (!error && availability->known == FM_KNOWN_BAD) {
        fm_availability_good(availability, now_ms);
    }
}

enum fm_known fm_availability_known(const struct fm_verdict *availability, int64_t now_ms) {
    return now_ms < availability->until_ms ? availability->known : FM_KNOWN_NOT;
}

const struct fm_listed *fm_availability_find(const struct fm_verdict *availability, const char *id) {
    for (size_t i = 0; i < availability->model_count; i++) {
        if (strcmp(availability->models[i].id, id) == 0) {
            return &availability->models[i];
        }
    }
    return NULL;
}
