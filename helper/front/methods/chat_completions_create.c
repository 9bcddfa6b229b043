/* chat.completions.create: POST /chat/completions. Its params are those of surface/chat_request.c. */
#include "front/methods/create.h"

const struct fm_method fm_method_chat_completions_create = {"chat.completions.create", FM_METHOD_CREATES,
                                                            .surface = &fm_surface_chat};
