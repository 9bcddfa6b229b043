/* A model as the OpenAI API shows it. */
#ifndef FM_FRONT_METHODS_MODEL_OBJECT_H
#define FM_FRONT_METHODS_MODEL_OBJECT_H

#include "front/engines/models.h"
#include "protocol/json_writer.h"

/* Writes the members of a model's object. Pure. */
void fm_model_write_members(struct fm_json_writer *w, const struct fm_model *model);

#endif
