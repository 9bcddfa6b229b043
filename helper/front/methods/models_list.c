/* models.list: GET /models. */
#include "front/engines/route.h"
#include "front/methods/methods.h"
#include "front/methods/model_object.h"

/* Writes the models of one engine. */
static enum fm_code write_models(struct fm_front *front, const struct fm_program *program,
                                 struct fm_json_writer *result, struct fm_error *error) {
    struct fm_model_list list;
    if (fm_program_models(front, program, &list, error) != FM_OK) {
        return error->code;
    }
    for (size_t i = 0; i < list.count; i++) {
        fm_json_object_begin(result);
        fm_model_write_members(result, &list.models[i]);
        fm_json_object_end(result);
    }
    fm_model_list_free(&list);
    return FM_OK;
}

static enum fm_code models_list(struct fm_front *front, const struct fm_method_call *call,
                                struct fm_json_writer *result, struct fm_error *error) {
    struct fm_error reason;
    (void)call;
    fm_json_key_str(result, "object", "list");
    fm_json_key(result, "data");
    fm_json_array_begin(result);
    for (size_t i = 0; i < front->program_count; i++) {
        struct fm_program *program = &front->programs[i];
        bool there = !program->files.beside || fm_program_readiness(front, program, &reason) != FM_READY_NO;
        if (there && write_models(front, program, result, error) != FM_OK) {
            return error->code;
        }
    }
    fm_json_array_end(result);
    return FM_OK;
}

const struct fm_method fm_method_models_list = {"models.list", 0, fm_no_params, .run = models_list};
