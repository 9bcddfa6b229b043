/* Checks parameters against their rows, before anything is looked up. */
#include "commands/table.h"
#include "base/utf8.h"
#include "desktop/refuse.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

/* The parameter's name in an error. */
struct place {
    char path[160];
    struct fm_error *error;
};

static enum fm_code wrong_type(const struct place *place, const char *wanted) {
    return sy_refuse(place->error, "invalid_type", place->path, "%s must be %s", place->path, wanted);
}

static enum fm_code check_string(struct json_object *value, const struct place *place) {
    if (!json_object_is_type(value, json_type_string)) {
        return wrong_type(place, "a string");
    }
    if (json_object_get_string_len(value) == 0) {
        return sy_refuse(place->error, "empty_string", place->path, "%s must not be empty", place->path);
    }
    if (strlen(json_object_get_string(value)) != (size_t)json_object_get_string_len(value)) {
        return sy_refuse(place->error, "invalid_type", place->path, "%s has a NUL character in it", place->path);
    }
    return FM_OK;
}

static enum fm_code check_word(const struct sy_param *param, struct json_object *value, const struct place *place) {
    enum fm_code code = check_string(value, place);
    for (size_t i = 0; code == FM_OK && param->words[i]; i++) {
        if (strcmp(param->words[i], json_object_get_string(value)) == 0) {
            return FM_OK;
        }
    }
    return code != FM_OK ? code
                         : sy_refuse(place->error, "unknown_monitor", place->path,
                                     "%s must be \"main\", \"left\" or \"right\"", place->path);
}

static enum fm_code check_index(struct json_object *value, const struct place *place) {
    if (!json_object_is_type(value, json_type_int)) {
        return wrong_type(place, "an integer: the number of a tab, from 1");
    }
    if (json_object_get_int64(value) < 1) {
        return sy_refuse(place->error, "invalid_index", place->path, "%s must be 1 or more: tabs are counted from 1",
                         place->path);
    }
    return FM_OK;
}

static bool comes_before(struct json_object *list, size_t at) {
    int64_t value = json_object_get_int64(json_object_array_get_idx(list, at));
    size_t i = 0;
    while (i < at && json_object_get_int64(json_object_array_get_idx(list, i)) != value) {
        i++;
    }
    return i < at;
}

static enum fm_code check_indices(struct json_object *list, const struct place *place) {
    if (!json_object_is_type(list, json_type_array)) {
        return wrong_type(place, "an array of tab numbers, such as [3]");
    }
    size_t count = json_object_array_length(list);
    if (count == 0) {
        return sy_refuse(place->error, "empty_list", place->path, "%s is empty: name at least one tab", place->path);
    }
    for (size_t i = 0; i < count; i++) {
        struct place at = {.error = place->error};
        snprintf(at.path, sizeof at.path, "%.120s[%zu]", place->path, i);
        enum fm_code code = check_index(json_object_array_get_idx(list, i), &at);
        if (code != FM_OK) {
            return code;
        }
        if (comes_before(list, i)) {
            return sy_refuse(at.error, "duplicate_index", at.path, "%s names a tab that stands there before", at.path);
        }
    }
    return FM_OK;
}

static enum fm_code check_bounds(struct json_object *list, const struct place *place) {
    static const char shape[] = "[left, top, right, bottom], four integers";
    if (!json_object_is_type(list, json_type_array) || json_object_array_length(list) != 4) {
        return sy_refuse(place->error, "invalid_bounds", place->path, "%s must be %s", place->path, shape);
    }
    int64_t edges[4];
    for (size_t i = 0; i < 4; i++) {
        struct json_object *edge = json_object_array_get_idx(list, i);
        edges[i] = json_object_get_int64(edge);
        if (!json_object_is_type(edge, json_type_int) || edges[i] < INT16_MIN || edges[i] > INT16_MAX) {
            return sy_refuse(place->error, "invalid_bounds", place->path, "%s must be %s from -32768 to 32767",
                             place->path, shape);
        }
    }
    if (edges[0] >= edges[2] || edges[1] >= edges[3]) {
        return sy_refuse(place->error, "invalid_bounds", place->path,
                         "%s has no area: right must be greater than left, and bottom than top", place->path);
    }
    return FM_OK;
}

static enum fm_code check_bool(struct json_object *value, const struct place *place) {
    return json_object_is_type(value, json_type_boolean) ? FM_OK : wrong_type(place, "true or false");
}

static enum fm_code check_value(const struct sy_param *param, struct json_object *value, const struct place *place) {
    switch (param->kind) {
    case SY_STRING: return check_string(value, place);
    case SY_WORD: return check_word(param, value, place);
    case SY_INDEX: return check_index(value, place);
    case SY_INDICES: return check_indices(value, place);
    case SY_BOOL: return check_bool(value, place);
    case SY_BOUNDS: return check_bounds(value, place);
    }
    return FM_OK;
}

static bool has_param(const struct sy_command *command, const char *name) {
    const struct sy_param *param = command->params;
    while (param->name && strcmp(param->name, name) != 0) {
        param++;
    }
    return param->name;
}

/* Whether "type" is allowed: it must name the called command, or be null. With another name it is not clear which
 * command is meant. */
static bool is_type_of(const struct sy_command *command, const char *name, struct json_object *value) {
    return strcmp(name, "type") == 0 &&
           (!value || (json_object_is_type(value, json_type_string) &&
                       strcmp(json_object_get_string(value), command->type) == 0));
}

/* Whether the command takes the parameter. Null (`value` NULL) means that it is left out. So parameters of other
 * commands may be null: a model that must name all parameters sets those to null. */
static bool is_known(const struct sy_command *command, const char *name, struct json_object *value) {
    bool known = has_param(command, name) || is_type_of(command, name, value);
    for (size_t i = 0; i < sy_command_count && !known && !value; i++) {
        known = has_param(&sy_commands[i], name);
    }
    return known;
}

enum fm_code sy_check_params(const struct sy_command *command, struct json_object *args, const char *prefix,
                             struct fm_error *error) {
    struct place place = {.error = error};
    if (args) {
        struct json_object_iter at;
        json_object_object_foreachC(args, at) {
            if (!is_known(command, at.key, at.val)) {
                snprintf(place.path, sizeof place.path, "%s%.*s", prefix, fm_utf8_shown(at.key, 64), at.key);
                return sy_refuse(error, "unknown_param", place.path, "%s has no parameter of that name", command->type);
            }
        }
    }
    for (const struct sy_param *param = command->params; param->name; param++) {
        struct json_object *value = NULL;
        json_object_object_get_ex(args, param->name, &value);
        snprintf(place.path, sizeof place.path, "%s%s", prefix, param->name);
        if (!value && param->required) {
            return sy_refuse(error, "missing_param", place.path, "%s needs %s: %s", command->type, place.path,
                             param->about);
        }
        enum fm_code code = value ? check_value(param, value, &place) : FM_OK;
        if (code != FM_OK) {
            return code;
        }
    }
    return FM_OK;
}
