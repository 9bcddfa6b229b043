/*
 * Models: a turn goes to the model that an agent names, and comes back as text, calls of tools and an end. Every
 * provider is a helper, `fm-proxy`, of its own (protocol/client): "local" with the engines of this machine, "openai"
 * and "anthropic" with the engine `remote`, which has their dialects. A helper is started by its first turn; a key
 * reaches its own helper alone, by the environment.
 *
 * Loop thread. Nothing blocks but gw_providers_free. Callbacks come later, never from within a function here.
 */
#ifndef GW_PROVIDERS_PROVIDER_H
#define GW_PROVIDERS_PROVIDER_H

#include "agents/agent.h"

#include <stdint.h>
#include <uv.h>

#define GW_PROVIDER_COUNT 3
#define GW_TURN_BYTES_MAX (8u << 20) /* of a request: less than a frame of the helper may have (PROTOCOL.md) */

struct gw_providers;
struct gw_turn;
struct json_object;

/* All of it is copied. */
struct gw_providers_options {
    uv_loop_t *loop;
    const char *helper;           /* path of fm-proxy */
    const char *const *arguments; /* of the local one, such as "--models-dir", FOLDER; NULL-terminated; NULL: none */
    const char *openai_key;       /* NULL: not set */
    const char *anthropic_key;
    const char *openai_url;    /* as OPENAI_BASE_URL has it; NULL or "": OpenAI's own */
    const char *anthropic_url; /* as ANTHROPIC_BASE_URL has it */
    int64_t pulse_ms;          /* see link.h; 0: its default */
};

struct gw_turn_request {
    const struct gw_model_ref *model;
    const char *instructions; /* the system prompt; UTF-8, `instructions_len` bytes */
    size_t instructions_len;
    const char *input; /* a JSON array of the Responses API's items; a model that sees no images gets none */
    size_t input_len;
    const char *tools; /* a JSON array of its function tools; NULL: none */
    size_t tools_len;
};

struct gw_usage {
    int64_t input_tokens; /* -1: not counted */
    int64_t output_tokens;
    int64_t cached_tokens; /* of the input */
};

/* What a turn says. After `final` or `failed`, one of which comes exactly once, nothing comes. */
struct gw_turn_observer {
    void *context;
    void (*delta)(void *context, const char *text, size_t len);
    /*
     * The model has ended its turn. `items` is what it said: messages, function_call items and what else has to go back
     * to it in the next turn, unchanged. It is borrowed. `cut`: a limit ended the answer.
     */
    void (*final)(void *context, struct json_object *items, const struct gw_usage *usage, bool cut);
    /*
     * `error` has a sentence for people: why, and what to do. FM_CANCELLED: by gw_turn_abort, and the engine has
     * stopped. What had come before is not taken back.
     */
    void (*failed)(void *context, const struct fm_error *error, const struct gw_usage *usage);
};

/* Starts no helper. NULL: out of memory. */
FM_MUST_USE struct gw_providers *gw_providers_new(const struct gw_providers_options *options);

/*
 * Ends the helpers; turns that are open fail with FM_CANCELLED, from within. The loop has to run once more. Blocks
 * until the helpers are gone, some seconds at most.
 */
void gw_providers_free(struct gw_providers *providers);

/*
 * Begins a turn. What goes wrong comes in `failed`, but for these: FM_UNAVAILABLE (a key is missing; the error names
 * the variable), FM_CONTEXT_OVERFLOW (more than GW_TURN_BYTES_MAX), FM_INTERNAL (out of memory). `*turn` is valid until
 * the turn has ended.
 */
FM_MUST_USE enum fm_code gw_turn_start(struct gw_providers *providers, const struct gw_turn_request *request,
                                       const struct gw_turn_observer *observer, struct gw_turn **turn,
                                       struct fm_error *error);

/*
 * The turn fails with FM_CANCELLED, once the engine has stopped; unless it has ended by then. May come more than once,
 * also from within `delta`. A helper that hangs is ended for it (link.h).
 */
void gw_turn_abort(struct gw_turn *turn);

/* The prices are not known here: whether a turn of this provider costs nothing. */
bool gw_provider_is_free(enum gw_provider provider);

#endif
