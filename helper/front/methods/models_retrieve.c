/* models.retrieve: GET /models/{id}. */
#include "front/engines/route.h"
#include "front/methods/methods.h"
#include "front/methods/model_object.h"

#include <json-c/json.h>

static const struct fm_rule rules[] = {{.name = "id", .check = fm_check_text, .required = true}, {0}};

static enum fm_code models_retrieve(struct fm_front *front, const struct fm_method_call *call,
                                    struct fm_json_writer *result, struct fm_error *error) {
    struct fm_model model;
    const char *id = json_object_get_string(json_object_object_get(call->params, "id"));
    if (!*id) { /* in a request an empty name means the default model, but here no model has that id */
        fm_fail(error, FM_NOT_FOUND, "the model '' does not exist; models.list has the ids");
        error->reason = "model_not_found";
        snprintf(error->param, sizeof error->param, "model");
        return FM_NOT_FOUND;
    }
    if (fm_route_look_up(front, id, &model, error) != FM_OK) {
        return error->code;
    }
    fm_model_write_members(result, &model);
    fm_model_free(&model);
    return FM_OK;
}

const struct fm_method fm_method_models_retrieve = {"models.retrieve", FM_METHOD_NEEDS_PARAMS, rules,
                                                    .run = models_retrieve};
