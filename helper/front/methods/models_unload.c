/* models.unload: see surface/models.c. */
#include "front/methods/create.h"

const struct fm_method fm_method_models_unload = {"models.unload", FM_METHOD_CREATES, .surface = &fm_surface_unload};
