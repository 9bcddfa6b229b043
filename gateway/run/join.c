/*
 * What a session is, for who comes later: its messages, and the runs that go on. The transcript is read on another
 * thread; if a run has ended meanwhile, it is read again, so that each run is either among the messages or among the
 * runs.
 */
#include "run/internal.h"

#include "protocol/json_tree.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SNAPSHOT_MESSAGES 100 /* PROTOCOL.md, Joining in the midst */
#define SNIPPET_MAX       200 /* characters */
#define SEARCH_DEFAULT    50

enum form { SUBSCRIBE, GET, HISTORY };

struct join {
    struct gw_chats *chats;
    struct gw_reply *call;
    enum form form;
    char key[GW_SESSION_KEY_LEN + 1];
    int64_t after_seq;
    size_t limit;
    unsigned ends; /* of the chat, when the reading began */
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

/* Those whose messages are on the disk: chat.message has told of them. */
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

static void write_answer(const struct join *join, const struct gw_story *story) {
    struct gw_chats *chats = join->chats;
    const struct gw_session *session = gw_session_find(chats->options.sessions, join->key);
    const struct gw_chat *chat = gw_chat_find(chats, join->key);
    const struct gw_messages messages = {
        .story = story, .after_seq = join->after_seq, .limit = join->limit, .open = is_open, .context = chats};
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
    }
    fm_json_object_end(w);
    gw_reply_end(join->call);
}

/* ---- reading ---- */

static void read_transcript(struct join *join);

static void on_viewed(void *context, const struct fm_error *error, const char *text, size_t len, bool cut) {
    struct join *join = context;
    struct json_object *records = NULL;
    struct gw_story story;
    struct fm_buf scratch;
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
    fm_buf_init(&scratch, GW_RECORD_MAX);
    if (error) {
        gw_reply_fail(join->call, GW_UNAVAILABLE, "the session can't be read: %s", error->detail);
    } else if (!fm_json_tree(text, len, &scratch, &records) || !gw_story_read(records, &story)) {
        gw_reply_fail(join->call, GW_INTERNAL, "out of memory");
    } else {
        write_answer(join, &story);
        gw_story_free(&story);
    }
    fm_buf_free(&scratch);
    json_object_put(records);
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

static void begin(struct gw_chats *chats, struct gw_reply *call, const struct gw_params *params, enum form form,
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
    begin(context, call, params, SUBSCRIBE, params->after_seq ? 0 : SNAPSHOT_MESSAGES);
}

void gw_join_get(void *context, struct gw_reply *call, const struct gw_params *params) {
    begin(context, call, params, GET, GW_HISTORY_MAX);
}

void gw_join_history(void *context, struct gw_reply *call, const struct gw_params *params) {
    begin(context, call, params, HISTORY, params->limit ? (size_t)params->limit : GW_HISTORY_MAX);
}

/* ---- search: all transcripts, one after the other ---- */

struct search {
    struct gw_chats *chats;
    struct gw_reply *call;
    char *query; /* words, each NUL-terminated */
    size_t words;
    char (*keys)[GW_SESSION_KEY_LEN + 1]; /* that are still to be read, the latest last */
    size_t key_count;
    size_t limit;
    size_t found;
    struct fm_json_writer *w;
};

/* Splits at spaces. */
static size_t split(char *query) {
    size_t words = 0;
    bool in_word = false;
    for (char *at = query; *at; at++) {
        bool space = *at == ' ';
        words += !space && !in_word;
        in_word = !space;
        *at = space ? '\0' : *at;
    }
    return words;
}

/* The word after `word`; the first one for NULL. */
static const char *word_after(const struct search *search, const char *word) {
    const char *at = word ? word + strlen(word) : search->query;
    while (!*at) {
        at++;
    }
    return at;
}

static bool has_all(const struct search *search, const char *text) {
    const char *word = NULL;
    for (size_t i = 0; i < search->words; i++) {
        word = word_after(search, word);
        if (!strcasestr(text, word)) {
            return false;
        }
    }
    return true;
}

/* Up to SNIPPET_MAX characters around the first word. */
static void write_snippet(const struct search *search, const char *text, struct fm_json_writer *w) {
    const char *hit = strcasestr(text, word_after(search, NULL));
    const char *start = hit && hit - text > SNIPPET_MAX / 4 ? hit - SNIPPET_MAX / 4 : text;
    char line[SNIPPET_MAX * 4 + 1];
    size_t len = 0;
    size_t characters = 0;
    while (start > text && ((unsigned char)*start & 0xc0) == 0x80) { /* to the beginning of a character */
        start--;
    }
    for (const char *at = start; *at; at++) {
        bool begins = ((unsigned char)*at & 0xc0) != 0x80;
        characters += begins;
        if (characters > SNIPPET_MAX) {
            break;
        }
        line[len++] = (unsigned char)*at < 0x20 ? ' ' : *at;
    }
    fm_json_string(w, line, len);
}

static void add_result(struct search *search, const struct gw_session *session, const char *text) {
    fm_json_object_begin(search->w);
    fm_json_key_str(search->w, "sessionKey", session->key);
    fm_json_key_str(search->w, "title", session->facts.title);
    fm_json_key_int(search->w, "updatedAt", session->facts.updated_ms);
    fm_json_key(search->w, "snippet");
    write_snippet(search, text, search->w);
    fm_json_object_end(search->w);
    search->found++;
}

static void look_at(struct search *search, const struct gw_session *session, const char *text, size_t len) {
    struct json_object *messages = NULL;
    struct fm_buf scratch;
    fm_buf_init(&scratch, GW_RECORD_MAX);
    bool read = fm_json_tree(text, len, &scratch, &messages);
    const char *hit = NULL;
    for (size_t i = 0; read && !hit && i < json_object_array_length(messages); i++) {
        const char *content = gw_text_of(json_object_array_get_idx(messages, i), "content");
        hit = has_all(search, content) ? content : NULL;
    }
    if (hit || has_all(search, session->facts.title)) {
        add_result(search, session, hit ? hit : "");
    }
    fm_buf_free(&scratch);
    json_object_put(messages);
}

static void search_next(struct search *search);

static void on_searched(void *context, const struct fm_error *error, const char *text, size_t len, bool cut) {
    struct search *search = context;
    const char *key = search->keys[--search->key_count];
    const struct gw_session *session = gw_session_find(search->chats->options.sessions, key);
    (void)cut;
    if (!error && session) {
        look_at(search, session, text, len);
    }
    search_next(search);
}

static void search_end(struct search *search) {
    fm_json_array_end(search->w);
    fm_json_object_end(search->w);
    gw_reply_end(search->call);
    free(search->keys);
    free(search->query);
    free(search);
}

static void search_next(struct search *search) {
    const struct gw_view view = {.form = GW_VIEW_MESSAGES};
    struct fm_error error;
    while (search->key_count > 0 && search->found < search->limit) {
        const char *key = search->keys[search->key_count - 1];
        if (gw_session_view(search->chats->options.sessions, key, &view, on_searched, search, &error) == FM_OK) {
            return;
        }
        search->key_count--; /* it is gone */
    }
    search_end(search);
}

static bool count_session(void *context, const struct gw_session *session) {
    struct search *search = context;
    (void)session;
    search->key_count++;
    return true;
}

/* The latest one goes to the end of the list, which is read from there. */
static bool note_session(void *context, const struct gw_session *session) {
    struct search *search = context;
    memcpy(search->keys[--search->key_count], session->key, sizeof session->key);
    return true;
}

void gw_join_search(void *context, struct gw_reply *call, const struct gw_params *params) {
    struct gw_chats *chats = context;
    struct search *search = calloc(1, sizeof *search);
    if (search) {
        *search = (struct search){.chats = chats, .call = call, .query = strdup(params->query.text)};
    }
    bool ok = search && search->query && gw_sessions_each(chats->options.sessions, count_session, search);
    size_t count = ok ? search->key_count : 0;
    if (ok) {
        search->keys = calloc(count + 1, sizeof *search->keys);
        ok = search->keys && gw_sessions_each(chats->options.sessions, note_session, search);
    }
    if (!ok) {
        if (search) {
            free(search->keys);
            free(search->query);
        }
        free(search);
        gw_reply_fail(call, GW_INTERNAL, "out of memory");
        return;
    }
    search->words = split(search->query);
    search->key_count = search->words ? count : 0;
    search->limit = params->limit ? (size_t)params->limit : SEARCH_DEFAULT;
    search->w = gw_reply_begin(call);
    fm_json_object_begin(search->w);
    fm_json_key(search->w, "results");
    fm_json_array_begin(search->w);
    search_next(search);
}
