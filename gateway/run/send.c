/*
 * Chats and their queues. chat.send is answered when the message is on the disk. The message waits while another run of
 * its session is in progress. The first use of a session reads its transcript, for the requestKeys that were used
 * before.
 */
#include "run/internal.h"

#include "base/hash.h"
#include "base/hex.h"
#include "base/platform.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_MAX (4u << 20) /* bytes of an answer's text: the most that the helper gives (PROTOCOL.md) */

/* A message that waits until its chat is loaded. */
struct gw_pending_send {
    struct gw_pending_send *next;
    struct gw_reply *call;
    char *message;
    size_t len;
    char request_key[GW_REQUEST_KEY_LEN + 1];
};

/* ---- chats ---- */

struct gw_chat *gw_chat_find(const struct gw_chats *chats, const char *key) {
    struct gw_chat *chat = chats->first;
    while (chat && strcmp(chat->key, key) != 0) {
        chat = chat->next;
    }
    return chat;
}

struct gw_chat *gw_chat_of(struct gw_chats *chats, const char *key) {
    struct gw_chat *chat = gw_chat_find(chats, key);
    if (chat) {
        return chat;
    }
    chat = calloc(1, sizeof *chat);
    if (chat) {
        chat->chats = chats;
        chat->keys = json_object_new_object();
        snprintf(chat->key, sizeof chat->key, "%s", key);
        chat->next = chats->first;
        chats->first = chat;
    }
    return chat;
}

static void free_chat(struct gw_chat *chat) {
    struct gw_chat **at = &chat->chats->first;
    while (*at != chat) {
        at = &(*at)->next;
    }
    *at = chat->next;
    json_object_put(chat->keys);
    free(chat);
}

struct gw_run *gw_run_find(const struct gw_chats *chats, const char *run_id) {
    for (const struct gw_chat *chat = chats->first; chat; chat = chat->next) {
        for (struct gw_run *run = chat->runs; run; run = run->next) {
            if (strcmp(run->id, run_id) == 0) {
                return run;
            }
        }
    }
    return NULL;
}

/* ---- requests that come again ---- */

/* Makes a hash with the length, to recognise a message that the user sends again. */
static void hash_message(const char *text, size_t len, char hash[40]) {
    snprintf(hash, 40, "%016" PRIx64 "-%zu", fm_hash(FM_HASH_START, text, len), len);
}

static void note_key(struct gw_chat *chat, const char *key, const char *run_id, const char *message, size_t len) {
    char hash[40];
    struct json_object *entry = json_object_new_object();
    hash_message(message, len, hash);
    json_object_object_add(entry, "runId", json_object_new_string(run_id));
    json_object_object_add(entry, "message", json_object_new_string(hash));
    json_object_object_add(chat->keys, key, entry);
}

static void note_keys(struct gw_chat *chat, const struct gw_story *story) {
    for (size_t i = 0; i < story->count; i++) {
        const struct gw_story_run *run = &story->runs[i];
        const char *key = gw_text_of(run->started, "requestKey");
        struct json_object *content = run->user ? json_object_object_get(run->user, "content") : NULL;
        if (*key && content) {
            note_key(chat, key, run->id, json_object_get_string(content), (size_t)json_object_get_string_len(content));
        }
    }
    chat->browsed |= story->browsed;
}

/* ---- a message ---- */

static void answer_send(struct gw_reply *call, const char *run_id, bool queued) {
    struct fm_json_writer *w = gw_reply_begin(call);
    fm_json_object_begin(w);
    fm_json_key_str(w, "runId", run_id);
    fm_json_key_bool(w, "queued", queued);
    fm_json_object_end(w);
    gw_reply_end(call);
}

/* A message whose run_started is missing belongs to no run: a restart would not find it. */
static void on_started_written(void *context, const struct fm_error *error) {
    struct gw_run *run = context;
    run->writes--;
    run->lost |= error != NULL;
    if (run->over) {
        gw_run_free(run);
    }
}

static void on_message_written(void *context, const struct fm_error *error) {
    struct gw_run *run = context;
    struct gw_chat *chat = run->chat;
    bool queued = chat->runs != run;
    run->writes--;
    if (error || run->lost) {
        const char *why = error ? error->detail : "the disk failed for a moment";
        for (size_t i = 0; i < run->send_count; i++) {
            gw_reply_fail(run->sends[i], GW_UNAVAILABLE, "the message was not taken: %s", why);
        }
        run->send_count = 0;
        json_object_object_del(chat->keys, run->request_key);
        gw_run_leave(run);
        return;
    }
    struct fm_json_writer *w = gw_tell_begin(run, "chat.message");
    fm_json_key(w, "content");
    fm_json_string(w, run->message, run->message_len);
    if (run->request_key[0]) {
        fm_json_key_str(w, "requestKey", run->request_key);
    }
    fm_json_key_bool(w, "queued", queued);
    fm_json_key_int(w, "time", run->time_ms);
    (void)gw_tell_end(run);
    for (size_t i = 0; i < run->send_count; i++) {
        answer_send(run->sends[i], run->id, queued);
    }
    run->send_count = 0;
    run->state = GW_RUN_QUEUED;
    gw_tell_changed(chat->chats, chat->key);
    if (run->aborting) {
        run->taken_back = queued && !chat->chats->stopping;
        gw_run_fail(run, NULL);
    } else if (!queued) {
        gw_run_begin(run);
    }
}

static struct gw_run *new_run(struct gw_chat *chat, const struct gw_pending_send *send) {
    struct gw_run *run = calloc(1, sizeof *run);
    char *message = malloc(send->len + 1);
    unsigned char bytes[GW_RUN_ID_LEN / 2];
    if (!run || !message) {
        free(run);
        free(message);
        return NULL;
    }
    memcpy(message, send->message, send->len);
    message[send->len] = '\0';
    fm_random(bytes, sizeof bytes);
    fm_hex(run->id, bytes, sizeof bytes);
    run->id[GW_RUN_ID_LEN] = '\0';
    memcpy(run->request_key, send->request_key, sizeof run->request_key);
    run->chat = chat;
    run->chats = chat->chats;
    run->message = message;
    run->message_len = send->len;
    run->time_ms = gw_wall_ms();
    fm_buf_init(&run->text, ANSWER_MAX);
    fm_buf_init(&run->recalled, ANSWER_MAX);
    struct gw_run **end = &chat->runs;
    while (*end) {
        end = &(*end)->next;
    }
    *end = run;
    return run;
}

static enum fm_code record_message(struct gw_run *run, struct fm_error *error) {
    struct gw_sessions *sessions = run->chat->chats->options.sessions;
    struct fm_json_writer *w = gw_session_begin(sessions, run->chat->key, GW_RECORD_RUN_STARTED, run->id, error);
    if (!w) {
        return error->code;
    }
    if (run->request_key[0]) {
        fm_json_key_str(w, "requestKey", run->request_key);
    }
    enum fm_code code = gw_session_end(sessions, on_started_written, run, NULL, error);
    run->writes += code == FM_OK;
    w = code == FM_OK ? gw_session_begin(sessions, run->chat->key, GW_RECORD_MESSAGE, run->id, error) : NULL;
    if (!w) {
        return error->code;
    }
    fm_json_key_str(w, "role", "user");
    fm_json_key(w, "content");
    fm_json_string(w, run->message, run->message_len);
    code = gw_session_end(sessions, on_message_written, run, NULL, error);
    run->writes += code == FM_OK;
    return code;
}

/* If the request was seen before, answers with that request's run. False: the request is new. */
static bool answer_again(struct gw_chat *chat, const struct gw_pending_send *send) {
    struct json_object *entry = NULL;
    char hash[40];
    if (!send->request_key[0] || !json_object_object_get_ex(chat->keys, send->request_key, &entry)) {
        return false;
    }
    hash_message(send->message, send->len, hash);
    if (strcmp(gw_text_of(entry, "message"), hash) != 0) {
        gw_reply_fail(send->call, GW_INVALID_PARAMS, "requestKey: another message of this session has it");
        return true;
    }
    struct gw_run *run = gw_run_find(chat->chats, gw_text_of(entry, "runId"));
    if (run && run->state == GW_RUN_WRITING && run->send_count < sizeof run->sends / sizeof run->sends[0]) {
        run->sends[run->send_count++] = send->call;
    } else if (run && run->state == GW_RUN_WRITING) {
        gw_reply_fail(send->call, GW_BUSY, "the message is being written: ask again in a moment");
    } else {
        answer_send(send->call, gw_text_of(entry, "runId"), run && run->state == GW_RUN_QUEUED);
    }
    return true;
}

/* Answers the call in every case, either at once or when the message is written. */
static void accept_message(struct gw_chat *chat, const struct gw_pending_send *send) {
    size_t waiting = 0;
    struct fm_error error;
    if (chat->deleting || chat->chats->stopping) {
        gw_reply_fail(send->call, GW_UNAVAILABLE, "the %s: no message is taken any more",
                      chat->deleting ? "session is being deleted" : "gateway is being stopped");
        return;
    }
    if (answer_again(chat, send)) {
        return;
    }
    for (const struct gw_run *run = chat->runs; run; run = run->next) {
        waiting += run != chat->runs;
    }
    if (waiting >= GW_QUEUE_MAX) {
        gw_reply_fail(send->call, GW_BUSY, "%u messages wait in this session already: send it again later",
                      GW_QUEUE_MAX);
        return;
    }
    struct gw_run *run = new_run(chat, send);
    if (!run) {
        gw_reply_fail(send->call, GW_INTERNAL, "out of memory");
        return;
    }
    run->sends[run->send_count++] = send->call;
    if (run->request_key[0]) {
        note_key(chat, run->request_key, run->id, run->message, run->message_len);
    }
    if (record_message(run, &error) != FM_OK) {
        gw_reply_fail(run->sends[0], GW_UNAVAILABLE, "the message was not taken: %s", error.detail);
        run->send_count = 0;
        json_object_object_del(chat->keys, run->request_key);
        gw_run_leave(run);
    }
}

/* ---- the first use ---- */

static void free_pending(struct gw_pending_send *send) {
    free(send->message);
    free(send);
}

static void on_loaded(void *context, const struct fm_error *error, const char *text, size_t len, bool cut) {
    struct gw_chat *chat = context;
    struct gw_story story;
    (void)cut;
    chat->loaded = !error && gw_story_read(text, len, &story);
    if (chat->loaded) {
        note_keys(chat, &story);
        gw_story_free(&story);
    }
    struct gw_pending_send *send = chat->pending;
    chat->pending = NULL;
    while (send) {
        struct gw_pending_send *after = send->next;
        if (chat->loaded) {
            accept_message(chat, send);
        } else {
            gw_reply_fail(send->call, GW_UNAVAILABLE, "the session can't be read: %s",
                          error ? error->detail : "no memory");
        }
        free_pending(send);
        send = after;
    }
}

/* Queues the message until the chat is loaded. */
static enum fm_code load_chat(struct gw_chat *chat, struct gw_pending_send *send, struct fm_error *error) {
    const struct gw_view view = {.form = GW_VIEW_RECORDS};
    struct gw_pending_send **end = &chat->pending;
    while (*end) {
        end = &(*end)->next;
    }
    enum fm_code code = chat->pending
                            ? FM_OK
                            : gw_session_view(chat->chats->options.sessions, chat->key, &view, on_loaded, chat, error);
    if (code == FM_OK) {
        *end = send;
    }
    return code;
}

void gw_send(void *context, struct gw_reply *call, const struct gw_params *params) {
    struct gw_chats *chats = context;
    struct fm_error error;
    if (!gw_session_find(chats->options.sessions, params->session_key.text)) {
        gw_reply_fail(call, GW_NOT_FOUND, "sessionKey: there is no such session; sessions.list has them");
        return;
    }
    struct gw_chat *chat = gw_chat_of(chats, params->session_key.text);
    struct gw_pending_send *send = calloc(1, sizeof *send);
    char *message = malloc(params->message.len);
    if (!chat || !send || !message) {
        free(send);
        free(message);
        gw_reply_fail(call, GW_INTERNAL, "out of memory");
        return;
    }
    memcpy(message, params->message.text, params->message.len);
    *send = (struct gw_pending_send){.call = call, .message = message, .len = params->message.len};
    if (params->request_key.text) {
        memcpy(send->request_key, params->request_key.text, params->request_key.len);
    }
    if (chat->loaded) {
        accept_message(chat, send);
        free_pending(send);
    } else if (load_chat(chat, send, &error) != FM_OK) {
        gw_reply_fail(call, GW_UNAVAILABLE, "the session can't be read: %s", error.detail);
        free_pending(send);
    }
}

/* ---- the end of a run ---- */

static void free_run(struct gw_run *run) {
    if (run->has_agent) {
        gw_agent_free(&run->agent);
    }
    gw_tool_call_free(run->call);
    gw_live_free(run);
    fm_buf_free(&run->recalled);
    json_object_put(run->items);
    free(run->message);
    free(run);
}

void gw_runs_reap(struct gw_chats *chats) {
    while (chats->dead) {
        struct gw_run *run = chats->dead;
        chats->dead = run->next;
        free_run(run);
    }
}

static void on_reap(uv_timer_t *timer) {
    gw_runs_reap(timer->data);
}

void gw_run_free(struct gw_run *run) {
    struct gw_chats *chats = run->chats;
    if (run->writes == 0) {
        run->next = chats->dead;
        chats->dead = run;
        uv_timer_start(&chats->reaper, on_reap, 0, 0);
    }
}

static void on_deleted(void *context, const struct fm_error *error) {
    struct gw_chat *chat = context;
    struct gw_chats *chats = chat->chats;
    struct gw_reply *call = chat->deleter;
    struct fm_error fault;
    chat->deleter = NULL;
    if (error) {
        chat->deleting = chat->removing = false;
        gw_reply_fail(call, GW_UNAVAILABLE, "the session is still there: %s", error->detail);
        return;
    }
    struct fm_json_writer *w = gw_event_begin(chats->options.rpc, "sessions.changed");
    fm_json_key_bool(w, "deleted", true);
    (void)gw_event_end(chats->options.rpc, chat->key);
    gw_tell_ok(call, true);
    if (chats->options.memory) {
        (void)!gw_memory_forget(chats->options.memory, chat->key, NULL, NULL, &fault);
    }
    free_chat(chat);
}

static void delete_now(struct gw_chat *chat) {
    struct fm_error error;
    if (chat->removing) {
        return;
    }
    chat->removing = true;
    if (gw_session_delete(chat->chats->options.sessions, chat->key, on_deleted, chat, &error) != FM_OK) {
        chat->deleting = chat->removing = false;
        gw_reply_fail(chat->deleter, GW_UNAVAILABLE, "the session is still there: %s", error.detail);
        chat->deleter = NULL;
    }
}

void gw_delete(void *context, struct gw_reply *call, const struct gw_params *params) {
    struct gw_chats *chats = context;
    if (!gw_session_find(chats->options.sessions, params->session_key.text)) {
        gw_reply_fail(call, GW_NOT_FOUND, "sessionKey: there is no such session; sessions.list has them");
        return;
    }
    struct gw_chat *chat = gw_chat_of(chats, params->session_key.text);
    if (!chat || chat->deleting) {
        gw_reply_fail(call, GW_BUSY, "the session is being deleted already");
        return;
    }
    chat->deleting = true;
    chat->deleter = call;
    for (struct gw_run *run = chat->runs, *after; run; run = after) {
        after = run->next;
        gw_run_abort(run);
    }
    if (!chat->runs) {
        delete_now(chat);
    }
}

static void on_stopped(uv_timer_t *timer) {
    struct gw_chats *chats = timer->data;
    chats->stopped(chats->stopped_context);
}

static void end_stop(struct gw_chats *chats) {
    bool open = false;
    for (const struct gw_chat *chat = chats->first; chat; chat = chat->next) {
        open |= chat->runs != NULL;
    }
    if (!open && chats->stopped) { /* called later, because the caller may still use the chats */
        uv_timer_start(&chats->expiry, on_stopped, 0, 0);
    }
}

void gw_run_leave(struct gw_run *run) {
    struct gw_chat *chat = run->chat;
    struct gw_chats *chats = chat->chats;
    bool first = chat->runs == run;
    struct gw_run **at = &chat->runs;
    while (*at != run) {
        at = &(*at)->next;
    }
    *at = run->next;
    chat->ends++;
    run->over = true;
    gw_run_free(run);
    gw_tell_changed(chats, chat->key);
    if (chat->deleting && !chat->runs && chat->deleter) {
        delete_now(chat);
    } else if (first && !chat->deleting && !chats->stopping && chat->runs && chat->runs->state == GW_RUN_QUEUED) {
        gw_run_begin(chat->runs);
    }
    if (chats->stopping) {
        end_stop(chats);
    }
}
