/* A model as the OpenAI API shows it. */
#include "front/methods/model_object.h"

void fm_model_write_members(struct fm_json_writer *w, const struct fm_model *model) {
    fm_json_key_str(w, "id", model->id);
    fm_json_key_str(w, "object", "model");
    fm_json_key_int(w, "created", model->created);
    fm_json_key_str(w, "owned_by", "fm-proxy");
}
