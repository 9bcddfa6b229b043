/* One `embeddings.create` for each gw_embedding; its vectors come as base64 of little-endian floats. */
#include "providers/embedder.h"
#include "protocol/base64.h"
#include "protocol/json_writer.h"
#include "providers/remote.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#define REQUEST_MAX (8u << 20)
#define IDLE_MS     "300000" /* the model is unloaded after this time without a text */

struct gw_embedder_state {
    struct gw_link *link;
    char *model;
};

/* ---- answers ---- */

static enum fm_code bad_answer(struct fm_error *error) {
    return fm_fail(error, FM_INTERNAL, "the helper's vectors can't be read");
}

/* Reads the vectors of `data` one after the other; the caller frees `*vectors`. */
static enum fm_code read_vectors(struct json_object *data, size_t count, float **vectors, size_t *dimensions,
                                 struct fm_error *error) {
    *vectors = NULL;
    *dimensions = 0;
    if (!json_object_is_type(data, json_type_array) || json_object_array_length(data) != count) {
        return bad_answer(error);
    }
    for (size_t i = 0; i < count; i++) {
        struct json_object *text = json_object_object_get(json_object_array_get_idx(data, i), "embedding");
        size_t len = (size_t)json_object_get_string_len(text);
        const char *digits = json_object_get_string(text);
        size_t size = digits ? fm_base64_decoded_size(digits, len) : 0;
        if (size == 0 || size % sizeof(float) != 0 || (*vectors && size != *dimensions * sizeof(float))) {
            return bad_answer(error);
        }
        if (!*vectors) {
            *dimensions = size / sizeof(float);
            *vectors = malloc(size * count);
        }
        if (!*vectors) {
            return fm_fail_no_memory(error);
        }
        if (!fm_base64_read(digits, len, (unsigned char *)(*vectors + i * *dimensions))) {
            return bad_answer(error);
        }
    }
    return FM_OK;
}

static void on_settled(void *context, const struct fm_client_reply *reply) {
    struct gw_embedding *embedding = context;
    struct fm_error error;
    float *vectors = NULL;
    size_t dimensions;
    if (reply->code != FM_OK) {
        gw_embedding_failed(embedding, reply->error);
        return;
    }
    struct json_object *data = json_object_object_get(json_object_object_get(reply->result, "embeddings"), "data");
    if (read_vectors(data, embedding->count, &vectors, &dimensions, &error) == FM_OK) {
        gw_embedding_done(embedding, vectors, dimensions);
    } else {
        gw_embedding_failed(embedding, &error);
    }
    free(vectors);
}

/* ---- requests ---- */

static void embed_text(void *context, struct gw_embedding *embedding) {
    struct gw_embedder_state *state = context;
    const struct fm_client_handler handler = {embedding, NULL, on_settled};
    struct fm_error error;
    struct fm_buf params;
    fm_buf_init(&params, REQUEST_MAX);
    struct fm_json_writer w = fm_json_writer_on(&params);
    fm_json_object_begin(&w);
    if (state->model) {
        fm_json_key_str(&w, "model", state->model);
    }
    fm_json_key_str(&w, "encoding_format", "base64");
    fm_json_key(&w, "input");
    fm_json_array_begin(&w);
    for (size_t i = 0; i < embedding->count; i++) {
        fm_json_string(&w, embedding->texts[i], embedding->lens[i]);
    }
    fm_json_array_end(&w);
    fm_json_object_end(&w);
    enum fm_code code = params.failed ? fm_fail_no_memory(&error)
                                      : fm_client_call(gw_link_client(state->link), "embeddings.create", params.data,
                                                       params.len, &handler, NULL, &error);
    fm_buf_free(&params);
    if (code != FM_OK) {
        gw_embedding_failed(embedding, &error);
    }
}

struct gw_embedder_state *gw_embedder_new(const struct gw_embedder_options *options) {
    struct gw_embedder_state *state = calloc(1, sizeof *state);
    const char *arguments[] = {
        "--models-dir", options->models, "--store-bytes", "0", "--idle-unload-ms", IDLE_MS, NULL};
    struct fm_client_options client = {.path = options->helper, .arguments = arguments};
    if (!state) {
        return NULL;
    }
    state->model = options->model ? strdup(options->model) : NULL;
    state->link = options->models
                      ? gw_link_new(options->loop, &client, 0)
                      : gw_remote_link(options->loop, options->helper, GW_PROVIDER_OPENAI,
                                       options->openai_key ? options->openai_key : "", options->openai_url, 0);
    if (!state->link || (options->model && !state->model)) {
        gw_embedder_free(state);
        return NULL;
    }
    return state;
}

struct gw_embedder gw_embedder_of(struct gw_embedder_state *state) {
    return (struct gw_embedder){state, embed_text};
}

void gw_embedder_free(struct gw_embedder_state *state) {
    if (state) {
        gw_link_close(state->link);
        free(state->model);
        free(state);
    }
}
