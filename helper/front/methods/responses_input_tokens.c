/* responses.input_tokens: POST /responses/input_tokens. Its params are those of surface/input_tokens.c. */
#include "front/methods/create.h"

const struct fm_method fm_method_responses_input_tokens = {"responses.input_tokens", FM_METHOD_CREATES,
                                                           .surface = &fm_surface_input_tokens};
