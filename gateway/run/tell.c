/* Writes those shapes and events of PROTOCOL.md that more than one file needs. */
#include "run/internal.h"

void gw_tell_usage(const struct gw_usage *usage, bool is_free, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_json_key_int(w, "inputTokens", usage->input_tokens > 0 ? usage->input_tokens : 0);
    fm_json_key_int(w, "outputTokens", usage->output_tokens > 0 ? usage->output_tokens : 0);
    if (is_free) {
        fm_json_key_int(w, "costUsd", 0);
    }
    fm_json_object_end(w);
}

void gw_tell_session(const struct gw_chats *chats, const struct gw_session *session, struct fm_json_writer *w) {
    const struct gw_facts *facts = &session->facts;
    const struct gw_chat *chat = gw_chat_find(chats, session->key);
    const struct gw_usage usage = {.input_tokens = facts->input_tokens, .output_tokens = facts->output_tokens};
    fm_json_object_begin(w);
    fm_json_key_str(w, "sessionKey", session->key);
    fm_json_key_str(w, "agentId", facts->agent_id);
    if (facts->title[0]) {
        fm_json_key_str(w, "title", facts->title);
    }
    fm_json_key_int(w, "createdAt", facts->created_ms);
    fm_json_key_int(w, "updatedAt", facts->updated_ms);
    fm_json_key_int(w, "messageCount", (int64_t)facts->messages);
    fm_json_key_bool(w, "running", chat && chat->runs);
    fm_json_key(w, "usage");
    gw_tell_usage(&usage, !facts->priceless, w);
    fm_json_object_end(w);
}

void gw_tell_approval(const struct gw_run *run, bool with_session, struct fm_json_writer *w) {
    fm_json_key_str(w, "approvalId", run->approval_id);
    fm_json_key_str(w, "runId", run->id);
    gw_live_write_call(gw_live_last(run), w);
    fm_json_key_int(w, "expiresAt", run->approval_end_ms);
    fm_json_key_bool(w, "canRemember", run->can_remember);
    if (with_session) {
        fm_json_key_str(w, "sessionKey", run->chat->key);
    }
}

void gw_tell_changed(struct gw_chats *chats, const char *session_key) {
    const struct gw_session *session = gw_session_find(chats->options.sessions, session_key);
    if (session) {
        struct fm_json_writer *w = gw_event_begin(chats->options.rpc, "sessions.changed");
        fm_json_key(w, "session");
        gw_tell_session(chats, session, w);
        (void)gw_event_end(chats->options.rpc, session_key);
    }
}

void gw_tell_ok(struct gw_reply *call, bool ok) {
    struct fm_json_writer *w = gw_reply_begin(call);
    fm_json_object_begin(w);
    fm_json_key_bool(w, "ok", ok);
    fm_json_object_end(w);
    gw_reply_end(call);
}

struct fm_json_writer *gw_tell_begin(struct gw_run *run, const char *event) {
    struct fm_json_writer *w = gw_event_begin(run->chat->chats->options.rpc, event);
    fm_json_key_str(w, "runId", run->id);
    return w;
}

int64_t gw_tell_end(struct gw_run *run) {
    return gw_event_end(run->chat->chats->options.rpc, run->chat->key);
}

bool gw_tell_filtered(const struct gw_chats *chats, const char *text, size_t len, struct fm_buf *out) {
    bool ok = true;
    if (chats->options.known) {
        ok = gw_filter_text(chats->options.known, text, len, out);
    } else {
        fm_buf_append(out, text, len);
    }
    fm_buf_append_char(out, '\0');
    return ok && !out->failed;
}
