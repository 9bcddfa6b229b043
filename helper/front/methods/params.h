/* Params that several methods read in the same way. */
#ifndef FM_FRONT_METHODS_PARAMS_H
#define FM_FRONT_METHODS_PARAMS_H

#include "front/store/queue.h"

#include <json-c/json.h>

/* Fills `error` with INVALID_REQUEST for the member `param`; the last two are static or formatted, one sentence. */
enum fm_code fm_params_wrong(struct fm_error *error, const char *param, const char *reason, const char *detail);

/*
 * The unknown members of a call's params (`paths` as surface/ignored.h has them): refused with --strict-parameters,
 * else logged. The reader's thread.
 */
FM_MUST_USE enum fm_code fm_params_judge_ignored(struct fm_front *front, const struct fm_buf *paths,
                                                 struct fm_error *error);

/* A string without NUL of the member `name`, borrowed. NULL where it is something else. */
const char *fm_params_text(struct json_object *params, const char *name);

/* Starts `query` with the member `id`, a response's id; NOT_FOUND where it can't be one. */
FM_MUST_USE enum fm_code fm_params_read_id(struct json_object *params, struct fm_store_query *query,
                                           struct fm_error *error);

#endif
