/* The rows of the parameters, and reading a value by its row. */
#include "protocol/params.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#define PARAM_ROW(id, name, kind, least, most, neutral)  {name, FM_PARAM_##kind, least, most, neutral},
#define PARAM_NAME(id, name, kind, least, most, neutral) name,
#define PASSED_NAME(id, name)                            name,

const struct fm_param_row fm_params[FM_PARAM_COUNT] = {FM_OPENAI_PARAMS(PARAM_ROW) FM_EXTRA_PARAMS(PARAM_ROW)};

const char *const fm_passed_names[FM_PASSED_COUNT] = {FM_PASSED_PARAMS(PASSED_NAME)};

const char *const fm_extra_names[FM_EXTRA_COUNT] = {FM_EXTRA_PARAMS(PARAM_NAME) FM_PASSED_PARAMS(PASSED_NAME)};

int fm_param_find(const char *name) {
    for (int i = 0; i < FM_PARAM_COUNT; i++) {
        if (strcmp(fm_params[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

bool fm_param_is_extra(const char *name) {
    return fm_param_find(name) >= FM_PARAM_FIRST_EXTRA;
}

/* Whether `value` has the JSON type of `kind`. */
static bool has_type(enum fm_param_kind kind, struct json_object *value) {
    if (kind == FM_PARAM_BOOL) {
        return json_object_is_type(value, json_type_boolean);
    }
    return json_object_is_type(value, json_type_int) ||
           (kind != FM_PARAM_INT && json_object_is_type(value, json_type_double));
}

bool fm_param_read(enum fm_param param, struct json_object *value, double *number) {
    const struct fm_param_row *row = &fm_params[param];
    double read = json_object_get_double(value);
    bool valid = has_type(row->kind, value) && read >= row->least && read <= row->most; /* NaN is not */
    *number = row->kind == FM_PARAM_INT && read < row->neutral ? row->neutral : read;
    return valid && (row->kind != FM_PARAM_ABOVE || read > row->least);
}

bool fm_param_asks(enum fm_param param, double value) {
    const struct fm_param_row *row = &fm_params[param];
    return row->kind == FM_PARAM_INT ? value > row->neutral : value != row->neutral;
}

void fm_param_expect(enum fm_param param, char *text, size_t size) {
    const struct fm_param_row *row = &fm_params[param];
    switch (row->kind) {
    case FM_PARAM_NUMBER: snprintf(text, size, "a number from %.0f to %.0f", row->least, row->most); break;
    case FM_PARAM_ABOVE: snprintf(text, size, "a number above %.0f, up to %.0f", row->least, row->most); break;
    case FM_PARAM_INT: snprintf(text, size, "an integer from %.0f to %.0f", row->least, row->most); break;
    case FM_PARAM_BOOL: snprintf(text, size, "true or false"); break;
    }
}
