/*
 * The sessions. Each one is a transcript, sessions/KEY.jsonl, which holds all that is known of the session (record.h).
 * What a callback has acknowledged is on the disk, and a restart finds it.
 *
 * Loop thread. Only gw_sessions_open blocks. Callbacks come later, never from within the function that takes them, and
 * once each; after a failure nothing calls back.
 */
#ifndef GW_SESSIONS_SESSIONS_H
#define GW_SESSIONS_SESSIONS_H

#include "sessions/blobs.h"
#include "sessions/recovery.h"
#include "sessions/views.h"

#define GW_SESSIONS_MAX 100000u

struct gw_sessions;

/* The time of records: ms since 1970. Any thread. */
int64_t gw_wall_ms(void);

/* A session of the list. `facts` covers only what is on the disk. */
struct gw_session {
    char key[GW_SESSION_KEY_LEN + 1];
    struct gw_facts facts;
};

/* What the start had to mend, in all sessions together. */
struct gw_mended {
    size_t sessions; /* sessions that were read */
    size_t torn;     /* transcripts whose end was cut off */
    size_t damaged;  /* transcripts set aside as KEY.damaged-TIME, and written anew from their whole records */
    size_t runs;     /* open runs that were closed */
    size_t approvals;
    size_t tools;
    size_t unusable; /* sessions that can't be read, or whose repair failed: the log says why */
};

/*
 * Reads all sessions of the folder `path` (created if it is missing), cuts off a last record that a crash left
 * incomplete, and closes what was open. `blobs` is the folder of attachments. The sessions use `journal` until
 * gw_sessions_free. FM_UNAVAILABLE: a folder can't be used. A session that can't be mended, for example because the
 * disk is full, is read but takes no records until a restart. Blocks: it reads every transcript.
 */
FM_MUST_USE enum fm_code gw_sessions_open(struct gw_journal *journal, const char *path, const char *blobs,
                                          struct gw_sessions **sessions, struct gw_mended *mended,
                                          struct fm_error *error);

/*
 * Frees the sessions. Call it before gw_journal_close, which waits for accepted records; these still call back. Make no
 * new calls after it.
 */
void gw_sessions_free(struct gw_sessions *sessions);

/* Finds the session with that key; NULL: no session has that key. The result is valid until control returns to the
 * loop. */
const struct gw_session *gw_session_find(const struct gw_sessions *sessions, const char *key);

/*
 * Calls `each` for all sessions, the one with the latest message first, until it returns false. False: out of memory.
 */
FM_MUST_USE bool gw_sessions_each(const struct gw_sessions *sessions,
                                  bool (*each)(void *context, const struct gw_session *session), void *context);

/* `error` NULL: the session is on the disk, and in the list. */
typedef void gw_session_created(void *context, const struct fm_error *error, const struct gw_session *session);

/* Makes a session with a random key. FM_RATE_LIMITED: there are GW_SESSIONS_MAX sessions already. */
FM_MUST_USE enum fm_code gw_session_create(struct gw_sessions *sessions, const char *agent_id, gw_session_created *done,
                                           void *context, struct fm_error *error);

/*
 * Begins a record of a session. The caller writes the members that its type must have, and others, to the returned
 * writer, then calls gw_session_end before control returns to the loop. `run_id` NULL: the record belongs to no run.
 * NULL with FM_NOT_FOUND (no such session) or FM_UNAVAILABLE (the start could not mend it).
 */
struct fm_json_writer *gw_session_begin(struct gw_sessions *sessions, const char *key, enum gw_record_type type,
                                        const char *run_id, struct fm_error *error);

/*
 * Sends the record that was begun to the disk; `*seq` (`seq` may be NULL) is its number. Records of a session keep
 * their order; if one can't be written, later ones still may be. FM_INVALID_REQUEST: it lacks a member of its type, or
 * is longer than GW_RECORD_MAX. It also fails with the errors of gw_journal_append.
 */
FM_MUST_USE enum fm_code gw_session_end(struct gw_sessions *sessions, gw_journal_done *done, void *context,
                                        int64_t *seq, struct fm_error *error);

/* Sets the title, which has 1 to GW_TITLE_MAX bytes; FM_INVALID_REQUEST otherwise. */
FM_MUST_USE enum fm_code gw_session_rename(struct gw_sessions *sessions, const char *key, const char *title,
                                           gw_journal_done *done, void *context, struct fm_error *error);

/*
 * Removes a session, its attachments, and what a start set aside of its transcript. It takes no records from now on. If
 * the disk fails, the session is in the list again. End its runs before this call.
 */
FM_MUST_USE enum fm_code gw_session_delete(struct gw_sessions *sessions, const char *key, gw_journal_done *done,
                                           void *context, struct fm_error *error);

/* `error` NULL: the view, valid during the call. */
typedef void gw_session_viewed(void *context, const struct fm_error *error, const char *text, size_t len, bool cut);

/* Reads the transcript, after everything accepted before is on the disk. FM_NOT_FOUND: no such session. */
FM_MUST_USE enum fm_code gw_session_view(struct gw_sessions *sessions, const char *key, const struct gw_view *view,
                                         gw_session_viewed *done, void *context, struct fm_error *error);

/* Attachments: these work as gw_blob_put and gw_blob_get. */
FM_MUST_USE enum fm_code gw_session_attach(struct gw_sessions *sessions, const char *key, const void *bytes, size_t len,
                                           gw_blob_put_done *done, void *context, struct fm_error *error);
FM_MUST_USE enum fm_code gw_session_attachment(struct gw_sessions *sessions, const char *id, gw_blob_get_done *done,
                                               void *context, struct fm_error *error);

#endif
