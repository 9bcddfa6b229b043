/* models.load: see surface/models.c. */
#include "front/methods/create.h"

const struct fm_method fm_method_models_load = {"models.load", FM_METHOD_CREATES, .surface = &fm_surface_load};
