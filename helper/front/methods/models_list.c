/* models.list: GET /models. */
#include "front/methods/methods.h"
#include "front/methods/model_object.h"

static enum fm_code models_list(struct fm_front *front, const struct fm_method_call *call,
                                struct fm_json_writer *result, struct fm_error *error) {
    struct fm_model_list list;
    (void)call;
    if (fm_models_list(&front->options, &front->program.files, &list, error) != FM_OK) {
        return error->code;
    }
    fm_json_key_str(result, "object", "list");
    fm_json_key(result, "data");
    fm_json_array_begin(result);
    for (size_t i = 0; i < list.count; i++) {
        fm_json_object_begin(result);
        fm_model_write_members(result, &list.models[i]);
        fm_json_object_end(result);
    }
    fm_json_array_end(result);
    fm_model_list_free(&list);
    return FM_OK;
}

const struct fm_method fm_method_models_list = {"models.list", 0, fm_no_params, .run = models_list};
