/* Answers. gw_reply_end or gw_reply_fail settles a call and frees it, so a second answer is a bug of the handler. */
#include "rpc/reply.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gw_reply {
    struct gw_peer *peer; /* NULL: gone */
    struct gw_reply *next;
    struct gw_reply **link;
    struct fm_buf text;
    struct fm_json_writer writer;
    size_t id_len;
    char id[GW_ID_MAX];
};

struct gw_reply *gw_reply_new(struct gw_peer *peer, const char *id, size_t id_len) {
    struct gw_reply *call = calloc(1, sizeof *call);
    if (!call) {
        return NULL;
    }
    call->id_len = id_len;
    memcpy(call->id, id, id_len);
    fm_buf_init(&call->text, GW_ANSWER_MAX);
    call->peer = peer;
    call->next = peer->calls;
    call->link = &peer->calls;
    if (peer->calls) {
        peer->calls->link = &call->next;
    }
    peer->calls = call;
    peer->call_count++;
    return call;
}

void gw_reply_orphan(struct gw_reply *call) {
    *call->link = call->next;
    if (call->next) {
        call->next->link = call->link;
    }
    call->peer->call_count--;
    call->peer = NULL;
}

/* {"id":ID */
static struct fm_json_writer open_frame(struct fm_buf *text, const char *id, size_t id_len) {
    struct fm_json_writer w = fm_json_writer_on(text);
    fm_json_object_begin(&w);
    fm_json_key(&w, "id");
    if (id) {
        fm_json_string(&w, id, id_len);
    } else {
        fm_json_null(&w);
    }
    return w;
}

void gw_reply_write_error(struct fm_buf *text, const char *id, size_t id_len, enum gw_code code, const char *message) {
    struct fm_json_writer w = open_frame(text, id, id_len);
    fm_json_key(&w, "error");
    fm_json_object_begin(&w);
    fm_json_key_int(&w, "code", code);
    fm_json_key_str(&w, "message", message);
    fm_json_object_end(&w);
    fm_json_object_end(&w);
}

struct fm_json_writer *gw_reply_begin(struct gw_reply *call) {
    fm_buf_reset(&call->text);
    call->writer = open_frame(&call->text, call->id, call->id_len);
    fm_json_key(&call->writer, "result");
    return &call->writer;
}

/* Sends `text`, if the peer is still there, and frees the call. */
static void settle_reply(struct gw_reply *call) {
    struct gw_peer *peer = call->peer;
    if (peer) {
        gw_reply_orphan(call);
        if (!call->text.failed) {
            peer->send(peer, call->text.data, call->text.len);
        }
    }
    fm_buf_free(&call->text);
    free(call);
}

void gw_reply_end(struct gw_reply *call) {
    fm_json_object_end(&call->writer);
    if (call->text.failed) {
        gw_reply_fail(call, GW_INTERNAL, "the answer is longer than 8 MiB, or memory ran out: ask for less of it");
        return;
    }
    settle_reply(call);
}

void gw_reply_fail(struct gw_reply *call, enum gw_code code, const char *fmt, ...) {
    char message[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    fm_buf_reset(&call->text);
    gw_reply_write_error(&call->text, call->id, call->id_len, code, message);
    settle_reply(call);
}
