/*
 * The conversations in progress. Messages wait in their session's queue, and a session has one run at a time. A run
 * consists of turns of a model and calls of tools, and ends when the model calls no more tools. Each event of a run is
 * written to the disk first, then reported.
 *
 * Loop thread. Nothing blocks, except on the few small files of an agent and the file of rules. This part handles all
 * methods of the gateway except health.check (rpc/methods.c), and sends all events.
 */
#ifndef GW_RUN_CHATS_H
#define GW_RUN_CHATS_H

#include "memory/memory.h"
#include "providers/provider.h"
#include "rpc/rpc.h"
#include "security/audit.h"
#include "sessions/sessions.h"
#include "tools/tool.h"

#define GW_QUEUE_MAX 20u /* messages of a session that wait */
#define GW_STEPS_MAX 16u /* turns of the model in a run */

struct gw_chats;

/* The chats borrow all pointers for as long as they live; they copy texts. */
struct gw_chats_options {
    uv_loop_t *loop;
    struct gw_rpc *rpc;
    struct gw_sessions *sessions;
    struct gw_audit *audit;
    const struct gw_known *known; /* further secrets for the secrets filter; NULL: nothing is filtered */
    struct gw_memory *memory;     /* NULL: nothing is recalled */
    struct gw_providers *providers;
    struct gw_tools *tools; /* NULL: models get none */
    int64_t approval_timeout_ms;
    const char *workspace;     /* folder of the agent's files */
    const char *default_agent; /* the id of the default agent */
    const char *folder;        /* where tools run */
    const char *rules;         /* path of rules.json */
};

/* Makes the chats, and registers their methods. FM_UNAVAILABLE: the rules can't be read. */
FM_MUST_USE enum fm_code gw_chats_new(const struct gw_chats_options *options, struct gw_chats **chats,
                                      struct fm_error *error);

/* Aborts all runs and accepts no new ones. Calls `stopped` once no run is left, maybe during this call. */
void gw_chats_stop(struct gw_chats *chats, void (*stopped)(void *context), void *context);

/* Frees the chats. Call it after `stopped`. The loop has to run once more after that. */
void gw_chats_free(struct gw_chats *chats);

#endif
