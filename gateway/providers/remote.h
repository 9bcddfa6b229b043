/* Helpers that ask a remote server: how OpenAI and Anthropic are reached. */
#ifndef GW_PROVIDERS_REMOTE_H
#define GW_PROVIDERS_REMOTE_H

#include "agents/agent.h"
#include "providers/link.h"

/* The environment variable with the provider's key; NULL: it needs none. */
const char *gw_remote_key_name(enum gw_provider provider);

/*
 * Makes a helper with the engine `remote` for the provider. The helper gets the key by the environment. `url` is the
 * part before "/responses", in the form of OPENAI_BASE_URL, or before "/v1/messages", in the form of ANTHROPIC_BASE_URL
 * (a "/v1" at its end is fine); NULL or "": the provider's own. `pulse_ms` means the same as in gw_link_new. NULL: out
 * of memory.
 */
FM_MUST_USE struct gw_link *gw_remote_link(uv_loop_t *loop, const char *helper, enum gw_provider provider,
                                           const char *key, const char *url, int64_t pulse_ms);

#endif
