/*
 * Vectors for the memory, from a separate helper. They come from an embedding model in a local folder, or from OpenAI's
 * API. Loop thread; only gw_embedder_free blocks.
 */
#ifndef GW_PROVIDERS_EMBEDDER_H
#define GW_PROVIDERS_EMBEDDER_H

#include "memory/memory.h"

struct gw_embedder_state;

/* The options of an embedder; gw_embedder_new copies them. */
struct gw_embedder_options {
    uv_loop_t *loop;
    const char *helper;     /* path of fm-proxy */
    const char *models;     /* folder with the embedding model; NULL: OpenAI's API is asked */
    const char *openai_key; /* NULL: not set */
    const char *openai_url; /* NULL: OpenAI's own */
    const char *model;      /* the name in requests; NULL: none, so the folder's only one */
};

/* Makes an embedder. Its helper starts only with the first text. NULL: out of memory. */
FM_MUST_USE struct gw_embedder_state *gw_embedder_new(const struct gw_embedder_options *options);

/* For gw_memory_options. */
struct gw_embedder gw_embedder_of(struct gw_embedder_state *state);

/* Ends the helper; its open questions fail during this call. The loop has to run once more. NULL: nothing happens. */
void gw_embedder_free(struct gw_embedder_state *state);

#endif
