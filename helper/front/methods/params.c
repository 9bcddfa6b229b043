/* Params that several methods read in the same way. */
#include "front/methods/params.h"
#include "front/ignored.h"
#include "surface/check.h"
#include "surface/ignored.h"

#include <stdio.h>
#include <string.h>

enum fm_code fm_params_wrong(struct fm_error *error, const char *param, const char *reason, const char *detail) {
    fm_fail(error, FM_INVALID_REQUEST, "%s", detail);
    error->reason = reason;
    snprintf(error->param, sizeof error->param, "%s", param);
    return error->code;
}

enum fm_code fm_params_judge_ignored(struct fm_front *front, const struct fm_buf *paths, struct fm_error *error) {
    if (paths->len > 0 && front->options.strict_parameters) {
        return fm_ignored_refuse(paths, error);
    }
    fm_front_lock(front);
    fm_log_ignored_locked(front, paths);
    fm_front_unlock(front);
    return FM_OK;
}

const char *fm_params_text(struct json_object *params, const char *name) {
    struct json_object *value = json_object_object_get(params, name);
    const char *text = json_object_is_type(value, json_type_string) ? json_object_get_string(value) : NULL;
    return text && strlen(text) == (size_t)json_object_get_string_len(value) ? text : NULL;
}

static enum fm_code no_such_response(struct fm_error *error) {
    fm_fail(error, FM_NOT_FOUND, "there is no such response: it was never made, not stored, or made room for others");
    error->reason = "response_not_found";
    return error->code;
}

enum fm_code fm_params_read_id(struct json_object *params, struct fm_store_query *query, struct fm_error *error) {
    *query = (struct fm_store_query){.id = ""};
    struct json_object *value;
    if (!json_object_object_get_ex(params, "id", &value)) {
        return fm_params_wrong(error, "id", "missing_required_parameter", "'id' must be a response's id");
    }
    if (!json_object_is_type(value, json_type_string)) {
        return fm_params_wrong(error, "id", "invalid_type", "'id' must be a response's id, a string");
    }
    const char *id = fm_params_text(params, "id");
    if (!id || strlen(id) >= sizeof query->id) {
        return no_such_response(error);
    }
    snprintf(query->id, sizeof query->id, "%s", id);
    return FM_OK;
}
