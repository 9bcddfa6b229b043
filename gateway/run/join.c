/*
 * The state of a session, for clients that come later: its messages, and the runs in progress. The transcript is read
 * on another thread. If a run has ended meanwhile, the transcript is read again. So each run is either among the
 * messages or among the runs in progress. If a session is longer than a frame, only its newest messages are sent.
 */
#include "run/internal.h"

#include <stdlib.h>
#include <string.h>

#define SNAPSHOT_MESSAGES 100 /* PROTOCOL.md, Joining in the midst */

enum form { SUBSCRIBE, GET, HISTORY };

struct join {
    struct gw_chats *chats;
    struct gw_reply *call;
    enum form form;
    char key[GW_SESSION_KEY_LEN + 1];
    int64_t after_seq;
    size_t limit;
    unsigned ends; /* `ends` of the chat when the reading began */
};

static unsigned ends_of(const struct join *join) {
    const struct gw_chat *chat = gw_chat_find(join->chats, join->key);
    return chat ? chat->ends : 0;
}

/* ---- writing ---- */

static bool is_open(void *context, const char *run_id) {
    return gw_run_find(context, run_id) != NULL;
}

static void write_run(const struct gw_run *run, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_json_key_str(w, "runId", run->id);
    fm_json_key_str(w, "state", run->state == GW_RUN_QUEUED ? "queued" : "running");
    fm_json_key(w, "message");
    fm_json_string(w, run->message, run->message_len);
    if (run->request_key[0]) {
        fm_json_key_str(w, "requestKey", run->request_key);
    }
    fm_json_key_int(w, "time", run->time_ms);
    if (run->model[0]) {
        fm_json_key_str(w, "model", run->model);
    }
    fm_json_key(w, "parts");
    gw_live_write(run, w);
    fm_json_object_end(w);
}

/* Writes the runs whose messages are on the disk, because only these were reported by chat.message. */
static void write_runs(const struct gw_chat *chat, struct fm_json_writer *w) {
    fm_json_array_begin(w);
    for (const struct gw_run *run = chat ? chat->runs : NULL; run; run = run->next) {
        if (run->state != GW_RUN_WRITING) {
            write_run(run, w);
        }
    }
    fm_json_array_end(w);
}

static void write_approvals(const struct gw_chat *chat, struct fm_json_writer *w) {
    fm_json_array_begin(w);
    for (const struct gw_run *run = chat ? chat->runs : NULL; run; run = run->next) {
        if (run->state == GW_RUN_GOING && run->phase == GW_PHASE_APPROVAL && run->approval_id[0]) {
            fm_json_object_begin(w);
            gw_tell_approval(run, true, w);
            fm_json_object_end(w);
        }
    }
    fm_json_array_end(w);
}

/* Writes the answer with the last `limit` messages (0: all). */
static const struct fm_buf *write_answer(const struct join *join, const struct gw_story *story, size_t limit) {
    struct gw_chats *chats = join->chats;
    const struct gw_session *session = gw_session_find(chats->options.sessions, join->key);
    const struct gw_chat *chat = gw_chat_find(chats, join->key);
    const struct gw_messages messages = {
        .story = story, .after_seq = join->after_seq, .limit = limit, .open = is_open, .context = chats};
    bool more = false;
    struct fm_json_writer *w = gw_reply_begin(join->call);
    fm_json_object_begin(w);
    if (join->form == SUBSCRIBE) {
        fm_json_key_int(w, "seq", chats->options.rpc->seq);
    }
    if (join->form != HISTORY) {
        fm_json_key(w, "session");
        gw_tell_session(chats, session, w);
    }
    fm_json_key(w, "messages");
    gw_messages_write(&messages, w, &more);
    if (join->form == SUBSCRIBE) {
        fm_json_key_bool(w, "more", more);
        fm_json_key(w, "runs");
        write_runs(chat, w);
        fm_json_key(w, "approvals");
        write_approvals(chat, w);
    } else if (join->form == GET && more) {
        fm_json_key_bool(w, "more", true);
    }
    fm_json_object_end(w);
    return w->buf;
}

/*
 * Halves the number of messages until they fit, because a client that opens a session must get some of them. If the
 * caller has said which messages it wants, the number stays: it would take fewer messages for all of them.
 */
static void answer_join(const struct join *join, const struct gw_story *story) {
    bool fixed = join->form == HISTORY || join->after_seq;
    size_t count = 2 * story->count; /* a run has two messages */
    size_t limit = join->limit && join->limit < count ? join->limit : count;
    const struct fm_buf *text = write_answer(join, story, join->limit);
    while (text->failed && !fixed && limit > 1) {
        limit /= 2;
        text = write_answer(join, story, limit);
    }
    gw_reply_end(join->call);
}

/* ---- reading ---- */

static void read_transcript(struct join *join);

static void on_viewed(void *context, const struct fm_error *error, const char *text, size_t len, bool cut) {
    struct join *join = context;
    struct gw_story story;
    (void)cut;
    if (!gw_session_find(join->chats->options.sessions, join->key)) {
        gw_reply_fail(join->call, GW_NOT_FOUND, "sessionKey: the session was deleted");
        free(join);
        return;
    }
    if (!error && ends_of(join) != join->ends) {
        read_transcript(join);
        return;
    }
    if (error) {
        gw_reply_fail(join->call, GW_UNAVAILABLE, "the session can't be read: %s", error->detail);
    } else if (!gw_story_read(text, len, &story)) {
        gw_reply_fail(join->call, GW_INTERNAL, "out of memory");
    } else {
        answer_join(join, &story);
        gw_story_free(&story);
    }
    free(join);
}

static void read_transcript(struct join *join) {
    const struct gw_view view = {.form = GW_VIEW_RECORDS};
    struct fm_error error;
    join->ends = ends_of(join);
    if (gw_session_view(join->chats->options.sessions, join->key, &view, on_viewed, join, &error) != FM_OK) {
        gw_reply_fail(join->call, GW_UNAVAILABLE, "the session can't be read: %s", error.detail);
        free(join);
    }
}

static void begin_join(struct gw_chats *chats, struct gw_reply *call, const struct gw_params *params, enum form form,
                       size_t limit) {
    if (!gw_session_find(chats->options.sessions, params->session_key.text)) {
        gw_reply_fail(call, GW_NOT_FOUND, "sessionKey: there is no such session; sessions.list has them");
        return;
    }
    struct join *join = calloc(1, sizeof *join);
    if (!join) {
        gw_reply_fail(call, GW_INTERNAL, "out of memory");
        return;
    }
    join->chats = chats;
    join->call = call;
    join->form = form;
    join->limit = limit;
    join->after_seq = params->after_seq;
    memcpy(join->key, params->session_key.text, GW_SESSION_KEY_LEN);
    read_transcript(join);
}

void gw_join_subscribe(void *context, struct gw_reply *call, const struct gw_params *params) {
    begin_join(context, call, params, SUBSCRIBE, params->after_seq ? 0 : SNAPSHOT_MESSAGES);
}

void gw_join_get(void *context, struct gw_reply *call, const struct gw_params *params) {
    begin_join(context, call, params, GET, GW_HISTORY_MAX);
}

void gw_join_history(void *context, struct gw_reply *call, const struct gw_params *params) {
    begin_join(context, call, params, HISTORY, params->limit ? (size_t)params->limit : GW_HISTORY_MAX);
}
