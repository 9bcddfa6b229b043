/* Params that several methods read in the same way. */
#ifndef FM_FRONT_METHODS_PARAMS_H
#define FM_FRONT_METHODS_PARAMS_H

#include "front/store/queue.h"

#include <json-c/json.h>

/* Fills `error` with INVALID_REQUEST for the member `param`. The text is one sentence, static or formatted. */
enum fm_code fm_params_wrong(struct fm_error *error, const char *param, const char *reason, const char *detail);

/*
 * Handles the unknown members of a call's params (`paths` as surface/ignored.h has them). With --strict-parameters they
 * are refused, otherwise logged. Call it on the reader's thread.
 */
FM_MUST_USE enum fm_code fm_params_judge_ignored(struct fm_front *front, const struct fm_buf *paths,
                                                 struct fm_error *error);

/* The member `name` if it is a string without a NUL, borrowed. NULL if it is something else. */
const char *fm_params_text(struct json_object *params, const char *name);

/* Sets the member `id` of `query` to a response's id; NOT_FOUND if the value can't be such an id. */
FM_MUST_USE enum fm_code fm_params_read_id(struct json_object *params, struct fm_store_query *query,
                                           struct fm_error *error);

#endif
