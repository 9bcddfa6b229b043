/* A table of keywords, each with its check. Only the first fault is reported. */
#include "tools/schema.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define PATH_MAX_BYTES 200u

struct check {
    struct json_object *schema;
    struct json_object *value;
    const char *path;
    struct fm_error *error;
};

static enum fm_code check_value(const struct check *check);

static enum fm_code refuse_input(const struct check *check, const char *fmt, ...) FM_PRINTF(2, 3);

static enum fm_code refuse_input(const struct check *check, const char *fmt, ...) {
    char detail[200];
    const char *name = *check->path ? check->path : "the input";
    va_list args;
    va_start(args, fmt);
    vsnprintf(detail, sizeof detail, fmt, args);
    va_end(args);
    fm_fail(check->error, FM_INVALID_REQUEST, "%s %s", name, detail);
    snprintf(check->error->param, sizeof check->error->param, "%s", check->path);
    return FM_INVALID_REQUEST;
}

static bool has_type(struct json_object *value, const char *type) {
    static const struct {
        const char *name;
        enum json_type type;
    } types[] = {
        {"object", json_type_object}, {"array", json_type_array},     {"string", json_type_string},
        {"integer", json_type_int},   {"boolean", json_type_boolean},
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(types[i].name, type) == 0) {
            return json_object_is_type(value, types[i].type);
        }
    }
    return false;
}

static enum fm_code check_type(const struct check *check, struct json_object *rule) {
    const char *type = json_object_get_string(rule);
    if (has_type(check->value, type)) {
        return FM_OK;
    }
    char text[80];
    snprintf(text, sizeof text, "must be of type %.40s", type);
    return refuse_input(check, "%s", text);
}

static enum fm_code check_required(const struct check *check, struct json_object *rule) {
    for (size_t i = 0; i < json_object_array_length(rule); i++) {
        const char *name = json_object_get_string(json_object_array_get_idx(rule, i));
        if (!json_object_object_get_ex(check->value, name, NULL)) {
            char path[PATH_MAX_BYTES];
            snprintf(path, sizeof path, "%s%s%s", check->path, *check->path ? "." : "", name);
            struct check missing = {.path = path, .error = check->error};
            return refuse_input(&missing, "is missing");
        }
    }
    return FM_OK;
}

static enum fm_code check_properties(const struct check *check, struct json_object *rule) {
    enum fm_code code = FM_OK;
    for (struct lh_entry *entry = json_object_get_object(check->value)->head; entry; entry = entry->next) {
        const char *name = lh_entry_k(entry);
        struct json_object *value = (struct json_object *)lh_entry_v(entry);
        char path[PATH_MAX_BYTES];
        struct json_object *schema = NULL;
        int shown = fm_utf8_shown(name, 60);
        snprintf(path, sizeof path, "%.120s%s%.*s", check->path, *check->path ? "." : "", shown, name);
        struct check member = {.value = value, .path = path, .error = check->error};
        if (json_object_object_get_ex(rule, name, &schema)) {
            member.schema = schema;
            code = check_value(&member);
        } else if (json_object_object_get_ex(check->schema, "additionalProperties", NULL)) {
            code = refuse_input(&member, "is not known here; leave it out");
        }
        if (code != FM_OK) {
            return code;
        }
    }
    return FM_OK;
}

static enum fm_code check_items(const struct check *check, struct json_object *rule) {
    for (size_t i = 0; i < json_object_array_length(check->value); i++) {
        char path[PATH_MAX_BYTES];
        snprintf(path, sizeof path, "%.150s[%zu]", check->path, i);
        struct check item = {rule, json_object_array_get_idx(check->value, i), path, check->error};
        enum fm_code code = check_value(&item);
        if (code != FM_OK) {
            return code;
        }
    }
    return FM_OK;
}

static enum fm_code check_enum(const struct check *check, struct json_object *rule) {
    char text[160] = "must be one of:";
    for (size_t i = 0; i < json_object_array_length(rule); i++) {
        const char *word = json_object_get_string(json_object_array_get_idx(rule, i));
        size_t len = strlen(text);
        if (json_object_is_type(check->value, json_type_string) &&
            strcmp(word, json_object_get_string(check->value)) == 0) {
            return FM_OK;
        }
        snprintf(text + len, sizeof text - len, "%s %s", i ? "," : "", word);
    }
    return refuse_input(check, "%s", text);
}

static int64_t characters(struct json_object *value) {
    return (int64_t)fm_utf8_characters(json_object_get_string(value), (size_t)json_object_get_string_len(value));
}

static enum fm_code check_min_length(const struct check *check, struct json_object *rule) {
    int64_t bound = json_object_get_int64(rule);
    return characters(check->value) >= bound ? FM_OK
           : bound == 1                      ? refuse_input(check, "must not be empty")
                                             : refuse_input(check, "must have at least %" PRId64 " characters", bound);
}

static enum fm_code check_max_length(const struct check *check, struct json_object *rule) {
    int64_t bound = json_object_get_int64(rule);
    return characters(check->value) <= bound ? FM_OK
                                             : refuse_input(check, "must have at most %" PRId64 " characters", bound);
}

static enum fm_code check_min_items(const struct check *check, struct json_object *rule) {
    int64_t bound = json_object_get_int64(rule);
    bool holds = (int64_t)json_object_array_length(check->value) >= bound;
    return holds ? FM_OK : refuse_input(check, "must have at least %" PRId64 " items", bound);
}

static enum fm_code check_max_items(const struct check *check, struct json_object *rule) {
    int64_t bound = json_object_get_int64(rule);
    bool holds = (int64_t)json_object_array_length(check->value) <= bound;
    return holds ? FM_OK : refuse_input(check, "must have at most %" PRId64 " items", bound);
}

static enum fm_code check_minimum(const struct check *check, struct json_object *rule) {
    int64_t bound = json_object_get_int64(rule);
    return json_object_get_int64(check->value) >= bound ? FM_OK
                                                        : refuse_input(check, "must be at least %" PRId64, bound);
}

static enum fm_code check_maximum(const struct check *check, struct json_object *rule) {
    int64_t bound = json_object_get_int64(rule);
    return json_object_get_int64(check->value) <= bound ? FM_OK
                                                        : refuse_input(check, "must be at most %" PRId64, bound);
}

static enum fm_code no_check(const struct check *check, struct json_object *rule) {
    (void)check;
    (void)rule;
    return FM_OK;
}

/* The rows are in the order of the checks: the type comes first, because the other checks rely on it. */
static const struct {
    const char *name;
    enum fm_code (*check)(const struct check *check, struct json_object *rule);
} keywords[] = {
    {"type", check_type},
    {"enum", check_enum},
    {"required", check_required},
    {"properties", check_properties},
    {"minLength", check_min_length},
    {"maxLength", check_max_length},
    {"minItems", check_min_items},
    {"maxItems", check_max_items},
    {"items", check_items},
    {"minimum", check_minimum},
    {"maximum", check_maximum},
    {"additionalProperties", no_check}, /* check_properties handles this keyword */
    {"title", no_check},
    {"description", no_check},
};
#define KEYWORDS (sizeof keywords / sizeof keywords[0])

static bool is_keyword(const char *name) {
    for (size_t i = 0; i < KEYWORDS; i++) {
        if (strcmp(keywords[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static enum fm_code check_value(const struct check *check) {
    for (struct lh_entry *entry = json_object_get_object(check->schema)->head; entry; entry = entry->next) {
        const char *name = lh_entry_k(entry);
        if (!is_keyword(name)) {
            return fm_fail(check->error, FM_INTERNAL, "the tool's schema has the keyword %s, which is not checked",
                           name);
        }
    }
    if (!json_object_object_get_ex(check->schema, "type", NULL)) {
        return fm_fail(check->error, FM_INTERNAL, "the tool's schema has a part without a type");
    }
    for (size_t i = 0; i < KEYWORDS; i++) {
        struct json_object *rule = NULL;
        if (json_object_object_get_ex(check->schema, keywords[i].name, &rule)) {
            enum fm_code code = keywords[i].check(check, rule);
            if (code != FM_OK) {
                return code;
            }
        }
    }
    return FM_OK;
}

enum fm_code gw_schema_check(struct json_object *schema, struct json_object *input, struct fm_error *error) {
    const struct check check = {schema, input, "", error};
    return check_value(&check);
}
