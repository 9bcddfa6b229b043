/*
 * Drives the providers by lines of JSON, for test_providers.py. The first line has the configuration,
 * {"op":"open",...}; {"op":"embedder",...} opens an embedder too. Then
 * {"op":"turn","id":N,"model":..,"input":[..],"tools":[..]}, {"op":"abort","id":N} and
 * {"op":"embed","id":N,"texts":[..]}. The driver writes a line for each thing that happens. The end of the input closes
 * everything. The exit status is 0 only if nothing is left on the loop.
 */
#include "driver.h"
#include "base/log.h"
#include "providers/embedder.h"
#include "providers/provider.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#define TURNS_MAX     64
#define ARGUMENTS_MAX 16
#define TEXTS_MAX     16

struct slot {
    int id;
    int deltas;      /* deltas so far */
    int abort_after; /* the turn is aborted from its callback after this many deltas; 0: never */
    struct gw_turn *turn;
};

struct embedding {
    struct gw_embedding asked;
    const char *texts[TEXTS_MAX];
    size_t lens[TEXTS_MAX];
    int id;
    struct json_object *root;
};

static uv_loop_t loop;
static struct gw_providers *providers;
static struct gw_embedder_state *embedder;
static struct slot slots[TURNS_MAX];

static void write_usage(struct fm_json_writer *w, const struct gw_usage *usage) {
    fm_json_key_int(w, "inputTokens", usage->input_tokens);
    fm_json_key_int(w, "outputTokens", usage->output_tokens);
    fm_json_key_int(w, "cachedTokens", usage->cached_tokens);
}

static void on_delta(void *context, const char *delta, size_t len) {
    struct slot *slot = context;
    struct fm_buf line;
    struct fm_json_writer w = driver_begin(&line, slot->id);
    fm_json_key(&w, "delta");
    fm_json_string(&w, delta, len);
    driver_end(&w);
    if (++slot->deltas == slot->abort_after) {
        gw_turn_abort(slot->turn);
    }
}

static void on_final(void *context, struct json_object *items, const struct gw_usage *usage, bool cut) {
    struct slot *slot = context;
    struct fm_buf line;
    struct fm_json_writer w = driver_begin(&line, slot->id);
    fm_json_key(&w, "final");
    fm_json_value(&w, items);
    fm_json_key_bool(&w, "cut", cut);
    write_usage(&w, usage);
    driver_end(&w);
    slot->turn = NULL;
}

static void on_failed(void *context, const struct fm_error *error, const struct gw_usage *usage) {
    struct slot *slot = context;
    (void)usage;
    driver_report(slot->id, error);
    slot->turn = NULL;
}

static void open_providers(struct json_object *root) {
    const char *arguments[ARGUMENTS_MAX + 1] = {NULL};
    struct json_object *list = driver_member(root, "arguments");
    for (size_t i = 0; i < ARGUMENTS_MAX && list && i < json_object_array_length(list); i++) {
        arguments[i] = json_object_get_string(json_object_array_get_idx(list, i));
    }
    const struct gw_providers_options options = {.loop = &loop,
                                                 .helper = driver_text(root, "helper"),
                                                 .arguments = arguments,
                                                 .openai_key = driver_text(root, "openaiKey"),
                                                 .anthropic_key = driver_text(root, "anthropicKey"),
                                                 .openai_url = driver_text(root, "openaiUrl"),
                                                 .anthropic_url = driver_text(root, "anthropicUrl"),
                                                 .pulse_ms = driver_number(root, "pulse")};
    providers = gw_providers_new(&options);
    if (!providers) {
        exit(2);
    }
}

static void open_embedder(struct json_object *root) {
    const struct gw_embedder_options options = {.loop = &loop,
                                                .helper = driver_text(root, "helper"),
                                                .models = driver_text(root, "models"),
                                                .openai_key = driver_text(root, "openaiKey"),
                                                .openai_url = driver_text(root, "openaiUrl"),
                                                .model = driver_text(root, "model")};
    embedder = gw_embedder_new(&options);
    if (!embedder) {
        exit(2);
    }
}

static void start_turn(struct json_object *root, int id) {
    struct fm_error error;
    struct gw_model_ref model;
    struct slot *slot = slots;
    const char *name = driver_text(root, "model");
    const char *instructions = driver_text(root, "instructions");
    const char *items = driver_text(root, "input");
    const char *tools = driver_text(root, "tools");
    while (slot->turn) {
        slot++;
    }
    *slot = (struct slot){.id = id, .abort_after = (int)driver_number(root, "abortAfter")};
    if (gw_model_ref_parse(name, strlen(name), &model, &error) != FM_OK) {
        driver_report(id, &error);
        return;
    }
    const struct gw_turn_request request = {.model = &model,
                                            .instructions = instructions,
                                            .instructions_len = instructions ? strlen(instructions) : 0,
                                            .input = items,
                                            .input_len = strlen(items),
                                            .tools = tools,
                                            .tools_len = tools ? strlen(tools) : 0};
    const struct gw_turn_observer observer = {slot, on_delta, on_final, on_failed};
    if (gw_turn_start(providers, &request, &observer, &slot->turn, &error) != FM_OK) {
        driver_report(id, &error);
    }
}

/* ---- embeddings, as the memory uses them ---- */

void gw_embedding_done(struct gw_embedding *asked, const float *vectors, size_t dimensions) {
    struct embedding *embedding = (struct embedding *)asked;
    struct fm_buf line;
    struct fm_json_writer w = driver_begin(&line, embedding->id);
    fm_json_key(&w, "vectors");
    fm_json_array_begin(&w);
    for (size_t i = 0; i < asked->count; i++) {
        fm_json_array_begin(&w);
        for (size_t at = 0; at < dimensions; at++) {
            fm_json_double(&w, (double)vectors[i * dimensions + at]);
        }
        fm_json_array_end(&w);
    }
    fm_json_array_end(&w);
    driver_end(&w);
    json_object_put(embedding->root);
    free(embedding);
}

void gw_embedding_failed(struct gw_embedding *asked, const struct fm_error *error) {
    struct embedding *embedding = (struct embedding *)asked;
    driver_report(embedding->id, error);
    json_object_put(embedding->root);
    free(embedding);
}

static void embed(struct json_object *root, int id) {
    struct embedding *embedding = calloc(1, sizeof *embedding);
    struct json_object *list = driver_member(root, "texts");
    if (!embedding) {
        exit(3);
    }
    embedding->id = id;
    embedding->root = json_object_get(root);
    embedding->asked = (struct gw_embedding){
        .texts = embedding->texts, .lens = embedding->lens, .count = json_object_array_length(list)};
    for (size_t i = 0; i < embedding->asked.count && i < TEXTS_MAX; i++) {
        embedding->texts[i] = json_object_get_string(json_object_array_get_idx(list, i));
        embedding->lens[i] = strlen(embedding->texts[i]);
    }
    const struct gw_embedder with = gw_embedder_of(embedder);
    with.embed(with.context, &embedding->asked);
}

/* ---- lines ---- */

static void take(struct json_object *root) {
    const char *op = driver_text(root, "op");
    int id = (int)driver_number(root, "id");
    if (strcmp(op, "open") == 0) {
        open_providers(root);
    } else if (strcmp(op, "embedder") == 0) {
        open_embedder(root);
    } else if (strcmp(op, "turn") == 0) {
        start_turn(root, id);
    } else if (strcmp(op, "embed") == 0) {
        embed(root, id);
    }
    for (size_t i = 0; strcmp(op, "abort") == 0 && i < TURNS_MAX; i++) {
        if (slots[i].turn && slots[i].id == id) {
            gw_turn_abort(slots[i].turn);
        }
    }
}

static void close_all(void) {
    gw_providers_free(providers);
    gw_embedder_free(embedder);
}

int main(void) {
    fm_log_init("providers_driver", FM_LOG_WARN);
    uv_loop_init(&loop);
    driver_run(&loop, take, close_all);
    return uv_loop_close(&loop) == 0 ? 0 : 4;
}
