/*
 * What the files of run/ share. Calls go down: chats.c, join.c, send.c, run.c, calls.c, reading.c, tell.c, live.c.
 *
 * A chat owns a run from the run's message until its end is reported. `writes` counts the run's writes that the journal
 * has not finished. A run whose end is reported is freed once `writes` is 0.
 */
#ifndef GW_RUN_INTERNAL_H
#define GW_RUN_INTERNAL_H

#include "run/approval.h"
#include "run/chats.h"
#include "run/rules.h"
#include "sessions/story.h"

#define GW_RUN_ID_LEN      32u
#define GW_CALL_ID_LEN     16u
#define GW_REQUEST_KEY_LEN 32u

struct gw_run;

/* A part of an answer, as it is now: text, or a call of a tool. */
struct gw_part {
    bool tool;
    struct fm_buf text; /* the text, or the tool's output */
    char call_id[GW_CALL_ID_LEN + 1];
    char *tool_name;
    char *summary;
    char *details;     /* JSON */
    const char *state; /* of a tool: PROTOCOL.md, Shapes; a literal */
    bool has_exit_code;
    int exit_code;
    bool truncated;
    int64_t duration_ms;       /* -1: it has not ended */
    struct fm_buf attachments; /* a JSON array; empty: none */
};

enum gw_run_state {
    GW_RUN_WRITING, /* the user's message is on its way to the disk */
    GW_RUN_QUEUED,
    GW_RUN_GOING,
    GW_RUN_ENDING, /* the run's end is on its way to the disk */
};

/* What a run in progress waits for. Each phase has its own way to end early. */
enum gw_run_phase {
    GW_PHASE_OTHER, /* the disk, or the memory: the next step checks `aborting` */
    GW_PHASE_TURN,
    GW_PHASE_APPROVAL,
    GW_PHASE_TOOL,
};

struct gw_run {
    struct gw_run *next; /* the next run of the chat; the first one is in progress */
    struct gw_chat *chat;
    struct gw_chats *chats; /* the chat may be gone when the last write is done */
    char id[GW_RUN_ID_LEN + 1];
    char request_key[GW_REQUEST_KEY_LEN + 1]; /* "": none */
    char *message;
    size_t message_len;
    int64_t time_ms; /* time of the run's message, since 1970 */
    enum gw_run_state state;
    enum gw_run_phase phase;
    bool aborting;
    bool taken_back; /* the run was aborted before it began */
    bool cut;        /* the last turn was ended by a limit */
    bool over;       /* the run's end is reported; the run is freed after its last write */
    unsigned writes;
    bool lost;                 /* a record of its message or of its answer could not be written */
    int64_t event;             /* the number of the event that will report its end */
    struct gw_reply *sends[4]; /* calls of chat.send with the run's requestKey that came during the write */
    size_t send_count;
    struct gw_reply *aborts[4];
    size_t abort_count;

    struct gw_agent agent;
    bool has_agent;
    char model[GW_MODEL_MAX + 16]; /* "local/default" */
    struct fm_buf recalled;        /* text for the instructions */
    struct gw_turn *turn;
    unsigned steps;
    struct gw_usage usage; /* sums of all turns */

    struct fm_buf text; /* of all steps */
    size_t step_start;  /* where in `text` the current step begins */
    struct gw_part *parts;
    size_t part_count;

    struct json_object *items; /* items of the step whose calls are run; owned */
    size_t item_index;
    unsigned call_number;
    struct gw_tool_call *call;
    char approval_id[GW_APPROVAL_ID_LEN + 1];
    int64_t approval_end_ms; /* since 1970 */
    bool can_remember;
    const char *allowed_by;    /* "user", "rule" or "none" */
    struct gw_reply *answerer; /* the user's answer, which is settled once it is on the disk */
    bool denied;
    int64_t tool_started_ms; /* fm_now_ms */
    struct gw_tool_outcome *outcome;

    const char *outcome_word; /* `outcome` of run_ended */
    char fault[640];          /* the text of chat.error */
};

/* A session that was used since the start. */
struct gw_chat {
    struct gw_chat *next;
    struct gw_chats *chats;
    char key[GW_SESSION_KEY_LEN + 1];
    struct gw_run *runs;
    bool loaded; /* its transcript was read: `browsed` and `keys` are set */
    bool browsed;
    struct json_object *keys;        /* {requestKey: {"runId","message"}}: a hash of the message; owned */
    struct gw_pending_send *pending; /* messages that wait until the chat is loaded; the oldest first */
    unsigned ends;                   /* how many runs have ended: shows a reader whether it missed one */
    struct gw_reply *deleter;
    bool deleting;
    bool removing; /* the journal is deleting the session */
};

struct gw_chats {
    struct gw_chats_options options;
    char *workspace;
    char *default_agent;
    char *folder;
    struct gw_rules *rules;
    struct gw_approvals *approvals;
    uv_timer_t expiry;
    uv_timer_t reaper;   /* frees dead runs when no function uses them any more */
    struct gw_run *dead; /* runs that are over and have no write left */
    struct gw_chat *first;
    bool stopping;
    void (*stopped)(void *context);
    void *stopped_context;
    struct fm_buf tools; /* the table of tools as JSON, for models */
};

/* ---- tell.c: events and shapes of PROTOCOL.md ---- */

/* The members of a Session; the session must be there. */
void gw_tell_session(const struct gw_chats *chats, const struct gw_session *session, struct fm_json_writer *w);

/* The members of an Approval that is open. */
void gw_tell_approval(const struct gw_run *run, bool with_session, struct fm_json_writer *w);

/* {inputTokens,outputTokens,costUsd?} */
void gw_tell_usage(const struct gw_usage *usage, bool is_free, struct fm_json_writer *w);

/* Sends sessions.changed. */
void gw_tell_changed(struct gw_chats *chats, const char *session_key);

/* Answers {"ok"}, and so settles the call. */
void gw_tell_ok(struct gw_reply *call, bool ok);

/* Begins an event of a run, with its runId. End it with gw_event_end(rpc, run->chat->key). */
struct fm_json_writer *gw_tell_begin(struct gw_run *run, const char *event);
int64_t gw_tell_end(struct gw_run *run);

/*
 * Appends a text to `out` after it went through the secrets filter. `out` is NUL-terminated afterwards. False: out of
 * memory.
 */
FM_MUST_USE bool gw_tell_filtered(const struct gw_chats *chats, const char *text, size_t len, struct fm_buf *out);

/* ---- live.c: the answer so far ---- */

/* Adds text of the model. False: out of memory. */
FM_MUST_USE bool gw_live_text(struct gw_run *run, const char *text, size_t len);

/* Adds a tool call, which is the last part from now on. NULL: out of memory. */
struct gw_part *gw_live_tool(struct gw_run *run, const char *name, const char *summary, const char *details);

/* The last part, which is the tool call in progress. */
struct gw_part *gw_live_last(const struct gw_run *run);

/* Writes the array of parts. */
void gw_live_write(const struct gw_run *run, struct fm_json_writer *w);

/*
 * Two functions that write members of a tool's part: callId, toolName, summary, details; and its outcome: output,
 * exitCode, ...
 */
void gw_live_write_call(const struct gw_part *part, struct fm_json_writer *w);
void gw_live_write_outcome(const struct gw_part *part, struct fm_json_writer *w);
void gw_live_free(struct gw_run *run);

/* ---- calls.c: the tools of a step ---- */

/* Runs the calls in run->items, one after the other; then gw_run_calls_done. */
void gw_calls_run(struct gw_run *run);

/* The input of the call that waits for approval: JSON. */
const char *gw_calls_input(const struct gw_run *run);

/* Takes the user's answer to run->approval_id; see chats.c. */
void gw_calls_decided(void *context, const char *approval_id, enum gw_verdict verdict, const char *reason);

/* Ends the current call early. */
void gw_calls_abort(struct gw_run *run);

/* The run ends: closes what is open of its calls. */
void gw_calls_leave(struct gw_run *run);

/* ---- reading.c: what the model reads ---- */

/*
 * Makes the items of the run's turn from its transcript's records (sessions/story.h), and reads their images from the
 * disk. `then` is called once, either at once or later. If the input is too long or memory ran out, `input` has failed.
 * The run is not freed before `then` is called. False: out of memory, and nothing calls back.
 */
FM_MUST_USE bool gw_read_input(struct gw_run *run, const char *text, size_t len,
                               void (*then)(struct gw_run *run, const struct fm_buf *input));

/* ---- run.c ---- */

/* Begins the run, which is the first of its chat. */
void gw_run_begin(struct gw_run *run);

/* Asks a run to end. The run ends as soon as its current work has stopped. */
void gw_run_abort(struct gw_run *run);

/*
 * Ends a run that has failed with this sentence, or was aborted (NULL, with run->aborting). Call it only when the run
 * has no work in progress.
 */
void gw_run_fail(struct gw_run *run, const char *message);

/* Continues the run: all calls of the step have their results. */
void gw_run_calls_done(struct gw_run *run);

/*
 * Write a record of the run: gw_run_record begins it, the caller writes its members, and gw_run_write ends it. `then`
 * is called when the record is on the disk; if it can't be written, the run fails instead. If gw_run_record returns
 * NULL, the run has failed already.
 */
struct fm_json_writer *gw_run_record(struct gw_run *run, enum gw_record_type type);
void gw_run_write(struct gw_run *run, void (*then)(struct gw_run *run));

/* ---- send.c: chats and their queues ---- */

/* Returns the chat of the session. Makes the chat if the session has none yet. NULL: out of memory. */
struct gw_chat *gw_chat_of(struct gw_chats *chats, const char *key);
struct gw_chat *gw_chat_find(const struct gw_chats *chats, const char *key);

/* Finds the open run with that id in all chats; NULL: no open run has that id. */
struct gw_run *gw_run_find(const struct gw_chats *chats, const char *run_id);

/* chat.send, sessions.delete. */
void gw_send(void *context, struct gw_reply *call, const struct gw_params *params);
void gw_delete(void *context, struct gw_reply *call, const struct gw_params *params);

/* Removes a run from its chat after its end is reported, and begins the next run. */
void gw_run_leave(struct gw_run *run);

/* Frees a run that is over, in a later round of the loop, once no write of it is left. */
void gw_run_free(struct gw_run *run);
void gw_runs_reap(struct gw_chats *chats);

/* ---- join.c: the state of a session, for clients that come later ---- */

/* sessions.subscribe, sessions.get, chat.history. They read the transcript, and answer later. */
void gw_join_subscribe(void *context, struct gw_reply *call, const struct gw_params *params);
void gw_join_get(void *context, struct gw_reply *call, const struct gw_params *params);
void gw_join_history(void *context, struct gw_reply *call, const struct gw_params *params);

/* sessions.search: searches all transcripts, one after the other (search.c). */
void gw_join_search(void *context, struct gw_reply *call, const struct gw_params *params);

/* ---- messages.c (pure) ---- */

/* Which messages of a story are written: those of runs that have ended. */
struct gw_messages {
    const struct gw_story *story;
    int64_t after_seq;
    size_t limit;                                    /* at most this many messages, the last ones; 0: all */
    bool (*open)(void *context, const char *run_id); /* whether a run is open: open runs are left out */
    void *context;
};

/* Writes the array. `*more`: earlier messages were left out because of `limit`. */
void gw_messages_write(const struct gw_messages *messages, struct fm_json_writer *w, bool *more);

#endif
