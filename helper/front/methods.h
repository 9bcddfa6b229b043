/* The methods that a host can call: one table row each. */
#ifndef FM_FRONT_METHODS_H
#define FM_FRONT_METHODS_H

#include "front/front.h"
#include "surface/check.h"
#include "surface/ignored.h"

enum fm_method_flags {
    FM_METHOD_NEEDS_PARAMS = 1,   /* absent params are an error */
    FM_METHOD_IGNORES_PARAMS = 2, /* params may be anything */
    FM_METHOD_NOTIFICATION = 4,   /* also works without an id */
    FM_METHOD_ANSWERS_LATER = 8,  /* on FM_OK a job, or the store, answers the call; `result` is not used */
};

struct fm_method {
    const char *name;
    unsigned flags;
    /*
     * Runs in the reader's thread, must not block. Writes its members of {"ok":true, ...} to `result`; on failure fills
     * `error` and returns its code, and what it wrote is thrown away.
     */
    enum fm_code (*run)(struct fm_front *front, const struct fm_rpc_message *message, struct fm_json_writer *result,
                        struct fm_error *error);
    const struct fm_surface *surface; /* of a method that makes an answer of it, in place of `run`; else NULL */
};

/*
 * Runs such a method: its params become a job, which answers the call. On failure `error` is filled, and the caller
 * answers. The reader's thread.
 */
FM_MUST_USE enum fm_code fm_method_create(struct fm_front *front, const struct fm_rpc_message *message,
                                          const struct fm_surface *surface, struct fm_error *error);

/* ---- for methods that live elsewhere ---- */

/*
 * Checks params (NULL: none) against `rules`. Unknown members are refused with --strict-parameters; else they are taken
 * out of `params`, logged, and added to `ignored` (uninitialised), for the result to report. The reader's thread.
 */
FM_MUST_USE enum fm_code fm_params_check(struct fm_front *front, const struct fm_rule *rules,
                                         struct json_object *params, struct fm_ignored *ignored,
                                         struct fm_error *error);

/* Fills `error` with INVALID_REQUEST for the member `param`; the last two are static or formatted, one sentence. */
enum fm_code fm_params_wrong(struct fm_error *error, const char *param, const char *openai_code, const char *detail);

/* ---- store_methods.c ---- */

/* Starts `query` with the member `id`, a response's id; NOT_FOUND where it can't be one. */
FM_MUST_USE enum fm_code fm_params_read_id(struct json_object *params, struct fm_store_query *query,
                                           struct fm_error *error);

/* Rows of the table. */
enum fm_code fm_responses_retrieve(struct fm_front *front, const struct fm_rpc_message *message,
                                   struct fm_json_writer *result, struct fm_error *error);
enum fm_code fm_responses_delete(struct fm_front *front, const struct fm_rpc_message *message,
                                 struct fm_json_writer *result, struct fm_error *error);
enum fm_code fm_responses_input_items(struct fm_front *front, const struct fm_rpc_message *message,
                                      struct fm_json_writer *result, struct fm_error *error);

/* What a cancel of a stored response says: it has ended. */
fm_store_reply_fn fm_reply_cancelled;

/* NULL when there is no such method. */
const struct fm_method *fm_method_find(const char *name, size_t len);

#endif
