/*
 * Checks parameters by their rows. A handler is called only if all values are of the right kind and within the limits.
 */
#include "rpc/methods.h"

#include "base/utf8.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

static const struct gw_param *find_param(const struct gw_row *row, const char *name) {
    for (size_t i = 0; i < row->param_count; i++) {
        if (strcmp(row->params[i].name, name) == 0) {
            return &row->params[i];
        }
    }
    return NULL;
}

static bool is_key(const char *text, size_t len) {
    return len == GW_SESSION_KEY_LEN && strspn(text, "0123456789abcdef") == len;
}

static bool is_name(const char *text, size_t len, int64_t max) {
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7F) {
            return false;
        }
    }
    return len > 0 && (int64_t)len <= max;
}

static bool is_number(const struct gw_param *param, struct json_object *value) {
    int64_t least = param->kind == GW_PARAM_INT ? 1 : 0;
    return json_object_is_type(value, json_type_int) && json_object_get_int64(value) >= least &&
           json_object_get_int64(value) <= param->max;
}

static bool is_allowed(const struct gw_param *param, struct json_object *value) {
    if (param->kind == GW_PARAM_BOOL) {
        return json_object_is_type(value, json_type_boolean);
    }
    if (param->kind == GW_PARAM_INT || param->kind == GW_PARAM_SEQ) {
        return is_number(param, value);
    }
    if (!json_object_is_type(value, json_type_string)) {
        return false;
    }
    const char *text = json_object_get_string(value);
    size_t len = (size_t)json_object_get_string_len(value);
    switch (param->kind) {
    case GW_PARAM_NAME: return is_name(text, len, param->max);
    case GW_PARAM_KEY: return is_key(text, len);
    case GW_PARAM_TEXT:
    case GW_PARAM_INT:
    case GW_PARAM_SEQ:
    case GW_PARAM_BOOL: break;
    }
    return (int64_t)len <= param->max && (len > 0 || !param->required);
}

static void say_wanted(const struct gw_param *param, char *fault, size_t size) {
    long long max = (long long)param->max;
    switch (param->kind) {
    case GW_PARAM_INT: snprintf(fault, size, "%s: must be an integer from 1 to %lld", param->name, max); return;
    case GW_PARAM_SEQ: snprintf(fault, size, "%s: must be an integer from 0 to %lld", param->name, max); return;
    case GW_PARAM_BOOL: snprintf(fault, size, "%s: must be true or false", param->name); return;
    case GW_PARAM_NAME:
        snprintf(fault, size, "%s: must be a string of 1 to %lld bytes without control characters", param->name, max);
        return;
    case GW_PARAM_KEY:
        snprintf(fault, size, "%s: must be %u hexadecimal digits in lower case", param->name, GW_SESSION_KEY_LEN);
        return;
    case GW_PARAM_TEXT: break;
    }
    snprintf(fault, size, "%s: must be a string of %d to %lld bytes", param->name, param->required, max);
}

static void put_param(const struct gw_param *param, struct json_object *value, struct gw_params *params) {
    char *field = (char *)params + param->offset;
    if (param->kind == GW_PARAM_BOOL) {
        *(bool *)field = json_object_get_boolean(value);
    } else if (param->kind == GW_PARAM_INT || param->kind == GW_PARAM_SEQ) {
        int64_t number = json_object_get_int64(value);
        memcpy(field, &number, sizeof number);
    } else {
        struct gw_text text = {json_object_get_string(value), (size_t)json_object_get_string_len(value)};
        memcpy(field, &text, sizeof text);
    }
}

enum gw_code gw_params_read(const struct gw_row *row, struct json_object *values, struct gw_params *params, char *fault,
                            size_t size) {
    *params = (struct gw_params){0};
    if (values && !json_object_is_type(values, json_type_object)) {
        snprintf(fault, size, "params: must be an object");
        return GW_INVALID_PARAMS;
    }
    for (size_t i = 0; i < row->param_count; i++) {
        if (row->params[i].required && !json_object_object_get_ex(values, row->params[i].name, NULL)) {
            snprintf(fault, size, "%s: is missing", row->params[i].name);
            return GW_INVALID_PARAMS;
        }
    }
    if (!values) {
        return GW_OK;
    }
    struct json_object_iterator end = json_object_iter_end(values);
    for (struct json_object_iterator at = json_object_iter_begin(values); !json_object_iter_equal(&at, &end);
         json_object_iter_next(&at)) {
        const char *name = json_object_iter_peek_name(&at);
        struct json_object *value = json_object_iter_peek_value(&at);
        const struct gw_param *param = find_param(row, name);
        if (!param) {
            snprintf(fault, size, "%.*s: %s has no such parameter", fm_utf8_shown(name, 64), name, row->name);
            return GW_INVALID_PARAMS;
        }
        if (!is_allowed(param, value)) {
            say_wanted(param, fault, size);
            return GW_INVALID_PARAMS;
        }
        put_param(param, value, params);
    }
    return GW_OK;
}
