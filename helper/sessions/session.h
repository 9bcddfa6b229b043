/*
 * The open sessions: their ids, their conversations, when they were last used. A session is a conversation that is
 * sent anew with each message; the engine finds what it has of it in its KV cache. One thread.
 */
#ifndef FM_SESSIONS_SESSION_H
#define FM_SESSIONS_SESSION_H

#include "front/options.h"
#include "sessions/command.h"
#include "surface/ids.h"

#define FM_CONTENT_MAX 10000u /* characters of a message's content that the model sees */

struct fm_session {
    char id[FM_ID_SIZE];
    struct fm_buf items; /* the conversation: JSON items of responses.create, each with a comma behind it */
    struct fm_buf turn;  /* the user's item of the turn under way, likewise */
    int64_t turns;
    int64_t used_ms; /* when it was last used */
};

struct fm_session_table {
    const struct fm_session_options *options;
    struct fm_session *sessions; /* of those in use, in no order */
    size_t count;
    size_t cap;
};

/* `options` must outlive the table. */
void fm_session_table_init(struct fm_session_table *table, const struct fm_session_options *options);

/* Closes all sessions. */
void fm_session_table_free(struct fm_session_table *table);

/*
 * A new session with the instructions, or the default ones where those are absent. FM_FAULT_FAILED_TO_OPEN: too many,
 * instructions too large, or out of memory. `*session` is valid until the next open or close.
 */
FM_MUST_USE enum fm_fault_code fm_session_open(struct fm_session_table *table, struct fm_text instructions,
                                               struct fm_session **session, struct fm_fault *fault);

/* NULL when there is none. */
struct fm_session *fm_session_find(const struct fm_session_table *table, struct fm_text id);

/* It and its conversation are gone; the log says so. */
void fm_session_close(struct fm_session_table *table, struct fm_session *session);

/* Closes those without activity for so long as the options say, with a warning each. */
void fm_session_close_idle(struct fm_session_table *table);

/*
 * Begins a turn: the message as the model is to see it becomes the session's `turn`. FM_FAULT_EXECUTION_FAILED: the
 * session has no more turns or bytes, or out of memory; the session is as before.
 */
FM_MUST_USE enum fm_fault_code fm_session_begin_turn(const struct fm_session_table *table, struct fm_session *session,
                                                     const struct fm_command *command, struct fm_fault *fault);

/*
 * Ends it: with the model's answer it becomes part of the conversation. FM_FAULT_EXECUTION_FAILED when there is no room
 * or no memory for that, and it never was.
 */
FM_MUST_USE enum fm_fault_code fm_session_keep_turn(const struct fm_session_table *table, struct fm_session *session,
                                                    struct fm_text answer, struct fm_fault *fault);

/* Ends it without an answer: it never was. */
void fm_session_drop_turn(struct fm_session *session);

/* How the turn under way is to be generated. */
struct fm_attempt {
    enum fm_output_format format;
    bool again;         /* the first answer ran on: what repeats itself gets less likely */
    int64_t timeout_ms; /* all included */
};

/* Writes the params of responses.create for the turn under way. */
void fm_session_write_params(const struct fm_session_table *table, const struct fm_session *session,
                             const struct fm_attempt *attempt, struct fm_json_writer *w);

#endif
