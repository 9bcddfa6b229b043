/* The list of sessions. An entry is in it once its first record is on the disk, until its file is gone. */
#include "sessions/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int64_t gw_wall_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void gw_session_file_name(char name[GW_SESSION_FILE_LEN], const char *key) {
    snprintf(name, GW_SESSION_FILE_LEN, "%s.jsonl", key);
}

bool gw_sessions_reserve(struct gw_sessions *sessions) {
    if (sessions->count < sessions->room) {
        return true;
    }
    size_t room = sessions->room ? 2 * sessions->room : 64;
    struct gw_session_entry **entries = realloc(sessions->entries, room * sizeof(struct gw_session_entry *));
    if (!entries) {
        return false;
    }
    sessions->entries = entries;
    sessions->room = room;
    return true;
}

struct gw_session_entry *gw_session_entry_new(struct gw_sessions *sessions, const char *key, int64_t whole) {
    char name[GW_SESSION_FILE_LEN];
    struct gw_session_entry *entry = calloc(1, sizeof *entry);
    gw_session_file_name(name, key);
    if (entry) {
        memcpy(entry->shown.key, key, sizeof entry->shown.key);
        entry->file = gw_journal_file_new(sessions->journal, sessions->folder, name, whole);
    }
    if (entry && !entry->file) {
        free(entry);
        return NULL;
    }
    return entry;
}

void gw_session_entry_free(struct gw_session_entry *entry) {
    gw_journal_file_free(entry->file, free, entry);
}

struct gw_session_entry *gw_session_entry_find(const struct gw_sessions *sessions, const char *key,
                                               struct fm_error *error) {
    for (size_t i = 0; i < sessions->count; i++) {
        if (!sessions->entries[i]->going && strcmp(sessions->entries[i]->shown.key, key) == 0) {
            return sessions->entries[i];
        }
    }
    fm_fail(error, FM_NOT_FOUND, "there is no session %s", gw_session_key_valid(key) ? key : "of that key");
    return NULL;
}

const struct gw_session *gw_session_find(const struct gw_sessions *sessions, const char *key) {
    struct fm_error error;
    const struct gw_session_entry *entry = gw_session_entry_find(sessions, key, &error);
    return entry ? &entry->shown : NULL;
}

static int latest_first(const void *a, const void *b) {
    const struct gw_session *one = *(struct gw_session *const *)a;
    const struct gw_session *other = *(struct gw_session *const *)b;
    int64_t difference = other->facts.updated_ms - one->facts.updated_ms;
    return difference ? (difference > 0) - (difference < 0) : strcmp(one->key, other->key);
}

bool gw_sessions_each(const struct gw_sessions *sessions, bool (*each)(void *context, const struct gw_session *session),
                      void *context) {
    const struct gw_session **sorted = calloc(sessions->count + 1, sizeof(struct gw_session *));
    size_t count = 0;
    if (!sorted) {
        return false;
    }
    for (size_t i = 0; i < sessions->count; i++) {
        if (!sessions->entries[i]->going) {
            sorted[count++] = &sessions->entries[i]->shown;
        }
    }
    qsort(sorted, count, sizeof(struct gw_session *), latest_first);
    for (size_t i = 0; i < count && each(context, sorted[i]); i++) {
    }
    free(sorted);
    return true;
}
