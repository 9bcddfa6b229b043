/* Connects the parts of a run with the gateway's methods; the short methods are here. */
#include "run/internal.h"

#include "base/clock.h"
#include "base/utf8.h"
#include "protocol/base64.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOOLS_MAX        (1u << 20)
#define LIST_MAX         (GW_ANSWER_MAX / 4 * 3) /* bytes of the sessions in sessions.list: approvals need room too */
#define TITLE_CHARACTERS 200

/* ---- agents and sessions ---- */

static void list_agents(void *context, struct gw_reply *call, const struct gw_params *params) {
    struct gw_chats *chats = context;
    struct gw_agent agent;
    struct fm_error error;
    (void)params;
    if (gw_agent_read(chats->workspace, chats->default_agent, &agent, &error) != FM_OK) {
        gw_reply_fail(call, GW_UNAVAILABLE, "%s", error.detail);
        return;
    }
    char model[GW_MODEL_MAX + 16];
    snprintf(model, sizeof model, "%s/%s", gw_provider_name(agent.model.provider), agent.model.name);
    struct fm_json_writer *w = gw_reply_begin(call);
    fm_json_object_begin(w);
    fm_json_key(w, "agents");
    fm_json_array_begin(w);
    fm_json_object_begin(w);
    fm_json_key_str(w, "id", chats->default_agent);
    fm_json_key_str(w, "name", agent.name);
    fm_json_key_str(w, "model", model);
    fm_json_object_end(w);
    fm_json_array_end(w);
    fm_json_object_end(w);
    gw_reply_end(call);
    gw_agent_free(&agent);
}

/* A call that waits for the disk. */
struct pending {
    struct gw_chats *chats;
    struct gw_reply *call;
    char key[GW_SESSION_KEY_LEN + 1]; /* the key of the call's session; "": it has none yet */
};

/* NULL: out of memory, and the call is answered with that error. */
static struct pending *pend(struct gw_chats *chats, struct gw_reply *call, const char *key) {
    struct pending *pending = calloc(1, sizeof *pending);
    if (!pending) {
        gw_reply_fail(call, GW_INTERNAL, "out of memory");
        return NULL;
    }
    pending->chats = chats;
    pending->call = call;
    snprintf(pending->key, sizeof pending->key, "%s", key);
    return pending;
}

static void on_created(void *context, const struct fm_error *error, const struct gw_session *session) {
    struct pending *creation = context;
    if (error) {
        gw_reply_fail(creation->call, GW_UNAVAILABLE, "the session was not made: %s", error->detail);
    } else {
        struct fm_json_writer *w = gw_reply_begin(creation->call);
        fm_json_object_begin(w);
        fm_json_key_str(w, "sessionKey", session->key);
        fm_json_object_end(w);
        gw_reply_end(creation->call);
        gw_tell_changed(creation->chats, session->key);
    }
    free(creation);
}

static void create_session(void *context, struct gw_reply *call, const struct gw_params *params) {
    struct gw_chats *chats = context;
    const char *agent = params->agent_id.text ? params->agent_id.text : chats->default_agent;
    struct fm_error error;
    if (strcmp(agent, chats->default_agent) != 0) {
        gw_reply_fail(call, GW_NOT_FOUND, "agentId: there is no such agent; agents.list has them");
        return;
    }
    struct pending *creation = pend(chats, call, "");
    if (!creation) {
        return;
    }
    enum fm_code code = gw_session_create(chats->options.sessions, agent, on_created, creation, &error);
    if (code != FM_OK) {
        free(creation);
        gw_reply_fail(call, code == FM_RATE_LIMITED ? GW_BUSY : GW_UNAVAILABLE, "%s", error.detail);
    }
}

struct listing {
    struct gw_chats *chats;
    struct fm_json_writer *w;
};

/* The latest sessions come first, so the sessions that do not fit are those that were not used for the longest time. */
static bool list_session(void *context, const struct gw_session *session) {
    struct listing *listing = context;
    gw_tell_session(listing->chats, session, listing->w);
    return listing->w->buf->len < LIST_MAX;
}

static void list_sessions(void *context, struct gw_reply *call, const struct gw_params *params) {
    struct gw_chats *chats = context;
    struct fm_json_writer *w = gw_reply_begin(call);
    struct listing listing = {chats, w};
    (void)params;
    fm_json_object_begin(w);
    fm_json_key(w, "sessions");
    fm_json_array_begin(w);
    bool ok = gw_sessions_each(chats->options.sessions, list_session, &listing);
    fm_json_array_end(w);
    fm_json_key(w, "approvals");
    fm_json_array_begin(w);
    for (const struct gw_chat *chat = chats->first; chat; chat = chat->next) {
        const struct gw_run *run = chat->runs;
        if (run && run->state == GW_RUN_GOING && run->phase == GW_PHASE_APPROVAL) {
            fm_json_object_begin(w);
            gw_tell_approval(run, true, w);
            fm_json_object_end(w);
        }
    }
    fm_json_array_end(w);
    fm_json_key_int(w, "seq", chats->options.rpc->seq);
    fm_json_object_end(w);
    if (ok) {
        gw_reply_end(call);
    } else {
        gw_reply_fail(call, GW_INTERNAL, "out of memory");
    }
}

static void on_renamed(void *context, const struct fm_error *error) {
    struct pending *rename = context;
    const struct gw_session *session = gw_session_find(rename->chats->options.sessions, rename->key);
    if (error) {
        gw_reply_fail(rename->call, GW_UNAVAILABLE, "the title was not kept: %s", error->detail);
    } else if (!session) {
        gw_reply_fail(rename->call, GW_NOT_FOUND, "sessionKey: the session was deleted");
    } else {
        struct fm_json_writer *w = gw_reply_begin(rename->call);
        fm_json_object_begin(w);
        fm_json_key(w, "session");
        gw_tell_session(rename->chats, session, w);
        fm_json_object_end(w);
        gw_reply_end(rename->call);
        gw_tell_changed(rename->chats, rename->key);
    }
    free(rename);
}

static void rename_session(void *context, struct gw_reply *call, const struct gw_params *params) {
    struct gw_chats *chats = context;
    struct fm_error error;
    if (fm_utf8_characters(params->title.text, params->title.len) > TITLE_CHARACTERS) {
        gw_reply_fail(call, GW_INVALID_PARAMS, "title: must have %d characters at most", TITLE_CHARACTERS);
        return;
    }
    struct pending *rename = pend(chats, call, params->session_key.text);
    if (!rename) {
        return;
    }
    enum fm_code code =
        gw_session_rename(chats->options.sessions, rename->key, params->title.text, on_renamed, rename, &error);
    if (code != FM_OK) {
        free(rename);
        gw_reply_fail(call,
                      code == FM_NOT_FOUND         ? GW_NOT_FOUND
                      : code == FM_INVALID_REQUEST ? GW_INVALID_PARAMS
                                                   : GW_UNAVAILABLE,
                      "%s%s", code == FM_INVALID_REQUEST ? "title: " : "", error.detail);
    }
}

/* ---- blobs ---- */

static void on_blob(void *context, const struct fm_error *error, const void *bytes, size_t len) {
    struct pending *get = context;
    if (error) {
        gw_reply_fail(get->call, error->code == FM_NOT_FOUND ? GW_NOT_FOUND : GW_UNAVAILABLE, "blobId: %s",
                      error->detail);
        free(get);
        return;
    }
    const unsigned char *data = bytes;
    bool png = len > 8 && memcmp(data, "\x89PNG", 4) == 0;
    bool jpeg = len > 3 && data[0] == 0xff && data[1] == 0xd8;
    struct fm_json_writer *w = gw_reply_begin(get->call);
    fm_json_object_begin(w);
    fm_json_key_str(w, "mimeType", png ? "image/png" : jpeg ? "image/jpeg" : "application/octet-stream");
    fm_json_key(w, "data");
    fm_json_raw(w, "\"", 1); /* begins a value that is written in pieces */
    fm_base64_append(w->buf, bytes, len);
    fm_buf_append_char(w->buf, '"');
    fm_json_object_end(w);
    gw_reply_end(get->call);
    free(get);
}

static void get_blob(void *context, struct gw_reply *call, const struct gw_params *params) {
    struct gw_chats *chats = context;
    struct fm_error error;
    struct pending *get = pend(chats, call, "");
    if (get && gw_session_attachment(chats->options.sessions, params->blob_id.text, on_blob, get, &error) != FM_OK) {
        free(get);
        gw_reply_fail(call, error.code == FM_NOT_FOUND ? GW_NOT_FOUND : GW_UNAVAILABLE, "blobId: %s", error.detail);
    }
}

/* ---- a run in progress ---- */

static void abort_run(void *context, struct gw_reply *call, const struct gw_params *params) {
    struct gw_run *run = gw_run_find(context, params->run_id.text);
    if (!run) {
        gw_reply_fail(call, GW_NOT_FOUND, "runId: no such run is open");
    } else if (run->abort_count == sizeof run->aborts / sizeof run->aborts[0]) {
        gw_reply_fail(call, GW_BUSY, "the run is being stopped already");
    } else {
        run->aborts[run->abort_count++] = call;
        if (!run->aborting) {
            gw_run_abort(run);
        }
    }
}

static struct gw_run *run_of_approval(const struct gw_chats *chats, const char *id) {
    for (const struct gw_chat *chat = chats->first; chat; chat = chat->next) {
        if (chat->runs && chat->runs->approval_id[0] && strcmp(chat->runs->approval_id, id) == 0) {
            return chat->runs;
        }
    }
    return NULL;
}

/*
 * Decides about an approval. The call is answered once the decision is on the disk (calls.c), or here if the decision
 * came too late.
 */
static void decide(struct gw_chats *chats, struct gw_reply *call, const char *id, bool approved, const char *reason) {
    struct gw_run *run = run_of_approval(chats, id);
    if (!run || run->answerer || run->phase != GW_PHASE_APPROVAL) {
        gw_tell_ok(call, false);
        return;
    }
    run->answerer = call;
    if (!gw_approval_answer(chats->approvals, id, approved, reason, fm_now_ms())) {
        run->answerer = NULL;
        gw_tell_ok(call, false);
    }
}

static void approve(void *context, struct gw_reply *call, const struct gw_params *params) {
    struct gw_chats *chats = context;
    const char *id = params->approval_id.text;
    struct gw_run *run = run_of_approval(chats, id);
    struct fm_error error;
    if (params->remember && run && !run->can_remember) {
        gw_reply_fail(call, GW_INVALID_PARAMS, "remember: this call is always asked for");
        return;
    }
    gw_approvals_expire(chats->approvals, fm_now_ms()); /* an approval that is open now stays open during this call */
    if (params->remember && run && run->phase == GW_PHASE_APPROVAL && !run->answerer) {
        struct gw_tool_call_request request;
        gw_tool_call_request(run->call, &request);
        if (gw_rules_add(chats->rules, request.tool, request.folder, gw_calls_input(run), &error) != FM_OK) {
            gw_reply_fail(call, GW_UNAVAILABLE, "the rule was not kept, and nothing was approved: %s", error.detail);
            return;
        }
    }
    decide(chats, call, id, true, "");
}

static void deny(void *context, struct gw_reply *call, const struct gw_params *params) {
    const char *reason = params->reason.text ? params->reason.text : "";
    decide(context, call, params->approval_id.text, false, reason);
}

/* ---- the whole ---- */

/* Writes the table of tools for models: [{"type":"function","name","description","parameters"}]. */
static bool write_tools(struct gw_chats *chats) {
    struct fm_json_writer w = fm_json_writer_on(&chats->tools);
    fm_json_array_begin(&w);
    for (size_t i = 0; i < gw_tools_count(); i++) {
        const struct gw_tool *tool = gw_tools_at(i);
        fm_json_object_begin(&w);
        fm_json_key_str(&w, "type", "function");
        fm_json_key_str(&w, "name", tool->name);
        fm_json_key_str(&w, "description", tool->description);
        fm_json_key(&w, "parameters");
        fm_json_raw(&w, tool->input_schema, strlen(tool->input_schema));
        fm_json_key_bool(&w, "strict", false);
        fm_json_object_end(&w);
    }
    fm_json_array_end(&w);
    return !chats->tools.failed;
}

static void set_methods(struct gw_chats *chats) {
    static const struct {
        enum gw_method method;
        gw_handler *handle;
    } rows[] = {
        {GW_AGENTS_LIST, list_agents},
        {GW_SESSIONS_CREATE, create_session},
        {GW_SESSIONS_LIST, list_sessions},
        {GW_SESSIONS_GET, gw_join_get},
        {GW_SESSIONS_SUBSCRIBE, gw_join_subscribe},
        {GW_SESSIONS_SEARCH, gw_join_search},
        {GW_SESSIONS_RENAME, rename_session},
        {GW_SESSIONS_DELETE, gw_delete},
        {GW_CHAT_SEND, gw_send},
        {GW_CHAT_HISTORY, gw_join_history},
        {GW_CHAT_ABORT, abort_run},
        {GW_EXEC_APPROVE, approve},
        {GW_EXEC_DENY, deny},
        {GW_BLOBS_GET, get_blob},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        gw_app_set(chats->options.rpc, rows[i].method, rows[i].handle, chats);
    }
}

static void free_parts(struct gw_chats *chats) {
    if (chats->approvals) {
        gw_approvals_free(chats->approvals);
    }
    gw_rules_free(chats->rules);
    fm_buf_free(&chats->tools);
    free(chats->workspace);
    free(chats->default_agent);
    free(chats->folder);
}

static bool note_event(void *context, const struct gw_session *session) {
    int64_t *event = context;
    *event = session->facts.event > *event ? session->facts.event : *event;
    return true;
}

/*
 * Returns a number above those of all events of earlier processes: from the clock, or from the transcripts if the clock
 * was set back.
 */
static int64_t first_seq(const struct gw_sessions *sessions) {
    int64_t noted = 0;
    int64_t now = gw_wall_ms() * GW_EVENTS_A_MS;
    (void)!gw_sessions_each(sessions, note_event, &noted);
    return noted && noted + GW_SEQ_PROMISE > now ? noted + GW_SEQ_PROMISE : now;
}

enum fm_code gw_chats_new(const struct gw_chats_options *options, struct gw_chats **out, struct fm_error *error) {
    struct gw_chats *chats = calloc(1, sizeof *chats);
    if (!chats) {
        return fm_fail_no_memory(error);
    }
    chats->options = *options;
    chats->workspace = strdup(options->workspace);
    chats->default_agent = strdup(options->default_agent);
    chats->folder = strdup(options->folder);
    chats->approvals = gw_approvals_new(options->approval_timeout_ms);
    fm_buf_init(&chats->tools, TOOLS_MAX);
    bool ok = chats->workspace && chats->default_agent && chats->folder && chats->approvals && write_tools(chats);
    enum fm_code code = ok ? gw_rules_open(options->rules, &chats->rules, error) : fm_fail_no_memory(error);
    if (code != FM_OK) {
        free_parts(chats);
        free(chats);
        return code;
    }
    uv_timer_init(options->loop, &chats->expiry);
    uv_timer_init(options->loop, &chats->reaper);
    chats->expiry.data = chats->reaper.data = chats;
    gw_event_start_above(options->rpc, first_seq(options->sessions));
    set_methods(chats);
    *out = chats;
    return FM_OK;
}

void gw_chats_stop(struct gw_chats *chats, void (*stopped)(void *context), void *context) {
    bool open = false;
    chats->stopping = true;
    for (struct gw_chat *chat = chats->first; chat; chat = chat->next) {
        open |= chat->runs != NULL;
    }
    if (!open) {
        stopped(context);
        return;
    }
    chats->stopped = stopped;
    chats->stopped_context = context;
    for (struct gw_chat *chat = chats->first; chat; chat = chat->next) {
        for (struct gw_run *run = chat->runs, *after; run; run = after) {
            after = run->next;
            if (!run->aborting) {
                gw_run_abort(run);
            }
        }
    }
}

/* At this point, the journal has called back for everything. */
static void on_closed(uv_handle_t *handle) {
    struct gw_chats *chats = handle->data;
    gw_runs_reap(chats);
    while (chats->first) {
        struct gw_chat *chat = chats->first;
        chats->first = chat->next;
        json_object_put(chat->keys);
        free(chat);
    }
    free_parts(chats);
    free(chats);
}

void gw_chats_free(struct gw_chats *chats) {
    uv_close((uv_handle_t *)&chats->expiry, NULL);
    uv_close((uv_handle_t *)&chats->reaper, on_closed);
}
