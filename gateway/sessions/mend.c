/*
 * At the start, every transcript is read, and repaired if a crash damaged it. Nothing of possible value is removed:
 * before a transcript with broken lines is written anew, the old one is kept under another name.
 */
#include "base/file.h"
#include "base/log.h"
#include "base/platform.h"
#include "base/private_files.h"
#include "sessions/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PART_LEN (GW_SESSION_FILE_LEN + 1)

static enum fm_code fail_file(const char *what, const char *name, struct fm_error *error) {
    return fm_fail(error, FM_UNAVAILABLE, "can't %s %s (%s): free some space, or look at its rights and the disk", what,
                   name, strerror(errno));
}

enum fm_code gw_session_file_read(int folder, const char *name, char **text, size_t *len, struct fm_error *error) {
    enum fm_code code = FM_OK;
    int fd = fm_private_file_append(folder, name, false);
    if (fd < 0) {
        return fail_file("open", name, error);
    }
    int64_t size = fm_private_file_size(fd);
    *len = size > 0 ? (size_t)size : 0;
    *text = size < 0 || size > GW_JOURNAL_FILE_MAX ? NULL : malloc(*len + 1);
    if (!*text) {
        code = fm_fail(error, FM_UNAVAILABLE, "%s is too long to be read, with %lld bytes", name, (long long)size);
    } else if (!fm_private_file_read(fd, *text, *len, 0)) {
        code = fail_file("read", name, error);
        free(*text);
    }
    fm_close(fd);
    return code;
}

/* Makes the file `name` from two texts, completely or not at all. */
static bool write_whole(int folder, const char *name, const struct fm_buf *text, const struct fm_buf *more) {
    char part[PART_LEN + 32];
    snprintf(part, sizeof part, ".%s", name);
    fm_private_file_remove(folder, part); /* left by a start that was killed */
    int fd = fm_private_file_create(folder, part);
    bool whole = fd >= 0 && fm_write_all(fd, text->data, text->len) &&
                 (!more || fm_write_all(fd, more->data, more->len)) && fm_private_file_sync(fd) &&
                 fm_private_file_rename(folder, part, name) && fm_private_folder_sync(folder);
    int failure = errno;
    if (fd >= 0) {
        fm_close(fd);
    }
    if (!whole) {
        fm_private_file_remove(folder, part);
    }
    errno = failure;
    return whole;
}

static enum fm_code set_aside(int folder, const char *key, const char *text, size_t len, struct fm_error *error) {
    char name[GW_SESSION_KEY_LEN + 40];
    const struct fm_buf all = {.data = (char *)text, .len = len};
    snprintf(name, sizeof name, "%s.damaged-%lld", key, (long long)gw_wall_ms());
    if (!write_whole(folder, name, &all, NULL)) {
        return fail_file("write", name, error);
    }
    fm_log(FM_LOG_WARN, "a transcript had broken lines: they are left out, and the file as it was is sessions/%s",
           name);
    return FM_OK;
}

/* Appends the closing records after the whole ones. */
static enum fm_code append_closing(int folder, const char *name, const struct gw_recovered *recovered,
                                   struct fm_error *error) {
    int fd = fm_private_file_append(folder, name, false);
    bool done = fd >= 0 && fm_private_file_cut(fd, (int64_t)recovered->whole) &&
                fm_write_all(fd, recovered->closing.data, recovered->closing.len) && fm_private_file_sync(fd);
    enum fm_code code = done ? FM_OK : fail_file("mend", name, error);
    if (!done && fd >= 0 && !fm_private_file_cut(fd, (int64_t)recovered->whole)) {
        fm_log(FM_LOG_WARN, "%s keeps the beginning of a record; the next start cuts it off", name);
    }
    if (fd >= 0) {
        fm_close(fd);
    }
    return code;
}

static enum fm_code mend_file(int folder, const char *key, const char *name, const char *text, size_t len,
                              const struct gw_recovered *recovered, struct fm_error *error) {
    if (recovered->damaged) {
        enum fm_code code = set_aside(folder, key, text, len, error);
        if (code != FM_OK) {
            return code;
        }
        return write_whole(folder, name, &recovered->kept, &recovered->closing) ? FM_OK
                                                                                : fail_file("write", name, error);
    }
    return recovered->closing.len ? append_closing(folder, name, recovered, error) : FM_OK;
}

static void count(struct gw_mended *mended, const struct gw_recovered *recovered, size_t len) {
    mended->torn += !recovered->damaged && recovered->whole < len;
    mended->damaged += recovered->damaged;
    mended->runs += recovered->runs;
    mended->approvals += recovered->approvals;
    mended->tools += recovered->tools;
}

/* Adds a session, whether its file could be mended or not. */
static enum fm_code add_session(struct gw_sessions *sessions, const char *key, const struct gw_recovered *recovered,
                                bool mended, struct fm_error *error) {
    int64_t whole = (int64_t)(recovered->whole + (mended ? recovered->closing.len : 0));
    struct gw_session_entry *entry = gw_sessions_reserve(sessions) ? gw_session_entry_new(sessions, key, whole) : NULL;
    if (!entry) {
        return fm_fail_no_memory(error);
    }
    entry->shown.facts = recovered->facts;
    entry->seq = recovered->facts.seq;
    entry->unusable = !mended;
    sessions->entries[sessions->count++] = entry;
    return FM_OK;
}

/* Mends one transcript. Fails only if there is no memory. */
static enum fm_code mend_one(struct gw_sessions *sessions, const char *key, const char *name, struct gw_mended *mended,
                             struct fm_error *error) {
    struct gw_recovered recovered;
    char *text;
    size_t len;
    if (gw_session_file_read(sessions->folder, name, &text, &len, error) != FM_OK) {
        fm_log(FM_LOG_WARN, "a session is left out: %s", error->detail);
        mended->unusable++;
        return FM_OK;
    }
    enum fm_code code = gw_recover(text, len, gw_wall_ms(), &recovered, error);
    if (code != FM_OK) {
        free(text);
        return code;
    }
    if (recovered.whole == 0 && !recovered.damaged) {
        fm_private_file_remove(sessions->folder, name); /* the session's first record was never acknowledged */
    } else {
        bool whole = mend_file(sessions->folder, key, name, text, len, &recovered, error) == FM_OK;
        if (!whole) {
            fm_log(FM_LOG_WARN, "the session takes no messages until the gateway is restarted: %s", error->detail);
            mended->unusable++;
        }
        count(mended, &recovered, len);
        code = recovered.whole ? add_session(sessions, key, &recovered, whole, error) : FM_OK;
        mended->sessions += code == FM_OK && recovered.whole;
    }
    gw_recovered_free(&recovered);
    free(text);
    return code;
}

/* Finds the key in "KEY.jsonl". False for every other name. */
static bool key_of(const char *name, char key[GW_SESSION_KEY_LEN + 1]) {
    if (strlen(name) != GW_SESSION_FILE_LEN - 1 || strcmp(name + GW_SESSION_KEY_LEN, ".jsonl") != 0) {
        return false;
    }
    memcpy(key, name, GW_SESSION_KEY_LEN);
    key[GW_SESSION_KEY_LEN] = '\0';
    return gw_session_key_valid(key);
}

enum fm_code gw_sessions_mend(struct gw_sessions *sessions, const char *path, struct gw_mended *mended,
                              struct fm_error *error) {
    char key[GW_SESSION_KEY_LEN + 1];
    const char *name;
    enum fm_code code = FM_OK;
    struct fm_folder *folder = fm_folder_open(path);
    if (!folder) {
        return fail_file("read", path, error);
    }
    *mended = (struct gw_mended){.sessions = 0};
    while (code == FM_OK && (name = fm_folder_next(folder))) {
        struct fm_error none;
        /* a file that was replaced meanwhile is listed twice */
        if (key_of(name, key) && !gw_session_entry_find(sessions, key, &none)) {
            char copy[GW_SESSION_FILE_LEN];
            gw_session_file_name(copy, key);
            code = mend_one(sessions, key, copy, mended, error);
        }
    }
    fm_folder_close(folder);
    /*
     * Syncs names: the whole records count as acknowledged from now on, but the gateway that wrote them may have been
     * killed before it synced a file's name.
     */
    return code == FM_OK && !fm_private_folder_sync(sessions->folder) ? fail_file("write", path, error) : code;
}
