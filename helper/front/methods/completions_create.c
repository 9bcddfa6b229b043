/* completions.create: POST /completions, the legacy API. Its params are those of surface/completions_request.c. */
#include "front/methods/create.h"

const struct fm_method fm_method_completions_create = {"completions.create", FM_METHOD_CREATES,
                                                       .surface = &fm_surface_completions};
