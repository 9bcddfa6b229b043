/*
 * A turn is one `responses.create` with a stream. It settles only when the helper's call settles: an abort cancels the
 * call, and the call ends when the engine has stopped.
 */
#include "providers/provider.h"
#include "base/secret.h"
#include "protocol/json_writer.h"
#include "providers/advice.h"
#include "providers/input.h"
#include "providers/remote.h"
#include "sessions/story.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

/*
 * Limits of a turn, as `fm` of the request (PROTOCOL.md, Limits). The helper's defaults are for programs. Here a person
 * sees what happens and can stop it, but a long prompt on a slow machine, or a model that thinks, may be silent for
 * minutes.
 */
#define QUEUE_MS       600000
#define FIRST_TOKEN_MS 900000
#define NO_PROGRESS_MS 300000
#define TOTAL_MS       3600000

struct gw_providers {
    uv_loop_t *loop;
    int64_t pulse_ms;
    char *helper;
    char **arguments; /* NULL-terminated */
    char *keys[GW_PROVIDER_COUNT];
    char *urls[GW_PROVIDER_COUNT];
    struct gw_link *links[GW_PROVIDER_COUNT]; /* NULL: not used yet */
};

struct gw_turn {
    struct fm_client *client;
    int64_t call;
    bool aborted;
    bool had_output;
    struct fm_buf blind; /* the params without images, for a model that sees none; empty: there are none */
    struct gw_model_ref model;
    struct gw_turn_observer observer;
};

/* ---- helpers ---- */

/* Copies `text`; NULL stays NULL. False: out of memory. */
static bool copy(const char *text, bool secret, char **out) {
    *out = !text ? NULL : secret ? fm_secret_copy(text, strlen(text)) : strdup(text);
    return *out || !text;
}

static bool copy_arguments(const char *const *arguments, char ***out) {
    size_t count = 0;
    while (arguments && arguments[count]) {
        count++;
    }
    *out = calloc(count + 1, sizeof **out);
    bool ok = *out != NULL;
    for (size_t i = 0; ok && i < count; i++) {
        ok = copy(arguments[i], false, &(*out)[i]);
    }
    return ok;
}

struct gw_providers *gw_providers_new(const struct gw_providers_options *options) {
    struct gw_providers *providers = calloc(1, sizeof *providers);
    if (!providers) {
        return NULL;
    }
    providers->loop = options->loop;
    providers->pulse_ms = options->pulse_ms;
    bool ok = copy(options->helper, false, &providers->helper) &&
              copy_arguments(options->arguments, &providers->arguments) &&
              copy(options->openai_key, true, &providers->keys[GW_PROVIDER_OPENAI]) &&
              copy(options->anthropic_key, true, &providers->keys[GW_PROVIDER_ANTHROPIC]) &&
              copy(options->openai_url, false, &providers->urls[GW_PROVIDER_OPENAI]) &&
              copy(options->anthropic_url, false, &providers->urls[GW_PROVIDER_ANTHROPIC]);
    if (!ok) {
        gw_providers_free(providers);
        return NULL;
    }
    return providers;
}

void gw_providers_free(struct gw_providers *providers) {
    for (size_t i = 0; i < GW_PROVIDER_COUNT; i++) {
        gw_link_stop(providers->links[i]);
    }
    for (size_t i = 0; i < GW_PROVIDER_COUNT; i++) {
        gw_link_close(providers->links[i]);
        fm_secret_free(providers->keys[i]);
        free(providers->urls[i]);
    }
    for (size_t i = 0; providers->arguments && providers->arguments[i]; i++) {
        free(providers->arguments[i]);
    }
    free(providers->arguments);
    free(providers->helper);
    free(providers);
}

bool gw_provider_is_free(enum gw_provider provider) {
    return provider == GW_PROVIDER_LOCAL;
}

static struct gw_link *new_local(const struct gw_providers *providers) {
    struct fm_client_options options = {.path = providers->helper,
                                        .arguments = (const char *const *)providers->arguments};
    return gw_link_new(providers->loop, &options, providers->pulse_ms);
}

static enum fm_code link_of(struct gw_providers *providers, enum gw_provider provider, struct gw_link **link,
                            struct fm_error *error) {
    bool local = provider == GW_PROVIDER_LOCAL;
    if (!local && (!providers->keys[provider] || !*providers->keys[provider])) {
        const char *key = gw_remote_key_name(provider);
        return fm_fail(error, FM_UNAVAILABLE,
                       "the provider %s needs a key: set %s in the gateway's environment, and start it again",
                       gw_provider_name(provider), key);
    }
    if (!providers->links[provider]) {
        providers->links[provider] =
            local ? new_local(providers)
                  : gw_remote_link(providers->loop, providers->helper, provider, providers->keys[provider],
                                   providers->urls[provider], providers->pulse_ms);
    }
    *link = providers->links[provider];
    return *link ? FM_OK : fm_fail_no_memory(error);
}

/* ---- turns ---- */

static void on_event(void *context, const char *method, struct json_object *event) {
    struct gw_turn *turn = context;
    const char *type = gw_text_of(event, "type");
    (void)method;
    if (strcmp(type, "response.output_text.delta") == 0 || strcmp(type, "response.refusal.delta") == 0) {
        struct json_object *delta = json_object_object_get(event, "delta");
        size_t len = (size_t)json_object_get_string_len(delta);
        turn->had_output |= len > 0;
        if (len > 0) {
            turn->observer.delta(turn->observer.context, json_object_get_string(delta), len);
        }
    }
}

static int64_t count_of(struct json_object *usage, const char *name) {
    struct json_object *count = json_object_object_get(usage, name);
    return json_object_is_type(count, json_type_int) ? json_object_get_int64(count) : -1;
}

static struct gw_usage usage_of(struct json_object *response) {
    struct json_object *usage = json_object_object_get(response, "usage");
    return (struct gw_usage){
        .input_tokens = count_of(usage, "input_tokens"),
        .output_tokens = count_of(usage, "output_tokens"),
        .cached_tokens = count_of(json_object_object_get(usage, "input_tokens_details"), "cached_tokens"),
    };
}

static void fail_turn(const struct gw_turn *turn, const struct gw_usage *usage, struct fm_error *error) {
    if (turn->aborted) { /* whatever the helper reports, the user asked for a stop */
        (void)fm_fail(error, FM_CANCELLED, "stopped");
    }
    gw_advise(&turn->model, error);
    turn->observer.failed(turn->observer.context, error, usage);
}

static void on_settled(void *context, const struct fm_client_reply *reply);

static void turn_free(struct gw_turn *turn) {
    fm_buf_free(&turn->blind);
    free(turn);
}

/*
 * Asks once more, without images, if the model can't see them. That is safe, because the helper and the servers refuse
 * images before anything else happens (PROTOCOL.md, Images).
 */
static bool ask_blind(struct gw_turn *turn, const struct fm_client_reply *reply) {
    const struct fm_client_handler handler = {turn, on_event, on_settled};
    struct fm_error error;
    if (reply->code != FM_INVALID_REQUEST || turn->blind.len == 0 || turn->had_output || turn->aborted) {
        return false;
    }
    bool ok = fm_client_call(turn->client, "responses.create", turn->blind.data, turn->blind.len, &handler, &turn->call,
                             &error) == FM_OK;
    fm_buf_free(&turn->blind);
    return ok;
}

static void on_settled(void *context, const struct fm_client_reply *reply) {
    struct gw_turn *turn = context;
    struct json_object *response = json_object_object_get(reply->result, "response");
    struct json_object *output = json_object_object_get(response, "output");
    struct gw_usage usage = usage_of(response);
    struct fm_error error;
    if (reply->code != FM_OK && ask_blind(turn, reply)) {
        return;
    }
    if (reply->code != FM_OK) {
        error = *reply->error;
        fail_turn(turn, &usage, &error);
    } else if (!json_object_is_type(output, json_type_array)) {
        (void)fm_fail(&error, FM_INTERNAL, "the helper's answer has no output");
        fail_turn(turn, &usage, &error);
    } else {
        bool cut = strcmp(gw_text_of(response, "status"), "completed") != 0;
        turn->observer.final(turn->observer.context, output, &usage, cut);
    }
    turn_free(turn);
}

static void write_fm(struct fm_json_writer *w) {
    fm_json_key(w, "fm");
    fm_json_object_begin(w);
    fm_json_key_int(w, "queue_timeout_ms", QUEUE_MS);
    fm_json_key_int(w, "first_token_timeout_ms", FIRST_TOKEN_MS);
    fm_json_key_int(w, "no_progress_timeout_ms", NO_PROGRESS_MS);
    fm_json_key_int(w, "timeout_ms", TOTAL_MS);
    fm_json_key_bool(w, "full_result", true); /* events show the progress, and the result has the answer */
    fm_json_object_end(w);
}

/* `blind`: without images. False: `blind` is true, but the input has no images. */
static bool write_params(const struct gw_turn_request *request, bool blind, struct fm_buf *params) {
    struct fm_json_writer w = fm_json_writer_on(params);
    bool local = request->model->provider == GW_PROVIDER_LOCAL;
    fm_json_object_begin(&w);
    fm_json_key(&w, "input");
    if (!blind) {
        fm_json_raw(&w, request->input, request->input_len);
    } else if (!gw_input_write_without_images(request->input, request->input_len, &w)) {
        return false;
    }
    if (!local || strcmp(request->model->name, "default") != 0) {
        fm_json_key_str(&w, "model", request->model->name);
    }
    if (request->instructions_len > 0) {
        fm_json_key(&w, "instructions");
        fm_json_string(&w, request->instructions, request->instructions_len);
    }
    if (request->tools) {
        fm_json_key(&w, "tools");
        fm_json_raw(&w, request->tools, request->tools_len);
    }
    if (local) { /* remote servers do not drop turns for us */
        fm_json_key_str(&w, "truncation", "auto");
    }
    fm_json_key_bool(&w, "stream", true);
    fm_json_key_bool(&w, "store", false);
    write_fm(&w);
    fm_json_object_end(&w);
    return true;
}

static enum fm_code send_turn(struct gw_turn *turn, const struct gw_turn_request *request, struct fm_error *error) {
    const struct fm_client_handler handler = {turn, on_event, on_settled};
    struct fm_buf params;
    fm_buf_init(&params, GW_TURN_BYTES_MAX);
    (void)write_params(request, false, &params);
    if (!write_params(request, true, &turn->blind) || turn->blind.failed) {
        fm_buf_free(&turn->blind);
    }
    enum fm_code code =
        params.failed
            ? fm_fail(error, FM_CONTEXT_OVERFLOW, "the conversation has more than %u MiB, too much for a request",
                      GW_TURN_BYTES_MAX >> 20)
            : fm_client_call(turn->client, "responses.create", params.data, params.len, &handler, &turn->call, error);
    fm_buf_free(&params);
    return code;
}

enum fm_code gw_turn_start(struct gw_providers *providers, const struct gw_turn_request *request,
                           const struct gw_turn_observer *observer, struct gw_turn **out, struct fm_error *error) {
    struct gw_link *link = NULL;
    enum fm_code code = link_of(providers, request->model->provider, &link, error);
    if (code != FM_OK) {
        return code;
    }
    struct gw_turn *turn = calloc(1, sizeof *turn);
    if (!turn) {
        return fm_fail_no_memory(error);
    }
    turn->client = gw_link_client(link);
    turn->model = *request->model;
    turn->observer = *observer;
    fm_buf_init(&turn->blind, GW_TURN_BYTES_MAX);
    code = send_turn(turn, request, error);
    if (code != FM_OK) {
        gw_advise(request->model, error);
        turn_free(turn);
        return code;
    }
    *out = turn;
    return FM_OK;
}

void gw_turn_abort(struct gw_turn *turn) {
    turn->aborted = true;
    (void)fm_client_cancel(turn->client, turn->call);
}
