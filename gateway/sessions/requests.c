/* Operations on whole sessions: create, rename, delete, view. The journal reads and removes files. */
#include "base/platform.h"
#include "base/private_files.h"
#include "sessions/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- create ---- */

struct creation {
    struct gw_sessions *sessions;
    struct gw_session_entry *entry;
    gw_session_created *done;
    void *context;
};

static void on_created(void *context, const struct fm_error *error) {
    struct creation creation = *(struct creation *)context;
    struct fm_error no_memory;
    free(context);
    if (!error && !gw_sessions_reserve(creation.sessions)) {
        fm_fail_no_memory(&no_memory); /* the next start lists the session */
        error = &no_memory;
    }
    if (error) {
        gw_session_entry_free(creation.entry);
        creation.done(creation.context, error, NULL);
        return;
    }
    creation.sessions->entries[creation.sessions->count++] = creation.entry;
    creation.done(creation.context, NULL, &creation.entry->shown);
}

static void make_key(char key[GW_SESSION_KEY_LEN + 1]) {
    unsigned char bytes[GW_SESSION_KEY_LEN / 2];
    fm_random(bytes, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++) {
        snprintf(key + 2 * i, 3, "%02x", bytes[i]);
    }
}

enum fm_code gw_session_create(struct gw_sessions *sessions, const char *agent_id, gw_session_created *done,
                               void *context, struct fm_error *error) {
    char key[GW_SESSION_KEY_LEN + 1];
    if (sessions->count >= GW_SESSIONS_MAX) {
        return fm_fail_too_many(error, "there are %u sessions: delete one first", GW_SESSIONS_MAX);
    }
    make_key(key);
    struct creation *creation = calloc(1, sizeof *creation);
    struct gw_session_entry *entry = creation ? gw_session_entry_new(sessions, key, -1) : NULL;
    if (!entry) {
        free(creation);
        return fm_fail_no_memory(error);
    }
    *creation = (struct creation){sessions, entry, done, context};
    fm_buf_reset(&sessions->line);
    sessions->entry = entry;
    sessions->type = GW_RECORD_SESSION;
    sessions->writer = fm_json_writer_on(&sessions->line);
    gw_record_begin(&sessions->writer, 1, gw_wall_ms(), GW_RECORD_SESSION, NULL);
    fm_json_key_str(&sessions->writer, "agentId", agent_id);
    enum fm_code code = gw_session_end(sessions, on_created, creation, NULL, error);
    if (code != FM_OK) {
        gw_session_entry_free(entry);
        free(creation);
    }
    return code;
}

/* ---- rename ---- */

enum fm_code gw_session_rename(struct gw_sessions *sessions, const char *key, const char *title, gw_journal_done *done,
                               void *context, struct fm_error *error) {
    size_t len = strlen(title);
    if (len == 0 || len > GW_TITLE_MAX) {
        enum fm_code code = fm_fail(error, FM_INVALID_REQUEST, "title: must have 1 to %u bytes", GW_TITLE_MAX);
        snprintf(error->param, sizeof error->param, "title");
        return code;
    }
    struct fm_json_writer *w = gw_session_begin(sessions, key, GW_RECORD_TITLE, NULL, error);
    if (!w) {
        return error->code;
    }
    fm_json_key_str(w, "title", title);
    return gw_session_end(sessions, done, context, NULL, error);
}

/* ---- delete ---- */

struct deletion {
    struct gw_sessions *sessions;
    struct gw_session_entry *entry;
    gw_journal_done *done;
    void *context;
};

static bool is_another(void *context, const char *key) {
    return strcmp(context, key) != 0;
}

/* A search for a session's files: its transcript, copies that a start set aside, and half-written files of a start. */
struct files {
    int folder;
    const char *key;
    bool any;
};

static bool is_its(const struct files *files, const char *name) {
    name += name[0] == '.';
    return strncmp(name, files->key, GW_SESSION_KEY_LEN) == 0 && name[GW_SESSION_KEY_LEN] == '.';
}

static void remove_its(void *context, const struct fm_private_entry *entry) {
    const struct files *files = context;
    if (is_its(files, entry->name)) {
        fm_private_file_remove(files->folder, entry->name);
    }
}

static void find_its(void *context, const struct fm_private_entry *entry) {
    struct files *files = context;
    files->any = files->any || is_its(files, entry->name);
}

/* Whether the file exists, even if it belongs to another user now: the folder's list leaves such a file out. */
static bool is_there(int folder, const char *name) {
    int fd = fm_private_file_append(folder, name, false);
    bool there = fd >= 0 || errno != ENOENT;
    if (fd >= 0) {
        fm_close(fd);
    }
    return there;
}

static enum fm_code remove_files(void *context, struct fm_error *error) {
    const struct deletion *deletion = context;
    struct files files = {.folder = deletion->sessions->folder, .key = deletion->entry->shown.key};
    char name[GW_SESSION_FILE_LEN];
    gw_session_file_name(name, files.key);
    fm_private_file_remove(files.folder, name);
    bool gone = !is_there(files.folder, name) && fm_private_folder_list(files.folder, remove_its, &files) &&
                fm_private_folder_list(files.folder, find_its, &files) && !files.any;
    if (!gone || !fm_private_folder_sync(deletion->sessions->folder)) {
        return fm_fail(error, FM_UNAVAILABLE, "can't remove sessions/%s: look at the folder's rights and the disk",
                       name);
    }
    gw_journal_file_is_gone(deletion->entry->file);
    gw_blobs_clean(deletion->sessions->blobs, is_another, deletion->entry->shown.key);
    return FM_OK;
}

static void take_out(struct gw_sessions *sessions, const struct gw_session_entry *entry) {
    size_t i = 0;
    while (sessions->entries[i] != entry) {
        i++;
    }
    sessions->entries[i] = sessions->entries[--sessions->count];
}

static void on_removed(void *context, const struct fm_error *error) {
    struct deletion deletion = *(struct deletion *)context;
    free(context);
    if (error) {
        deletion.entry->going = false;
    } else {
        take_out(deletion.sessions, deletion.entry);
        gw_session_entry_free(deletion.entry);
    }
    if (deletion.done) {
        deletion.done(deletion.context, error);
    }
}

enum fm_code gw_session_delete(struct gw_sessions *sessions, const char *key, gw_journal_done *done, void *context,
                               struct fm_error *error) {
    struct gw_session_entry *entry = gw_session_entry_find(sessions, key, error);
    if (!entry) {
        return error->code;
    }
    struct deletion *deletion = calloc(1, sizeof *deletion);
    if (!deletion) {
        return fm_fail_no_memory(error);
    }
    *deletion = (struct deletion){sessions, entry, done, context};
    enum fm_code code = gw_journal_run(sessions->journal, remove_files, on_removed, deletion, error);
    entry->going = code == FM_OK;
    if (code != FM_OK) {
        free(deletion);
    }
    return code;
}

/* ---- view ---- */

struct viewing {
    int folder;
    char name[GW_SESSION_FILE_LEN];
    struct gw_view view;
    gw_session_viewed *done;
    void *context;
    struct fm_buf text;
    bool cut;
};

static enum fm_code read_view(void *context, struct fm_error *error) {
    struct viewing *viewing = context;
    char *text;
    size_t len;
    enum fm_code code = gw_session_file_read(viewing->folder, viewing->name, &text, &len, error);
    if (code != FM_OK) {
        return code;
    }
    fm_buf_init(&viewing->text, 2 * (size_t)GW_VIEW_MAX);
    bool whole = gw_view_write(text, len, &viewing->view, &viewing->text, &viewing->cut);
    free(text);
    return whole ? FM_OK : fm_fail_no_memory(error);
}

static void on_view(void *context, const struct fm_error *error) {
    struct viewing *viewing = context;
    viewing->done(viewing->context, error, error ? NULL : viewing->text.data, error ? 0 : viewing->text.len,
                  viewing->cut);
    fm_buf_free(&viewing->text);
    free(viewing);
}

enum fm_code gw_session_view(struct gw_sessions *sessions, const char *key, const struct gw_view *view,
                             gw_session_viewed *done, void *context, struct fm_error *error) {
    const struct gw_session_entry *entry = gw_session_entry_find(sessions, key, error);
    if (!entry) {
        return error->code;
    }
    struct viewing *viewing = calloc(1, sizeof *viewing);
    if (!viewing) {
        return fm_fail_no_memory(error);
    }
    viewing->folder = sessions->folder;
    viewing->view = *view;
    viewing->done = done;
    viewing->context = context;
    gw_session_file_name(viewing->name, key);
    enum fm_code code = gw_journal_run(sessions->journal, read_view, on_view, viewing, error);
    if (code != FM_OK) {
        free(viewing);
    }
    return code;
}

/* ---- attachments ---- */

enum fm_code gw_session_attach(struct gw_sessions *sessions, const char *key, const void *bytes, size_t len,
                               gw_blob_put_done *done, void *context, struct fm_error *error) {
    return gw_session_entry_find(sessions, key, error)
               ? gw_blob_put(sessions->journal, sessions->blobs, key, bytes, len, done, context, error)
               : error->code;
}

enum fm_code gw_session_attachment(struct gw_sessions *sessions, const char *id, gw_blob_get_done *done, void *context,
                                   struct fm_error *error) {
    return gw_blob_get(sessions->journal, sessions->blobs, id, done, context, error);
}
