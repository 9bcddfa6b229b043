/*
 * Peers, and how a request reaches its handler. A call is in its peer's list from the request to its answer. When a
 * peer goes, its calls stay, without a peer.
 */
#include "rpc/rpc.h"

#include "base/clock.h"
#include "rpc/reply.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static void health_check(void *context, struct gw_reply *call, const struct gw_params *params) {
    (void)params;
    struct fm_json_writer *w = gw_reply_begin(call);
    fm_json_object_begin(w);
    fm_json_key_str(w, "status", "ok");
    fm_json_key_int(w, "uptime", gw_rpc_uptime(context));
    fm_json_object_end(w);
    gw_reply_end(call);
}

/* A number above all numbers of an earlier process, because a process can't send 1,000 events in each millisecond. */
static int64_t first_seq(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return ((int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000) * 1000;
}

void gw_rpc_init(struct gw_rpc *rpc) {
    *rpc = (struct gw_rpc){.started_ms = fm_now_ms(), .seq = first_seq()};
    fm_buf_init(&rpc->event, GW_ANSWER_MAX);
    gw_app_set(rpc, GW_HEALTH_CHECK, health_check, rpc);
}

void gw_rpc_free(struct gw_rpc *rpc) {
    fm_buf_free(&rpc->event);
}

int64_t gw_rpc_uptime(const struct gw_rpc *rpc) {
    return (fm_now_ms() - rpc->started_ms) / 1000;
}

void gw_app_set(struct gw_rpc *rpc, enum gw_method method, gw_handler *handle, void *context) {
    rpc->app[method].handle = handle;
    rpc->app[method].context = context;
}

void gw_peer_add(struct gw_rpc *rpc, struct gw_peer *peer) {
    peer->rpc = rpc;
    peer->next = rpc->peers;
    peer->link = &rpc->peers;
    if (rpc->peers) {
        rpc->peers->link = &peer->next;
    }
    rpc->peers = peer;
}

void gw_peer_remove(struct gw_peer *peer) {
    while (peer->calls) {
        gw_reply_orphan(peer->calls);
    }
    *peer->link = peer->next;
    if (peer->next) {
        peer->next->link = peer->link;
    }
    peer->link = NULL;
}

void gw_rpc_refuse(struct gw_peer *peer, const char *id, size_t id_len, enum gw_code code, const char *message) {
    struct fm_buf text;
    fm_buf_init(&text, GW_ANSWER_MAX);
    gw_reply_write_error(&text, id, id_len, code, message);
    if (!text.failed) {
        peer->send(peer, text.data, text.len);
    }
    fm_buf_free(&text);
}

void gw_rpc_request(struct gw_peer *peer, const struct gw_frame *frame) {
    struct gw_params params;
    char fault[256];
    enum gw_method method = gw_method_find(frame->method, frame->method_len);
    if (method == GW_METHOD_COUNT) {
        gw_rpc_refuse(peer, frame->id, frame->id_len, GW_UNKNOWN_METHOD, "there is no such method");
        return;
    }
    enum gw_code code = gw_params_read(&gw_rows[method], frame->params, &params, fault, sizeof fault);
    if (code != GW_OK) {
        gw_rpc_refuse(peer, frame->id, frame->id_len, code, fault);
        return;
    }
    if (peer->call_count >= GW_CALLS_MAX) {
        gw_rpc_refuse(peer, frame->id, frame->id_len, GW_BUSY,
                      "busy: too many requests of this connection wait for their answers; send it again after one");
        return;
    }
    struct gw_reply *call = gw_reply_new(peer, frame->id, frame->id_len);
    if (!call) {
        gw_rpc_refuse(peer, frame->id, frame->id_len, GW_INTERNAL, "out of memory");
        return;
    }
    if (!peer->rpc->app[method].handle) {
        gw_reply_fail(call, GW_UNAVAILABLE, "unavailable: this gateway was built without what %s needs",
                      gw_rows[method].name);
        return;
    }
    peer->rpc->app[method].handle(peer->rpc->app[method].context, call, &params);
}
