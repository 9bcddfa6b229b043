/*
 * The parts that the sockets use: sessions, memory, models and tools. They are opened in a fixed order, and closed in
 * the reverse order. Loop thread.
 */
#ifndef GW_ASSISTANT_H
#define GW_ASSISTANT_H

#include "config/config.h"
#include "config/paths.h"
#include "net/auth.h"
#include "rpc/rpc.h"

#include <uv.h>

struct gw_assistant;

/* Borrowed until the loop has ended. */
struct gw_assistant_options {
    uv_loop_t *loop;
    struct gw_rpc *rpc;
    const struct gw_paths *paths;
    const struct gw_config *config;
    const struct gw_secrets *secrets;
    const char *token;
    const char *helper;                  /* path of fm-proxy; NULL: beside this program */
    const char *const *helper_arguments; /* arguments of the local model's helper; NULL-terminated */
    const char *embedding_models;        /* folder; NULL: memory searches by words only, unless OpenAI embeds */
    const char *browser;                 /* path of Chromium; NULL: found by PATH */
    const uint16_t *port;                /* where the server listens, once it does */
};

/*
 * Opens everything, and registers the methods. FM_UNAVAILABLE or FM_INVALID_REQUEST: the error says what to do, and
 * nothing is left open. Blocks: it reads all transcripts.
 */
FM_MUST_USE enum fm_code gw_assistant_open(const struct gw_assistant_options *options, struct gw_assistant **assistant,
                                           struct fm_error *error);

/*
 * Sets a new token, whose memory must stay valid until the next call. The filter removes the new token from texts, and
 * still removes the old one.
 */
void gw_assistant_set_token(struct gw_assistant *assistant, const char *token);

/* For the server: notes each login in the audit. */
void gw_assistant_on_login(void *assistant, enum gw_login result, const char *how);

/*
 * Ends all runs, then closes everything; after that the assistant has no handle in the loop. If the end takes longer
 * than GW_STOP_MS, the process ends at once, and its children with it.
 */
#define GW_STOP_MS 1500
void gw_assistant_stop(struct gw_assistant *assistant);

#endif
