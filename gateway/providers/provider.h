/*
 * Models. A turn goes to the model that an agent names, and returns text, tool calls and an end. Each provider has its
 * own helper, `fm-proxy` (protocol/client): "local" with the engines of this machine, "openai" and "anthropic" with the
 * engine `remote`, which knows their dialects. The first turn of a helper starts it. A key reaches only its own helper,
 * by the environment.
 *
 * Loop thread. Only gw_providers_free blocks. Callbacks come later, never from within a function here.
 */
#ifndef GW_PROVIDERS_PROVIDER_H
#define GW_PROVIDERS_PROVIDER_H

#include "agents/agent.h"

#include <stdint.h>
#include <uv.h>

#define GW_PROVIDER_COUNT 3
#define GW_TURN_BYTES_MAX (8u << 20) /* bytes of a request; a frame of the helper may have more (PROTOCOL.md) */

struct gw_providers;
struct gw_turn;
struct json_object;

/* The options of all providers; gw_providers_new copies them. */
struct gw_providers_options {
    uv_loop_t *loop;
    const char *helper;           /* path of fm-proxy */
    const char *const *arguments; /* of the local helper, such as "--models-dir", FOLDER; NULL-terminated; NULL: none */
    const char *openai_key;       /* NULL: not set */
    const char *anthropic_key;
    const char *openai_url;    /* in the form of the variable OPENAI_BASE_URL; NULL or "": OpenAI's own */
    const char *anthropic_url; /* in the form of the variable ANTHROPIC_BASE_URL */
    int64_t pulse_ms;          /* see link.h; 0: its default */
};

struct gw_turn_request {
    const struct gw_model_ref *model;
    const char *instructions; /* the system prompt; UTF-8, `instructions_len` bytes */
    size_t instructions_len;
    const char *input; /* a JSON array of the Responses API's items; a model that sees no images gets none */
    size_t input_len;
    const char *tools; /* a JSON array of the Responses API's function tools; NULL: none */
    size_t tools_len;
};

struct gw_usage {
    int64_t input_tokens; /* -1: not counted */
    int64_t output_tokens;
    int64_t cached_tokens; /* of the input */
};

/* What a turn reports. Exactly one of `final` and `failed` is called, once, and no other callback comes after it. */
struct gw_turn_observer {
    void *context;
    void (*delta)(void *context, const char *text, size_t len);
    /*
     * The model has ended its turn. `items` (borrowed) has its output: messages, function_call items, and other items
     * that have to go back to the model unchanged in the next turn. `cut`: a limit ended the answer.
     */
    void (*final)(void *context, struct json_object *items, const struct gw_usage *usage, bool cut);
    /*
     * `error` has a sentence for people: why, and what to do. FM_CANCELLED: gw_turn_abort was called, and the engine
     * has stopped. Output that came before stays valid.
     */
    void (*failed)(void *context, const struct fm_error *error, const struct gw_usage *usage);
};

/* Makes the providers. Starts no helper yet. NULL: out of memory. */
FM_MUST_USE struct gw_providers *gw_providers_new(const struct gw_providers_options *options);

/*
 * Ends the helpers; open turns fail with FM_CANCELLED during this call. The loop has to run once more. Blocks until the
 * helpers are gone, some seconds at most.
 */
void gw_providers_free(struct gw_providers *providers);

/*
 * Begins a turn. Errors come in `failed`, except these: FM_UNAVAILABLE (a key is missing; the error names the
 * variable), FM_CONTEXT_OVERFLOW (more than GW_TURN_BYTES_MAX), FM_INTERNAL (out of memory). `*turn` is valid until the
 * turn has ended.
 */
FM_MUST_USE enum fm_code gw_turn_start(struct gw_providers *providers, const struct gw_turn_request *request,
                                       const struct gw_turn_observer *observer, struct gw_turn **turn,
                                       struct fm_error *error);

/*
 * Aborts the turn: it fails with FM_CANCELLED once the engine has stopped, unless it has ended by then. May be called
 * more than once, also from within `delta`. If the helper hangs, it is ended (link.h).
 */
void gw_turn_abort(struct gw_turn *turn);

/* Whether a turn of this provider costs nothing. Prices are not known here. */
bool gw_provider_is_free(enum gw_provider provider);

#endif
