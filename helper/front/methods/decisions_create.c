/* decisions.create: POST /decisions. Its params are those of surface/decisions_request.c. */
#include "front/methods/create.h"

const struct fm_method fm_method_decisions_create = {"decisions.create", FM_METHOD_CREATES,
                                                     .surface = &fm_surface_decisions};
