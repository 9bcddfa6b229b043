/* responses.create: POST /responses. Its params are those of surface/responses_request.c. */
#include "front/methods/create.h"

const struct fm_method fm_method_responses_create = {"responses.create", FM_METHOD_CREATES,
                                                     .surface = &fm_surface_responses};
