/* What the files of sessions.h share. Calls go down: requests.c, sessions.c, mend.c, list.c. */
#ifndef GW_SESSIONS_INTERNAL_H
#define GW_SESSIONS_INTERNAL_H

#include "sessions/sessions.h"

#define GW_SESSION_FILE_LEN (GW_SESSION_KEY_LEN + sizeof ".jsonl")

/* A session with its internal state, which users of the list do not see. */
struct gw_session_entry {
    struct gw_session shown; /* the first member: a pointer to it is a pointer to the entry */
    struct gw_journal_file *file;
    int64_t seq;   /* the last `seq` that was given to a record */
    bool unusable; /* the session takes no records, because the start could not mend it */
    bool going;    /* is being deleted */
};

struct gw_sessions {
    struct gw_journal *journal;
    struct gw_journal_file *last; /* never written: when the journal is done with this file, the sessions are freed */
    int folder;
    int blobs;
    struct gw_session_entry **entries;
    size_t count;
    size_t room;
    /* the record that was begun */
    struct gw_session_entry *entry;
    enum gw_record_type type;
    struct fm_buf line;
    struct fm_json_writer writer;
};

/* "KEY.jsonl". */
void gw_session_file_name(char name[GW_SESSION_FILE_LEN], const char *key);

/* Finds the entry of a session that is not being deleted; NULL with FM_NOT_FOUND. */
struct gw_session_entry *gw_session_entry_find(const struct gw_sessions *sessions, const char *key,
                                               struct fm_error *error);

/* Makes room for one more entry. False: out of memory. */
FM_MUST_USE bool gw_sessions_reserve(struct gw_sessions *sessions);

/* Makes a new entry, with its file; it is not in the list yet. NULL: out of memory. */
struct gw_session_entry *gw_session_entry_new(struct gw_sessions *sessions, const char *key, int64_t whole);

/* Frees the entry once its records are done. */
void gw_session_entry_free(struct gw_session_entry *entry);

/* Reads a whole file of the folder. The caller frees `*text`. Any thread; blocks. */
FM_MUST_USE enum fm_code gw_session_file_read(int folder, const char *name, char **text, size_t *len,
                                              struct fm_error *error);

/* Reads and mends all sessions of the folder `path`, and adds them to the list. Blocks. */
FM_MUST_USE enum fm_code gw_sessions_mend(struct gw_sessions *sessions, const char *path, struct gw_mended *mended,
                                          struct fm_error *error);

#endif
