/* Attachments. A file gets its final name when it is completely on the disk; until then its name begins with a dot. */
#include "sessions/blobs.h"
#include "base/platform.h"
#include "base/private_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PART '.' /* the first byte of a file's name until the file is whole */

struct put {
    int folder;
    gw_blob_put_done *done;
    void *context;
    char name[GW_BLOB_ID_LEN + 2]; /* PART and the id */
    size_t len;
    char bytes[];
};

struct get {
    int folder;
    gw_blob_get_done *done;
    void *context;
    char id[GW_BLOB_ID_LEN + 1];
    char *bytes;
    size_t len;
};

static size_t hex_digits(const char *text) {
    return strspn(text, "0123456789abcdef");
}

bool gw_session_key_valid(const char *key) {
    return hex_digits(key) == GW_SESSION_KEY_LEN && key[GW_SESSION_KEY_LEN] == '\0';
}

static bool id_valid(const char *id) {
    return hex_digits(id) == GW_SESSION_KEY_LEN && id[GW_SESSION_KEY_LEN] == '-' && strlen(id) == GW_BLOB_ID_LEN &&
           hex_digits(id + GW_SESSION_KEY_LEN + 1) == GW_BLOB_ID_LEN - GW_SESSION_KEY_LEN - 1;
}

static enum fm_code fail_blob(const char *what, struct fm_error *error) {
    return fm_fail(error, FM_UNAVAILABLE, "can't %s an attachment (%s): free some space, or look at the disk", what,
                   strerror(errno));
}

/* ---- writing ---- */

static enum fm_code write_blob(void *context, struct fm_error *error) {
    struct put *put = context;
    int fd = fm_private_file_create(put->folder, put->name);
    if (fd < 0) {
        return fail_blob("write", error);
    }
    bool whole = fm_write_all(fd, put->bytes, put->len) && fm_private_file_sync(fd) &&
                 fm_private_file_rename(put->folder, put->name, put->name + 1) && fm_private_folder_sync(put->folder);
    enum fm_code code = whole ? FM_OK : fail_blob("write", error);
    fm_close(fd);
    if (!whole) {
        fm_private_file_remove(put->folder, put->name);
        fm_private_file_remove(put->folder, put->name + 1);
    }
    return code;
}

static void on_written(void *context, const struct fm_error *error) {
    struct put *put = context;
    put->done(put->context, error, error ? NULL : put->name + 1);
    free(put);
}

enum fm_code gw_blob_put(struct gw_journal *journal, int folder, const char *key, const void *bytes, size_t len,
                         gw_blob_put_done *done, void *context, struct fm_error *error) {
    if (len == 0 || len > GW_BLOB_MAX) {
        return fm_fail(error, FM_INVALID_REQUEST, "an attachment has 1 to %u bytes, not %zu", GW_BLOB_MAX, len);
    }
    struct put *put = calloc(1, sizeof *put + len);
    uint64_t random;
    if (!put) {
        return fm_fail_no_memory(error);
    }
    fm_random(&random, sizeof random);
    snprintf(put->name, sizeof put->name, "%c%s-%016llx", PART, key, (unsigned long long)random);
    put->folder = folder;
    put->done = done;
    put->context = context;
    put->len = len;
    memcpy(put->bytes, bytes, len);
    enum fm_code code = gw_journal_run(journal, write_blob, on_written, put, error);
    if (code != FM_OK) {
        free(put);
    }
    return code;
}

/* ---- reading ---- */

static enum fm_code read_bytes(struct get *get, int fd, size_t len, struct fm_error *error) {
    get->len = len;
    get->bytes = malloc(len);
    if (!get->bytes) {
        return fm_fail_no_memory(error);
    }
    return fm_private_file_read(fd, get->bytes, len, 0) ? FM_OK : fail_blob("read", error);
}

static enum fm_code read_blob(void *context, struct fm_error *error) {
    struct get *get = context;
    int fd = fm_private_file_open(get->folder, get->id);
    if (fd < 0) {
        return errno == ENOENT ? fm_fail(error, FM_NOT_FOUND, "there is no such attachment") : fail_blob("read", error);
    }
    int64_t size = fm_private_file_size(fd);
    enum fm_code code = size > 0 && size <= GW_BLOB_MAX
                            ? read_bytes(get, fd, (size_t)size, error)
                            : fm_fail(error, FM_UNAVAILABLE, "the attachment is damaged: blobs/%s has %lld bytes",
                                      get->id, (long long)size);
    fm_close(fd);
    return code;
}

static void on_read(void *context, const struct fm_error *error) {
    struct get *get = context;
    get->done(get->context, error, error ? NULL : get->bytes, error ? 0 : get->len);
    free(get->bytes);
    free(get);
}

enum fm_code gw_blob_get(struct gw_journal *journal, int folder, const char *id, gw_blob_get_done *done, void *context,
                         struct fm_error *error) {
    if (!id_valid(id)) {
        return fm_fail(error, FM_NOT_FOUND, "there is no such attachment");
    }
    struct get *get = calloc(1, sizeof *get);
    if (!get) {
        return fm_fail_no_memory(error);
    }
    get->folder = folder;
    get->done = done;
    get->context = context;
    memcpy(get->id, id, sizeof get->id);
    enum fm_code code = gw_journal_run(journal, read_blob, on_read, get, error);
    if (code != FM_OK) {
        free(get);
    }
    return code;
}

/* ---- removing ---- */

struct clean {
    int folder;
    bool (*keep)(void *context, const char *key);
    void *context;
};

static void clean_one(void *context, const struct fm_private_entry *entry) {
    const struct clean *clean = context;
    char key[GW_SESSION_KEY_LEN + 1];
    bool part = entry->name[0] == PART;
    if (!id_valid(entry->name + part)) {
        return; /* not ours */
    }
    memcpy(key, entry->name + part, GW_SESSION_KEY_LEN);
    key[GW_SESSION_KEY_LEN] = '\0';
    if (part || !clean->keep(clean->context, key)) {
        fm_private_file_remove(clean->folder, entry->name);
    }
}

void gw_blobs_clean(int folder, bool (*keep)(void *context, const char *key), void *context) {
    struct clean clean = {folder, keep, context};
    fm_private_folder_list(folder, clean_one, &clean);
}
