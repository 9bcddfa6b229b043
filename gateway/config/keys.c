/* The table of config.json's keys, and how a value gets into struct gw_config. Every key is one row here and one field.
 */
#include "config/config.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#define AT(field) offsetof(struct gw_config, field)

static const char loopback_only[] = "the gateway can be reached from this machine alone";

const struct gw_key gw_keys[] = {
    {"gateway", "port", GW_INT, AT(gateway_port), 0, 65535, NULL, "18789", "PROJ_JARVIS_PORT", "0 takes any free port"},
    {"gateway", "host", GW_CHOICE, AT(gateway_host), 0, 0, "127.0.0.1 localhost ::1 ", "\"127.0.0.1\"",
     "PROJ_JARVIS_HOST", loopback_only},
    {"agents", "default", GW_TEXT, AT(agents_default), 1, 64, NULL, "\"assistant\"", NULL, NULL},
    {"agents", "workspacePath", GW_TEXT, AT(agents_workspace_path), 1, 1000, NULL, "\"./workspace\"", NULL, NULL},
    {"tools", "timeout", GW_INT, AT(tools_timeout), 1, 86400000, NULL, "120000", NULL, "it is in milliseconds"},
    {"tools", "maxOutputBytes", GW_INT, AT(tools_max_output_bytes), 1, 4000000, NULL, "100000", NULL, NULL},
    {"tools", "approvalTimeout", GW_INT, AT(tools_approval_timeout), 1000, 86400000, NULL, "600000", NULL,
     "it is in milliseconds"},
    {"tools", "sandbox", GW_CHOICE, AT(tools_sandbox), 0, 0, "off write strict ", "\"off\"", NULL, NULL},
    {"memory", "enabled", GW_BOOL, AT(memory_enabled), 0, 0, NULL, "true", NULL, NULL},
    {"memory", "embeddingModel", GW_TEXT, AT(memory_embedding_model), 1, 256, NULL, "\"text-embedding-3-small\"", NULL,
     NULL},
    {"memory", "embeddingProvider", GW_CHOICE, AT(memory_embedding_provider), 0, 0, "local openai ", "\"local\"", NULL,
     NULL},
    {"security", "auditLog", GW_BOOL, AT(security_audit_log), 0, 0, NULL, "true", NULL, NULL},
    {"security", "secretsFilter", GW_BOOL, AT(security_secrets_filter), 0, 0, NULL, "true", NULL, NULL},
};
const size_t gw_key_count = sizeof gw_keys / sizeof gw_keys[0];

static bool same_text(const char *name, const char *text, size_t len) {
    return strlen(name) == len && memcmp(name, text, len) == 0;
}

const struct gw_key *gw_key_find(const char *group, size_t group_len, const char *name, size_t name_len) {
    for (size_t i = 0; i < gw_key_count; i++) {
        if (same_text(gw_keys[i].group, group, group_len) && same_text(gw_keys[i].name, name, name_len)) {
            return &gw_keys[i];
        }
    }
    return NULL;
}

bool gw_key_group_exists(const char *group, size_t len) {
    for (size_t i = 0; i < gw_key_count; i++) {
        if (same_text(gw_keys[i].group, group, len)) {
            return true;
        }
    }
    return false;
}

/* "must be an integer from 0 to 65535; WHY". */
static enum fm_code refuse_value(const struct gw_key *key, const char *found, struct fm_error *error) {
    const char *more = key->why ? "; " : "";
    const char *why = key->why ? key->why : "";
    long long min = (long long)key->min;
    long long max = (long long)key->max;
    switch (key->type) {
    case GW_INT:
        fm_fail(error, FM_INVALID_REQUEST, "must be an integer from %lld to %lld, not %s%s%s", min, max, found, more,
                why);
        break;
    case GW_BOOL: fm_fail(error, FM_INVALID_REQUEST, "must be true or false, not %s%s%s", found, more, why); break;
    case GW_TEXT:
        fm_fail(error, FM_INVALID_REQUEST, "must be a string of %lld to %lld bytes, not %s%s%s", min, max, found, more,
                why);
        break;
    case GW_CHOICE:
        fm_fail(error, FM_INVALID_REQUEST, "must be one of the strings %sbut is %s%s%s", key->choices, found, more,
                why);
        break;
    }
    snprintf(error->param, sizeof error->param, "%s.%s", key->group, key->name); /* fm_fail clears it */
    return FM_INVALID_REQUEST;
}

/* Whether `text` is one of `choices`, which each have a space after them. */
static bool is_choice(const char *choices, const char *text, size_t len) {
    for (const char *at = choices; *at; at = strchr(at, ' ') + 1) {
        if (len > 0 && strcspn(at, " ") == len && memcmp(at, text, len) == 0) {
            return true;
        }
    }
    return false;
}

static bool text_is_allowed(const struct gw_key *key, const char *text, size_t len) {
    if (memchr(text, 0, len) || len >= GW_CONFIG_TEXT_MAX) {
        return false;
    }
    return key->type == GW_CHOICE ? is_choice(key->choices, text, len)
                                  : (int64_t)len >= key->min && (int64_t)len <= key->max;
}

enum fm_code gw_key_set(struct gw_config *config, const struct gw_key *key, struct json_object *value,
                        struct fm_error *error) {
    static const enum json_type wanted[] = {json_type_int, json_type_boolean, json_type_string, json_type_string};
    char *field = (char *)config + key->offset;
    char found[80];
    snprintf(found, sizeof found, "%.60s", value ? json_object_to_json_string(value) : "null");
    if (!json_object_is_type(value, wanted[key->type])) {
        return refuse_value(key, found, error);
    }
    if (key->type == GW_BOOL) {
        *(bool *)field = json_object_get_boolean(value);
        return FM_OK;
    }
    if (key->type == GW_INT) {
        int64_t number = json_object_get_int64(value);
        if (number < key->min || number > key->max) {
            return refuse_value(key, found, error);
        }
        memcpy(field, &number, sizeof number);
        return FM_OK;
    }
    size_t len = (size_t)json_object_get_string_len(value);
    if (!text_is_allowed(key, json_object_get_string(value), len)) {
        return refuse_value(key, found, error);
    }
    memcpy(field, json_object_get_string(value), len + 1);
    return FM_OK;
}
