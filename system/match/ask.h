/* One request to fm-proxy as a child: waits for its answer, for as long as it may take, or until it is not wanted any
 * more. */
#ifndef SY_ASK_H
#define SY_ASK_H

#include "base/error.h"

#include <stdint.h>

struct fm_buf;
struct fm_client;
struct json_object;

/*
 * Sends the request and waits for what settles it. `*result` is the caller's, by json_object_put; NULL on failure.
 * FM_TIMEOUT: it took longer than `ms`. FM_CANCELLED: `cancel_fd` (-1: none) became readable. Both cancel the request;
 * a helper that does not say so within 2 s is killed. A helper that died since the last request is followed by another
 * one. Called on the thread of the client.
 */
FM_MUST_USE enum fm_code sy_ask_helper(struct fm_client *client, const char *method, const struct fm_buf *request,
                                       int64_t ms, int cancel_fd, struct json_object **result, struct fm_error *error);

#endif
