/*
 * The start and end of the sessions, and the appending of records. The list changes only when a record is on the disk.
 */
#include "sessions/sessions.h"
#include "base/platform.h"
#include "base/private_files.h"
#include "sessions/internal.h"
#include "sessions/transcript.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

/* A record on its way to the disk. `line` is a copy if the list needs what it says. */
struct record_sent {
    struct gw_session_entry *entry;
    int64_t seq;
    gw_journal_done *done;
    void *context;
    size_t len;
    char line[];
};

/* ---- open and close ---- */

static int open_folder(const char *path, struct fm_error *error) {
    int fd = fm_private_folder_open(path);
    if (fd < 0) {
        fm_fail(error, FM_UNAVAILABLE, "can't use the folder %s (%s): it must be yours, and nobody else's to change",
                path, strerror(errno));
    }
    return fd;
}

static bool is_kept(void *context, const char *key) {
    const struct gw_sessions *sessions = context;
    char name[GW_SESSION_FILE_LEN];
    gw_session_file_name(name, key);
    int fd = fm_private_file_append(sessions->folder, name, false);
    bool missing = fd < 0 && errno == ENOENT; /* a file that can't be opened fails with another errno, and is kept */
    if (fd >= 0) {
        fm_close(fd);
    }
    return !missing;
}

enum fm_code gw_sessions_open(struct gw_journal *journal, const char *path, const char *blobs, struct gw_sessions **out,
                              struct gw_mended *mended, struct fm_error *error) {
    struct gw_sessions *sessions = calloc(1, sizeof *sessions);
    struct gw_journal_file *last = gw_journal_file_new(journal, -1, "", -1);
    if (!sessions || !last) {
        free(sessions);
        gw_journal_file_free(last, NULL, NULL);
        return fm_fail_no_memory(error);
    }
    sessions->journal = journal;
    sessions->last = last;
    fm_buf_init(&sessions->line, GW_RECORD_MAX + 1);
    sessions->folder = open_folder(path, error);
    sessions->blobs = sessions->folder < 0 ? -1 : open_folder(blobs, error);
    enum fm_code code = sessions->blobs < 0 ? error->code : gw_sessions_mend(sessions, path, mended, error);
    if (code != FM_OK) {
        gw_sessions_free(sessions);
        return code;
    }
    gw_blobs_clean(sessions->blobs, is_kept, sessions);
    *out = sessions;
    return FM_OK;
}

static void free_last(void *context) {
    struct gw_sessions *sessions = context;
    if (sessions->folder >= 0) {
        fm_close(sessions->folder);
    }
    if (sessions->blobs >= 0) {
        fm_close(sessions->blobs);
    }
    fm_buf_free(&sessions->line);
    free(sessions->entries);
    free(sessions);
}

void gw_sessions_free(struct gw_sessions *sessions) {
    for (size_t i = 0; i < sessions->count; i++) {
        gw_session_entry_free(sessions->entries[i]);
    }
    sessions->count = 0;
    gw_journal_file_free(sessions->last, free_last, sessions);
}

/* ---- records ---- */

struct fm_json_writer *gw_session_begin(struct gw_sessions *sessions, const char *key, enum gw_record_type type,
                                        const char *run_id, struct fm_error *error) {
    struct gw_session_entry *entry = gw_session_entry_find(sessions, key, error);
    if (!entry) {
        return NULL;
    }
    if (entry->unusable) {
        fm_fail(error, FM_UNAVAILABLE,
                "the session %s could not be mended at the start: free some space on the disk, and "
                "restart the gateway",
                key);
        return NULL;
    }
    fm_buf_reset(&sessions->line);
    sessions->entry = entry;
    sessions->type = type;
    sessions->writer = fm_json_writer_on(&sessions->line);
    gw_record_begin(&sessions->writer, entry->seq + 1, gw_wall_ms(), type, run_id);
    return &sessions->writer;
}

static void apply(struct gw_facts *facts, const char *line, size_t len) {
    struct gw_record record;
    struct fm_buf scratch;
    const char *fault;
    fm_buf_init(&scratch, GW_RECORD_MAX);
    if (gw_record_read(line, len, &scratch, &record, &fault)) {
        gw_facts_apply(facts, &record);
        json_object_put(record.json);
    }
    fm_buf_free(&scratch);
}

static void on_disk(void *context, const struct fm_error *error) {
    struct record_sent *sent = context;
    if (!error && sent->len) {
        apply(&sent->entry->shown.facts, sent->line, sent->len);
    } else if (!error) {
        sent->entry->shown.facts.seq = sent->seq;
    }
    if (sent->done) {
        sent->done(sent->context, error);
    }
    free(sent);
}

/* Whether the list of sessions shows anything from records of this type. */
static bool is_listed(enum gw_record_type type) {
    return type == GW_RECORD_SESSION || type == GW_RECORD_TITLE || type == GW_RECORD_MESSAGE ||
           type == GW_RECORD_RUN_ENDED;
}

/* Reads the record again, because a record that a start would take for damage must not be written. */
static enum fm_code check_record(const struct gw_sessions *sessions, struct fm_error *error) {
    struct gw_record record;
    struct fm_buf scratch;
    const char *fault;
    if (sessions->line.failed) {
        return fm_fail(error, FM_INVALID_REQUEST, "a record of more than %u bytes can't be kept", GW_RECORD_MAX);
    }
    fm_buf_init(&scratch, GW_RECORD_MAX);
    bool whole = gw_record_read(sessions->line.data, sessions->line.len - 1, &scratch, &record, &fault);
    fm_buf_free(&scratch);
    if (!whole) {
        return fm_fail(error, FM_INVALID_REQUEST, "a record of type %s can't be kept: %s",
                       gw_record_name(sessions->type), fault);
    }
    json_object_put(record.json);
    return FM_OK;
}

enum fm_code gw_session_end(struct gw_sessions *sessions, gw_journal_done *done, void *context, int64_t *seq,
                            struct fm_error *error) {
    struct gw_session_entry *entry = sessions->entry;
    gw_record_end(&sessions->writer);
    enum fm_code code = check_record(sessions, error);
    if (code != FM_OK) {
        return code;
    }
    size_t kept = is_listed(sessions->type) ? sessions->line.len - 1 : 0;
    struct record_sent *sent = calloc(1, sizeof *sent + kept);
    if (!sent) {
        return fm_fail_no_memory(error);
    }
    sent->entry = entry;
    sent->seq = entry->seq + 1;
    sent->done = done;
    sent->context = context;
    sent->len = kept;
    memcpy(sent->line, sessions->line.data, kept);
    code = gw_journal_append(entry->file, sessions->line.data, sessions->line.len, on_disk, sent, error);
    if (code != FM_OK) {
        free(sent);
        return code;
    }
    entry->seq++;
    if (seq) {
        *seq = entry->seq;
    }
    return FM_OK;
}
