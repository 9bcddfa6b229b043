/*
 * The messages of the protocol. A pending call leaves the table before its answer is reported, so each answer is
 * reported only once.
 */
#include "protocol/cdp.h"
#include "protocol/json_check.h"
#include "protocol/json_tree.h"
#include "protocol/json_writer.h"

#include <json-c/json.h>
#include <string.h>

#define CALL_MAX   (1024u * 1024u)
#define VALUES_MAX 65536u

void fm_cdp_init(struct fm_cdp *cdp, void *context, bool (*write)(void *context, const char *data, size_t len),
                 void (*event)(void *context, const char *session, const char *method, struct json_object *params)) {
    *cdp = (struct fm_cdp){.context = context, .write = write, .event = event};
    fm_buf_init(&cdp->in, FM_CDP_MESSAGE_MAX);
    fm_buf_init(&cdp->scratch, FM_CDP_MESSAGE_MAX);
}

void fm_cdp_free(struct fm_cdp *cdp) {
    fm_buf_free(&cdp->in);
    fm_buf_free(&cdp->scratch);
}

void fm_cdp_close(struct fm_cdp *cdp) {
    cdp->closed = true;
}

bool fm_cdp_call(struct fm_cdp *cdp, const char *session, const char *method, const char *params,
                 fm_cdp_answered *answered) {
    struct fm_cdp_pending *row = cdp->pending;
    while (row < cdp->pending + FM_CDP_PENDING_MAX && row->id) {
        row++;
    }
    if (cdp->closed || (answered && row == cdp->pending + FM_CDP_PENDING_MAX)) {
        return false;
    }
    struct fm_buf text;
    fm_buf_init(&text, CALL_MAX);
    struct fm_json_writer w = fm_json_writer_on(&text);
    fm_json_object_begin(&w);
    fm_json_key_int(&w, "id", ++cdp->last_id);
    fm_json_key_str(&w, "method", method);
    if (params) {
        fm_json_key(&w, "params");
        fm_json_raw(&w, params, strlen(params));
    }
    if (session && *session) {
        fm_json_key_str(&w, "sessionId", session);
    }
    fm_json_object_end(&w);
    fm_buf_append_char(&text, '\0');
    bool written = !text.failed && cdp->write(cdp->context, text.data, text.len);
    if (written && answered) {
        *row = (struct fm_cdp_pending){.id = cdp->last_id, .answered = answered};
    }
    fm_buf_free(&text);
    return written;
}

void fm_cdp_forget(struct fm_cdp *cdp, int id) {
    for (size_t i = 0; id > 0 && i < FM_CDP_PENDING_MAX; i++) {
        if (cdp->pending[i].id == id) {
            cdp->pending[i].id = 0;
        }
    }
}

static void take_answer(struct fm_cdp *cdp, int id, struct json_object *root) {
    for (struct fm_cdp_pending *row = cdp->pending; id > 0 && row < cdp->pending + FM_CDP_PENDING_MAX; row++) {
        if (row->id == id) {
            struct json_object *error = NULL;
            struct json_object *message = NULL;
            struct json_object *result = NULL;
            json_object_object_get_ex(root, "result", &result);
            if (json_object_object_get_ex(root, "error", &error)) {
                json_object_object_get_ex(error, "message", &message);
            }
            row->id = 0;
            cdp->answering = id;
            row->answered(cdp->context, result, error ? message ? json_object_get_string(message) : "no reason" : NULL);
            cdp->answering = 0;
            return;
        }
    }
}

/* False: it is not a message of the protocol. */
static bool take_message(struct fm_cdp *cdp, const char *text, size_t len) {
    struct json_object *root = NULL;
    struct json_object *id = NULL;
    struct json_object *method = NULL;
    struct json_object *params = NULL;
    struct json_object *session = NULL;
    size_t offset;
    if (fm_json_check(text, len, VALUES_MAX, &offset) == fm_json_too_many) {
        return true; /* an event with too many values is ignored */
    }
    fm_buf_reset(&cdp->scratch);
    if (fm_json_check(text, len, VALUES_MAX, &offset) || !fm_json_tree(text, len, &cdp->scratch, &root)) {
        return false;
    }
    if (json_object_object_get_ex(root, "id", &id)) {
        take_answer(cdp, json_object_get_int(id), root);
    } else if (json_object_object_get_ex(root, "method", &method)) {
        json_object_object_get_ex(root, "params", &params);
        json_object_object_get_ex(root, "sessionId", &session);
        cdp->event(cdp->context, session ? json_object_get_string(session) : "", json_object_get_string(method),
                   params);
    }
    bool is_message = id || method;
    json_object_put(root);
    return is_message;
}

bool fm_cdp_feed(struct fm_cdp *cdp, const char *data, size_t len) {
    size_t begin = 0;
    fm_buf_append(&cdp->in, data, len);
    if (cdp->closed || cdp->in.failed) {
        return cdp->closed;
    }
    for (size_t at = cdp->looked; at < cdp->in.len && !cdp->closed; at++) {
        if (cdp->in.data[at] == '\0') {
            if (!take_message(cdp, cdp->in.data + begin, at - begin)) {
                return false;
            }
            begin = at + 1;
        }
    }
    fm_buf_drop_front(&cdp->in, begin);
    cdp->looked = cdp->in.len;
    return true;
}
