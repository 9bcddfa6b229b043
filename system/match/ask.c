/* Waits until the request has settled, its time is over, or it is cancelled. */
#include "match/ask.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/platform.h"
#include "protocol/client/client.h"

#include <json-c/json.h>

#define CANCEL_MS 2000 /* until a cancelled request has settled; after that the helper is killed */

struct call {
    bool settled;
    enum fm_code code;
    struct json_object *result; /* owned */
    struct fm_error error;
};

static void on_settled(void *context, const struct fm_client_reply *reply) {
    struct call *call = context;
    call->settled = true;
    call->code = reply->code;
    call->result = json_object_get(reply->result);
    if (reply->error) {
        call->error = *reply->error;
    }
}

/* Waits until the call has settled (FM_OK), or returns FM_TIMEOUT or FM_CANCELLED. */
static enum fm_code await(struct fm_client *client, const struct call *call, int64_t until_ms, int cancel_fd) {
    while (!call->settled) {
        struct fm_waited waited[FM_WAITED_MAX];
        size_t count = fm_client_fds(client, waited); /* leaves room for one more descriptor */
        int64_t left = until_ms - fm_now_ms();
        int64_t due = fm_client_timeout(client);
        if (left <= 0) {
            return FM_TIMEOUT;
        }
        waited[count] = (struct fm_waited){.fd = cancel_fd, .input = true};
        fm_wait(waited, count + 1, (int)(due >= 0 && due < left ? due : left));
        if (waited[count].ready) {
            return FM_CANCELLED;
        }
        fm_client_process(client);
    }
    return FM_OK;
}

/* Notices whether the helper died after the last request. If so, the next call starts another helper. */
static void take_note(struct fm_client *client) {
    fm_client_process(client);
    while (fm_client_state_get(client) == FM_CLIENT_ENDING) { /* for FM_CLIENT_END_MS at most */
        fm_client_wait(client, -1);
    }
}

static void give_up(struct fm_client *client, int64_t id, const struct call *call) {
    fm_client_cancel(client, id);
    if (await(client, call, fm_now_ms() + CANCEL_MS, -1) != FM_OK) {
        fm_client_kill(client, "the helper did not answer a cancel, and was killed");
    }
    while (!call->settled) {
        fm_client_process(client);
    }
}

enum fm_code sy_ask_helper(struct fm_client *client, const char *method, const struct fm_buf *request, int64_t ms,
                           int cancel_fd, struct json_object **result, struct fm_error *error) {
    struct call call = {.settled = false};
    const struct fm_client_handler handler = {.context = &call, .settled = on_settled};
    int64_t id = 0;
    *result = NULL;
    take_note(client);
    if (request->failed) {
        return fm_fail_no_memory(error);
    }
    enum fm_code code = fm_client_call(client, method, request->data, request->len, &handler, &id, error);
    if (code != FM_OK) {
        return code;
    }
    enum fm_code ended = await(client, &call, fm_now_ms() + ms, cancel_fd);
    if (ended != FM_OK) {
        give_up(client, id, &call);
        json_object_put(call.result);
        return ended == FM_CANCELLED
                   ? fm_fail(error, FM_CANCELLED, "the call was cancelled")
                   : fm_fail(error, FM_TIMEOUT, "the model has not answered within %.1f s", (double)ms / 1000);
    }
    *result = call.result;
    if (call.code != FM_OK) {
        *error = call.error;
    }
    return call.code;
}
