/*
 * One request to fm-proxy, which runs as a child process. Waits for the answer, until the time is over or the request
 * is cancelled.
 */
#ifndef SY_ASK_H
#define SY_ASK_H

#include "base/error.h"

#include <stdint.h>

struct fm_buf;
struct fm_client;
struct json_object;

/*
 * Sends the request, and waits until it has settled. The caller frees `*result` by json_object_put; it is NULL on
 * failure. FM_TIMEOUT: it took longer than `ms`. FM_CANCELLED: `cancel_fd` (-1: none) became readable. In both cases
 * the request is cancelled; a helper that does not confirm this within 2 s is killed. If the helper died since the last
 * request, another one is started. Call it on the client's thread.
 */
FM_MUST_USE enum fm_code sy_ask_helper(struct fm_client *client, const char *method, const struct fm_buf *request,
                                       int64_t ms, int cancel_fd, struct json_object **result, struct fm_error *error);

#endif
