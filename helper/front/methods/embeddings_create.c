/* embeddings.create: POST /embeddings. Its params are those of surface/embeddings_request.c. */
#include "front/methods/create.h"

const struct fm_method fm_method_embeddings_create = {"embeddings.create", FM_METHOD_CREATES,
                                                      .surface = &fm_surface_embeddings};
