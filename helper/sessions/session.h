/*
 * The open sessions: their ids, their conversations, and when they were last used. With each message the whole
 * conversation is sent to the engine again; the engine reuses the part that is in its KV cache. One thread.
 */
#ifndef FM_SESSIONS_SESSION_H
#define FM_SESSIONS_SESSION_H

#include "front/options.h"
#include "sessions/command.h"
#include "surface/ids.h"

#define FM_CONTENT_MAX 10000u /* characters of a message's content that the model sees */

struct fm_session {
    char id[FM_ID_SIZE];
    struct fm_buf items;     /* the conversation: items of responses.create as JSON, each followed by a comma */
    size_t instructions_end; /* where the text of the first item, the system message, ends in `items` */
    struct fm_buf turn;      /* the user's item of the turn under way, in the form of `items` */
    int64_t turns;
    int64_t used_ms; /* when the session was last used */
};

struct fm_session_table {
    const struct fm_session_options *options;
    struct fm_session *sessions; /* the open sessions, in no order */
    size_t count;
    size_t cap;
};

/* `options` must outlive the table. */
void fm_session_table_init(struct fm_session_table *table, const struct fm_session_options *options);

/* Closes all sessions. */
void fm_session_table_free(struct fm_session_table *table);

/*
 * Opens a session with these instructions, or with the default ones if they are absent. FM_FAULT_FAILED_TO_OPEN: too
 * many sessions, instructions that are too large, or out of memory. `*session` is valid until the next open or close.
 */
FM_MUST_USE enum fm_fault_code fm_session_open(struct fm_session_table *table, struct fm_text instructions,
                                               struct fm_session **session, struct fm_fault *fault);

/* Finds the session `id`; NULL when there is none. */
struct fm_session *fm_session_find(const struct fm_session_table *table, struct fm_text id);

/* Closes the session and drops its conversation, with a line in the log. */
void fm_session_close(struct fm_session_table *table, struct fm_session *session);

/* Closes the sessions that were not used for as long as the options say; logs a warning for each. */
void fm_session_close_idle(struct fm_session_table *table);

/*
 * Begins a turn: the message, as the model is to see it, becomes the session's `turn`. FM_FAULT_EXECUTION_FAILED: the
 * session has no turns or bytes left, or out of memory. In that case the session stays as it was.
 */
FM_MUST_USE enum fm_fault_code fm_session_begin_turn(const struct fm_session_table *table, struct fm_session *session,
                                                     const struct fm_command *command, struct fm_fault *fault);

/*
 * Ends the turn: the turn and the model's answer become part of the conversation. FM_FAULT_EXECUTION_FAILED when there
 * is no room or no memory for the answer; in that case the session is as before the turn.
 */
FM_MUST_USE enum fm_fault_code fm_session_keep_turn(const struct fm_session_table *table, struct fm_session *session,
                                                    struct fm_text answer, struct fm_fault *fault);

/* Ends the turn without an answer: the session is as before the turn. */
void fm_session_drop_turn(struct fm_session *session);

/* The settings with which the turn under way is generated. */
struct fm_attempt {
    enum fm_output_format format;
    bool again;         /* the first answer repeated itself, so repetition gets less likely */
    int64_t timeout_ms; /* limit for the whole turn */
};

/* Writes the params of responses.create for the turn under way. */
void fm_session_write_params(const struct fm_session_table *table, const struct fm_session *session,
                             const struct fm_attempt *attempt, struct fm_json_writer *w);

#endif
