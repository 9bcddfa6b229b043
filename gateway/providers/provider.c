/*
 * A turn is one `responses.create` with a stream. It settles when the helper's call does, and not before: an abort is a
 * cancel, whose end is the engine's.
 */
#include "providers/provider.h"
#include "protocol/json_writer.h"
#include "providers/remote.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARGUMENTS_MAX 64

struct gw_providers {
    uv_loop_t *loop;
    char *helper;
    char *arguments[ARGUMENTS_MAX + 1];
    char *keys[GW_PROVIDER_COUNT];
    char *urls[GW_PROVIDER_COUNT];
    struct gw_link *links[GW_PROVIDER_COUNT]; /* NULL: not used yet */
};

struct gw_turn {
    struct fm_client *client;
    int64_t call;
    struct gw_turn_observer observer;
};

/* ---- helpers ---- */

static char *copy_of(const char *text) {
    return text ? strdup(text) : NULL;
}

struct gw_providers *gw_providers_new(const struct gw_providers_options *options) {
    struct gw_providers *providers = calloc(1, sizeof *providers);
    if (!providers) {
        return NULL;
    }
    providers->loop = options->loop;
    providers->helper = strdup(options->helper);
    bool ok = providers->helper != NULL;
    for (size_t i = 0; ok && options->arguments && options->arguments[i] && i < ARGUMENTS_MAX; i++) {
        providers->arguments[i] = strdup(options->arguments[i]);
        ok = providers->arguments[i] != NULL;
    }
    providers->keys[GW_PROVIDER_OPENAI] = copy_of(options->openai_key);
    providers->keys[GW_PROVIDER_ANTHROPIC] = copy_of(options->anthropic_key);
    providers->urls[GW_PROVIDER_OPENAI] = copy_of(options->openai_url);
    providers->urls[GW_PROVIDER_ANTHROPIC] = copy_of(options->anthropic_url);
    if (!ok) {
        gw_providers_free(providers);
        return NULL;
    }
    return providers;
}

static void free_secret(char *text) {
    if (text) {
        explicit_bzero(text, strlen(text));
        free(text);
    }
}

void gw_providers_free(struct gw_providers *providers) {
    for (size_t i = 0; i < GW_PROVIDER_COUNT; i++) {
        gw_link_close(providers->links[i]);
        free_secret(providers->keys[i]);
        free(providers->urls[i]);
    }
    for (size_t i = 0; i < ARGUMENTS_MAX; i++) {
        free(providers->arguments[i]);
    }
    free(providers->helper);
    free(providers);
}

bool gw_provider_is_free(enum gw_provider provider) {
    return provider == GW_PROVIDER_LOCAL;
}

static struct gw_link *new_local(const struct gw_providers *providers) {
    struct fm_client_options options = {.path = providers->helper,
                                        .arguments = (const char *const *)providers->arguments};
    return gw_link_new(providers->loop, &options);
}

static enum fm_code link_of(struct gw_providers *providers, enum gw_provider provider, struct gw_link **link,
                            struct fm_error *error) {
    bool local = provider == GW_PROVIDER_LOCAL;
    if (!local && !providers->keys[provider]) {
        const char *key = gw_remote_key_name(provider);
        return fm_fail(error, FM_UNAVAILABLE,
                       "the provider %s needs a key: set %s in the gateway's environment, and start it again",
                       gw_provider_name(provider), key);
    }
    if (!providers->links[provider]) {
        providers->links[provider] = local ? new_local(providers)
                                           : gw_remote_link(providers->loop, providers->helper, provider,
                                                            providers->keys[provider], providers->urls[provider]);
    }
    *link = providers->links[provider];
    return *link ? FM_OK : fm_fail_no_memory(error);
}

/* ---- turns ---- */

static struct json_object *member(struct json_object *object, const char *name) {
    struct json_object *value = NULL;
    json_object_object_get_ex(object, name, &value);
    return value;
}

static const char *text_of(struct json_object *object, const char *name) {
    struct json_object *value = member(object, name);
    return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "";
}

static void on_event(void *context, const char *method, struct json_object *event) {
    struct gw_turn *turn = context;
    const char *type = text_of(event, "type");
    (void)method;
    if (strcmp(type, "response.output_text.delta") == 0 || strcmp(type, "response.refusal.delta") == 0) {
        struct json_object *delta = member(event, "delta");
        size_t len = (size_t)json_object_get_string_len(delta);
        if (len > 0) {
            turn->observer.delta(turn->observer.context, json_object_get_string(delta), len);
        }
    }
}

static int64_t count_of(struct json_object *usage, const char *name) {
    struct json_object *count = member(usage, name);
    return json_object_is_type(count, json_type_int) ? json_object_get_int64(count) : -1;
}

static struct gw_usage usage_of(struct json_object *response) {
    struct json_object *usage = member(response, "usage");
    return (struct gw_usage){count_of(usage, "input_tokens"), count_of(usage, "output_tokens")};
}

static void on_settled(void *context, const struct fm_client_reply *reply) {
    struct gw_turn *turn = context;
    struct gw_turn_observer observer = turn->observer;
    struct json_object *response = member(reply->result, "response");
    struct gw_usage usage = usage_of(response);
    struct json_object *output = member(response, "output");
    struct fm_error error;
    free(turn);
    if (reply->code != FM_OK) {
        error = *reply->error;
        observer.failed(observer.context, &error, &usage);
    } else if (!json_object_is_type(output, json_type_array)) {
        (void)fm_fail(&error, FM_INTERNAL, "the helper's answer has no output");
        observer.failed(observer.context, &error, &usage);
    } else {
        observer.final(observer.context, output, &usage, strcmp(text_of(response, "status"), "completed") != 0);
    }
}

static void write_params(const struct gw_turn_request *request, struct fm_buf *params) {
    struct fm_json_writer w = fm_json_writer_on(params);
    bool local = request->model->provider == GW_PROVIDER_LOCAL;
    fm_json_object_begin(&w);
    if (!local || strcmp(request->model->name, "default") != 0) {
        fm_json_key_str(&w, "model", request->model->name);
    }
    if (request->instructions_len > 0) {
        fm_json_key(&w, "instructions");
        fm_json_string(&w, request->instructions, request->instructions_len);
    }
    fm_json_key(&w, "input");
    fm_json_raw(&w, request->input, request->input_len);
    if (request->tools) {
        fm_json_key(&w, "tools");
        fm_json_raw(&w, request->tools, request->tools_len);
    }
    if (local) { /* no server elsewhere leaves out turns for us */
        fm_json_key_str(&w, "truncation", "auto");
    }
    fm_json_key_bool(&w, "stream", true);
    fm_json_key_bool(&w, "store", false);
    fm_json_object_end(&w);
}

enum fm_code gw_turn_start(struct gw_providers *providers, const struct gw_turn_request *request,
                           const struct gw_turn_observer *observer, struct gw_turn **out, struct fm_error *error) {
    struct gw_link *link = NULL;
    enum fm_code code = link_of(providers, request->model->provider, &link, error);
    if (code != FM_OK) {
        return code;
    }
    struct gw_turn *turn = calloc(1, sizeof *turn);
    struct fm_buf params;
    fm_buf_init(&params, GW_TURN_BYTES_MAX);
    write_params(request, &params);
    if (!turn) {
        code = fm_fail_no_memory(error);
    } else if (params.failed) {
        code = fm_fail(error, FM_CONTEXT_OVERFLOW,
                       "the conversation is too long for a request (%u MiB): begin a new one", GW_TURN_BYTES_MAX >> 20);
    } else {
        const struct fm_client_handler handler = {turn, on_event, on_settled};
        turn->client = gw_link_client(link);
        turn->observer = *observer;
        code = fm_client_call(turn->client, "responses.create", params.data, params.len, &handler, &turn->call, error);
    }
    fm_buf_free(&params);
    if (code != FM_OK) {
        free(turn);
        return code;
    }
    *out = turn;
    return FM_OK;
}

void gw_turn_abort(struct gw_turn *turn) {
    (void)fm_client_cancel(turn->client, turn->call);
}
