/*
 * The methods that a host can call. Each has its own file, which exports one row; methods.c lists the rows. To add a
 * method, add a new file with its row, a line in `rows` of methods.c and a line below, its file in
 * helper/front/CMakeLists.txt, its shape in protocol/host.schema.json, and its section in protocol/PROTOCOL.md.
 */
#ifndef FM_FRONT_METHODS_METHODS_H
#define FM_FRONT_METHODS_METHODS_H

#include "front/state.h"
#include "surface/check.h"
#include "surface/ignored.h"

enum fm_method_flags {
    FM_METHOD_NEEDS_PARAMS = 1,   /* missing params are an error */
    FM_METHOD_IGNORES_PARAMS = 2, /* params may be anything */
    FM_METHOD_NOTIFICATION = 4,   /* also works without an id */
    FM_METHOD_AT_ONCE = 16,       /* served even while a long message is worked on; takes microseconds */
    FM_METHOD_ANSWERS_LATER = 8,  /* on FM_OK a job, or the store, answers the call; `result` is not used */
};

/* A call whose params follow the method's rules. */
struct fm_method_call {
    const struct fm_rpc_id *id;       /* len 0: none */
    struct json_object *params;       /* NULL: none */
    bool is_notification;             /* the call gets no reply */
    const struct fm_ignored *ignored; /* the unknown members, already removed from `params` and logged; NULL: none */
};

struct fm_method {
    const char *name;
    unsigned flags;
    const struct fm_rule *params; /* the rules for its params' members; NULL: not checked here */
    /*
     * Runs in the reader's thread, and must not block. Writes the other members of {"ok":true, ...} to `result`. On
     * failure it fills `error` and returns its code, and what it wrote is discarded.
     */
    enum fm_code (*run)(struct fm_front *front, const struct fm_method_call *call, struct fm_json_writer *result,
                        struct fm_error *error);
    const struct fm_surface *surface; /* for a method whose params become a job; replaces `params` and `run` */
};

/* Finds a method by its name. NULL when there is no such method. */
const struct fm_method *fm_method_find(const char *name, size_t len);

/*
 * Checks the call's params and runs the method; the result is that of fm_method.run. With --strict-parameters, unknown
 * members are refused. Otherwise they are logged, and the result reports them.
 */
FM_MUST_USE enum fm_code fm_method_run(const struct fm_method *method, struct fm_front *front,
                                       const struct fm_rpc_message *message, struct fm_json_writer *result,
                                       struct fm_error *error);

/* The rules for params that have no members. */
extern const struct fm_rule fm_no_params[];

/* ---- the rows ---- */

extern const struct fm_method fm_method_cancel_request;
extern const struct fm_method fm_method_capabilities_get;
extern const struct fm_method fm_method_chat_completions_create;
extern const struct fm_method fm_method_completions_create;
extern const struct fm_method fm_method_embeddings_create;
extern const struct fm_method fm_method_decisions_create;
extern const struct fm_method fm_method_health_ping;
extern const struct fm_method fm_method_metrics_get;
extern const struct fm_method fm_method_models_list;
extern const struct fm_method fm_method_models_load;
extern const struct fm_method fm_method_models_retrieve;
extern const struct fm_method fm_method_models_unload;
extern const struct fm_method fm_method_process_shutdown;
extern const struct fm_method fm_method_requests_get;
extern const struct fm_method fm_method_responses_cancel;
extern const struct fm_method fm_method_responses_compact;
extern const struct fm_method fm_method_responses_create;
extern const struct fm_method fm_method_responses_delete;
extern const struct fm_method fm_method_responses_input_items;
extern const struct fm_method fm_method_responses_input_tokens;
extern const struct fm_method fm_method_responses_retrieve;

#endif
