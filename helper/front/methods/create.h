/* The common part of all methods that make an answer. */
#ifndef FM_FRONT_METHODS_CREATE_H
#define FM_FRONT_METHODS_CREATE_H

#include "front/methods/methods.h"

/* The flags of a method that makes an answer. */
#define FM_METHOD_CREATES (FM_METHOD_NEEDS_PARAMS | FM_METHOD_ANSWERS_LATER)

/*
 * Makes params a job of `surface`, which answers the call `id`. On failure `error` is filled, and the caller answers.
 * Call it on the reader's thread.
 */
FM_MUST_USE enum fm_code fm_method_create(struct fm_front *front, const struct fm_rpc_id *id,
                                          struct json_object *params, const struct fm_surface *surface,
                                          struct fm_error *error);

#endif
