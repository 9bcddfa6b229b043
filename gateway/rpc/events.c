/* Events: written once, sent to each peer that is logged in, in the order of their numbers. */
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

int64_t gw_event_end(struct gw_rpc *rpc, const char *session_key) {
    struct fm_json_writer *w = &rpc->writer;
    if (session_key) {
        fm_json_key_str(w, "sessionKey", session_key);
    }
    fm_json_key_int(w, "seq", rpc->seq + 1);
    fm_json_object_end(w);
    fm_json_object_end(w);
    if (rpc->event.failed) {
        return 0;
    }
    rpc->seq++;
    for (struct gw_peer *peer = rpc->peers; peer; peer = peer->next) {
        if (peer->logged_in) {
            peer->send(peer, rpc->event.data, rpc->event.len);
        }
    }
    return rpc->seq;
}
