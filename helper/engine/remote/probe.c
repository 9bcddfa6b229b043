/*
 * Checks whether the endpoints can be reached. Each is asked for its models, which costs nothing and also checks the
 * key.
 */
#include "base/clock.h"
#include "engine/remote/failure.h"
#include "engine/remote/remote.h"

#include <stdio.h>

#define PROBE_MS 1800 /* most ms for a probe; the front waits 2 s */

struct probe {
    struct fm_transfer *transfer;
    bool good;
    struct fm_error error;
};

static bool on_data(void *state, const char *bytes, size_t len) {
    (void)state; /* the body is ignored: the configuration says which models there are */
    (void)bytes;
    (void)len;
    return true;
}

/*
 * A server without such a list can still be reached. A server that can't answer now, or answers in another form, may
 * still be able to do jobs.
 */
static void on_done(void *state, enum fm_code code, const struct fm_error *error) {
    struct probe *probe = state;
    probe->transfer = NULL;
    probe->good = code != FM_UNAVAILABLE && code != FM_RATE_LIMITED;
    probe->error = *error;
}

static void start_probe(struct fm_remote *remote, struct probe *probe, const struct fm_endpoint *endpoint) {
    const struct fm_call call = {
        .endpoint = endpoint, .path = "/models", .data = on_data, .done = on_done, .state = probe};
    probe->transfer = fm_transport_start(&remote->transport, &call);
    if (!probe->transfer) {
        (void)fm_fail_no_memory(&probe->error);
    }
}

/* Whether one endpoint answered well, or all have answered. */
static bool is_decided(const struct probe *probes, size_t count) {
    bool all = true;
    for (size_t i = 0; i < count; i++) {
        if (probes[i].good) {
            return true;
        }
        all &= probes[i].transfer == NULL;
    }
    return all;
}

static void conclude(struct fm_remote *remote, const struct probe *probes, struct fm_availability *out) {
    const struct fm_error *first = NULL;
    size_t count = remote->config.endpoint_count;
    for (size_t i = 0; i < count; i++) {
        out->available |= probes[i].good;
        if (!first && probes[i].error.code != FM_OK) {
            first = &probes[i].error;
        }
    }
    if (out->available) {
        return;
    }
    bool known = first && first->reason_code[0];
    static _Thread_local char reason[sizeof first->reason_code];
    snprintf(reason, sizeof reason, "%s",
             known                                     ? first->reason_code
             : first && first->code == FM_RATE_LIMITED ? "RATE_LIMITED"
                                                       : "OFFLINE");
    out->reason_code = reason;
    out->ttl_ms = first && first->retry_ms > 0 ? first->retry_ms : -1;
    snprintf(out->detail, sizeof out->detail, "%s", first ? first->detail : "no endpoint has answered in time");
}

void fm_probe(struct fm_remote *remote, void (*pump)(struct fm_remote *, int64_t ms), struct fm_availability *out) {
    struct probe probes[FM_ENDPOINTS_MAX] = {{.transfer = NULL}};
    size_t count = remote->config.endpoint_count;
    int64_t until = fm_now_ms() + PROBE_MS;
    for (size_t i = 0; i < count; i++) {
        start_probe(remote, &probes[i], &remote->config.endpoints[i]);
    }
    for (int64_t left = PROBE_MS; left > 0 && !is_decided(probes, count); left = until - fm_now_ms()) {
        pump(remote, left);
    }
    for (size_t i = 0; i < count; i++) {
        fm_transfer_cancel(probes[i].transfer);
    }
    conclude(remote, probes, out);
    out->models = remote->model_count > 0 ? remote->models : NULL;
    out->model_count = remote->model_count;
}
