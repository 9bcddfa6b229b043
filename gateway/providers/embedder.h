/*
 * Vectors for the memory, from a separate helper: of the folder of an embedding model here, or of OpenAI's API. Loop
 * thread; nothing blocks but gw_embedder_free.
 */
#ifndef GW_PROVIDERS_EMBEDDER_H
#define GW_PROVIDERS_EMBEDDER_H

#include "memory/memory.h"

struct gw_embedder_state;

/* All of it is copied. */
struct gw_embedder_options {
    uv_loop_t *loop;
    const char *helper;     /* path of fm-proxy */
    const char *models;     /* folder with the embedding model; NULL: OpenAI's API is asked */
    const char *openai_key; /* NULL: not set */
    const char *openai_url; /* NULL: OpenAI's own */
    const char *model;      /* the name that is asked for; NULL: none, so the folder's one */
};

/* Starts no helper before the first text. NULL: out of memory. */
FM_MUST_USE struct gw_embedder_state *gw_embedder_new(const struct gw_embedder_options *options);

/* For gw_memory_options. */
struct gw_embedder gw_embedder_of(struct gw_embedder_state *state);

/* Ends the helper; what it has fails, from within. The loop has to run once more. NULL: nothing happens. */
void gw_embedder_free(struct gw_embedder_state *state);

#endif
