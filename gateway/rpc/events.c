/* Events. Each one is written once, and sent to each peer that is logged in, in the order of the numbers. */
#include "rpc/rpc.h"

struct fm_json_writer *gw_event_begin(struct gw_rpc *rpc, const char *name) {
    fm_buf_reset(&rpc->event);
    rpc->writer = fm_json_writer_on(&rpc->event);
    fm_json_object_begin(&rpc->writer);
    fm_json_key_str(&rpc->writer, "event", name);
    fm_json_key(&rpc->writer, "data");
    fm_json_object_begin(&rpc->writer);
    return &rpc->writer;
}

/* Sends the event with the number `seq`. */
static int64_t send_event(struct gw_rpc *rpc, const char *session_key, int64_t seq) {
    struct fm_json_writer *w = &rpc->writer;
    if (session_key) {
        fm_json_key_str(w, "sessionKey", session_key);
    }
    fm_json_key_int(w, "seq", seq);
    fm_json_object_end(w);
    fm_json_object_end(w);
    if (rpc->event.failed) {
        return 0;
    }
    rpc->seq = seq;
    for (struct gw_peer *peer = rpc->peers; peer; peer = peer->next) {
        if (peer->logged_in) {
            peer->send(peer, rpc->event.data, rpc->event.len);
        }
    }
    return rpc->seq;
}

int64_t gw_event_end(struct gw_rpc *rpc, const char *session_key) {
    return send_event(rpc, session_key, rpc->seq + 1);
}

int64_t gw_event_promise(struct gw_rpc *rpc) {
    int64_t least = rpc->seq + GW_SEQ_PROMISE;
    rpc->promised = rpc->promised >= least ? rpc->promised + 1 : least;
    return rpc->promised;
}

int64_t gw_event_end_as(struct gw_rpc *rpc, const char *session_key, int64_t promised) {
    return send_event(rpc, session_key, promised > rpc->seq ? promised : rpc->seq + 1);
}

void gw_event_start_above(struct gw_rpc *rpc, int64_t seq) {
    rpc->seq = seq > rpc->seq ? seq : rpc->seq;
}
