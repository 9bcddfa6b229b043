/* responses.compact: POST /responses/compact. Its params are those of surface/compact.c. */
#include "front/methods/create.h"

const struct fm_method fm_method_responses_compact = {"responses.compact", FM_METHOD_CREATES,
                                                      .surface = &fm_surface_compact};
