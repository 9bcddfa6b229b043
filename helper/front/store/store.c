/*
 * Stored responses as rows: how they are stored, read, deleted, and found by their items, and how room is made for
 * them.
 */
#include "front/store/store.h"
#include "front/store/db.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROW_BYTES_MAX (3LL * FM_STORE_TEXT_MAX + FM_STORE_ROW_BYTES)

struct fm_store {
    struct fm_store_db db;
    int64_t bytes_max;
    int64_t total;   /* sum of the column `bytes` of all rows; -1: not counted */
    int64_t counted; /* the data_version then: a commit of another process changes it (sqlite.org/pragma.html) */
};

struct fm_store *fm_store_new(const char *file, int64_t bytes_max) {
    struct fm_store *store = calloc(1, sizeof *store);
    if (store) {
        fm_store_db_init(&store->db, file);
        store->bytes_max = bytes_max;
        store->total = -1;
    }
    return store;
}

void fm_store_close(struct fm_store *store) {
    if (store) {
        fm_store_db_close(&store->db);
        free(store);
    }
}

enum fm_code fm_store_open(struct fm_store *store, struct fm_error *error) {
    bool opened;
    enum fm_code code = fm_store_db_ready(&store->db, &opened, error);
    store->total = opened ? -1 : store->total;
    return code;
}

const struct fm_error *fm_store_trouble(const struct fm_store *store) {
    return &store->db.trouble;
}

static bool bind(sqlite3_stmt *statement, int index, const char *text, size_t len) {
    return sqlite3_bind_text64(statement, index, text ? text : "", len, SQLITE_STATIC, SQLITE_UTF8) == SQLITE_OK;
}

static bool bind_string(sqlite3_stmt *statement, int index, const char *text) {
    return bind(statement, index, text, strlen(text));
}

static enum fm_code not_found(const char *id, struct fm_error *error) {
    fm_fail(error, FM_NOT_FOUND, "Response with id '%.*s' not found.", FM_ID_SIZE, id);
    error->reason = "response_not_found";
    return error->code;
}

static enum fm_code damaged(const struct fm_store *store, const char *id, struct fm_error *error) {
    return fm_fail(error, FM_INTERNAL, "the stored response '%.*s' in %s is damaged: delete it (responses.delete)",
                   FM_ID_SIZE, id, store->db.file ? store->db.file : "memory");
}

/* ---- storing ---- */

static int64_t size_of(const struct fm_stored_response *response) {
    return (int64_t)(response->object.len + response->input.len + response->stream.len) + FM_STORE_ROW_BYTES;
}

/* Reads a size. A size that no row can have means damage; the nearest possible size is used. */
static int64_t clamp(int64_t bytes) {
    return bytes < FM_STORE_ROW_BYTES ? FM_STORE_ROW_BYTES : bytes > ROW_BYTES_MAX ? ROW_BYTES_MAX : bytes;
}

/* Writes the number of stored bytes to `*total`. Call it in a transaction. */
static bool count(struct fm_store *store, int64_t *total) {
    char sql[128];
    int64_t version = fm_store_db_number(&store->db, "PRAGMA data_version");
    if (store->total < 0 || version != store->counted) {
        snprintf(sql, sizeof sql, "SELECT coalesce(sum(max(%d, min(%lld, bytes))), 0) FROM responses",
                 FM_STORE_ROW_BYTES, ROW_BYTES_MAX);
        store->total = fm_store_db_number(&store->db, sql);
        store->counted = version;
    }
    *total = store->total;
    return version >= 0 && store->total >= 0;
}

/* Finds the key and the size of the response that is removed next. False: an error, or there is none. */
static bool find_oldest(struct fm_store *store, int64_t *key, int64_t *bytes) {
    sqlite3_stmt *statement = fm_store_db_prepare(&store->db, "SELECT key, bytes FROM responses ORDER BY used LIMIT 1");
    bool row = statement && sqlite3_step(statement) == SQLITE_ROW;
    *key = row ? sqlite3_column_int64(statement, 0) : 0;
    *bytes = row ? clamp(sqlite3_column_int64(statement, 1)) : 0;
    return sqlite3_finalize(statement) == SQLITE_OK && row;
}

static enum fm_code evict(struct fm_store *store, int64_t key, struct fm_error *error) {
    sqlite3_stmt *statement = fm_store_db_prepare(&store->db, "DELETE FROM responses WHERE key = ?1");
    bool bound = statement && sqlite3_bind_int64(statement, 1, key) == SQLITE_OK;
    if (!fm_store_db_run(statement, bound)) {
        return fm_store_db_fail(&store->db, error);
    }
    return sqlite3_changes(store->db.sqlite) > 0
               ? FM_OK
               : fm_store_db_fail_damaged(&store->db, "its index names a response that is not there", error);
}

/*
 * Removes the least recently used responses until there is room. Afterwards `*total` is the number of bytes that are
 * left.
 */
static enum fm_code make_room(struct fm_store *store, int64_t bytes, int64_t *total, struct fm_error *error) {
    enum fm_code code = count(store, total) ? FM_OK : fm_store_db_fail(&store->db, error);
    while (code == FM_OK && *total > 0 && *total + bytes > store->bytes_max) {
        int64_t key;
        int64_t freed;
        code = find_oldest(store, &key, &freed) ? evict(store, key, error) : fm_store_db_fail(&store->db, error);
        *total -= freed;
    }
    return code;
}

/* One more than the highest `used`. A value near the end of the range means damage, and is ignored. */
#define NEXT_USE "(SELECT coalesce(max(used), 0) + 1 FROM responses WHERE used < 4611686018427387904)"

static bool insert_response(struct fm_store *store, const struct fm_stored_response *response) {
    sqlite3_stmt *statement = fm_store_db_prepare(
        &store->db, "INSERT INTO responses(id, previous, used, bytes, object, input, stream, checksum)"
                    " VALUES(?1, ?2, " NEXT_USE ", ?3, ?4, ?5, ?6, checksum(?1, ?2, ?3, ?4, ?5, ?6))");
    bool bound = statement && bind_string(statement, 1, response->id) &&
                 bind_string(statement, 2, response->previous_id) &&
                 sqlite3_bind_int64(statement, 3, size_of(response)) == SQLITE_OK &&
                 bind(statement, 4, response->object.data, response->object.len) &&
                 bind(statement, 5, response->input.data, response->input.len) &&
                 bind(statement, 6, response->stream.data, response->stream.len);
    return fm_store_db_run(statement, bound);
}

static bool insert_items(struct fm_store *store, sqlite3_int64 response, struct json_object *items) {
    bool list = json_object_is_type(items, json_type_array);
    size_t count = list ? json_object_array_length(items) : 0;
    for (size_t i = 0; i < count; i++) {
        struct json_object *id = json_object_object_get(json_object_array_get_idx(items, i), "id");
        if (!json_object_is_type(id, json_type_string)) {
            continue;
        }
        sqlite3_stmt *statement = fm_store_db_prepare(&store->db, "INSERT OR IGNORE INTO items VALUES(?1, ?2)");
        bool bound = statement && bind_string(statement, 1, json_object_get_string(id)) &&
                     sqlite3_bind_int64(statement, 2, response) == SQLITE_OK;
        if (!fm_store_db_run(statement, bound)) {
            return false;
        }
    }
    return true;
}

static enum fm_code insert(struct fm_store *store, const struct fm_stored_response *response,
                           struct json_object *output, struct json_object *input, struct fm_error *error) {
    bool done = insert_response(store, response);
    sqlite3_int64 key = sqlite3_last_insert_rowid(store->db.sqlite);
    done = done && insert_items(store, key, output) && insert_items(store, key, input) &&
           fm_store_db_exec(&store->db, "COMMIT");
    return done ? FM_OK : fm_store_db_fail(&store->db, error);
}

static enum fm_code put_rows(struct fm_store *store, const struct fm_stored_response *response,
                             struct json_object *output, struct json_object *input, struct fm_error *error) {
    int64_t total;
    enum fm_code code = fm_store_open(store, error);
    code = code ? code : fm_store_db_begin(&store->db, error);
    if (code != FM_OK) {
        return code;
    }
    code = make_room(store, size_of(response), &total, error);
    code = code ? code : insert(store, response, output, input, error);
    if (code != FM_OK) {
        (void)fm_store_db_exec(&store->db, "ROLLBACK");
        return code;
    }
    store->total = total + size_of(response);
    fm_store_db_works(&store->db);
    return FM_OK;
}

enum fm_code fm_store_put(struct fm_store *store, const struct fm_stored_response *response, struct fm_error *error) {
    struct json_object *object = NULL;
    struct json_object *input = NULL;
    if (size_of(response) > store->bytes_max) {
        return fm_fail(error, FM_UNAVAILABLE,
                       "the response has %lld bytes, the store has room for %lld: raise the option storeBytes (--store-bytes)",
                       (long long)size_of(response), (long long)store->bytes_max);
    }
    enum fm_code code = fm_stored_json_read(&response->object, &object, error);
    code = code ? code : fm_stored_json_read(&response->input, &input, error);
    code = code ? code : put_rows(store, response, json_object_object_get(object, "output"), input, error);
    json_object_put(object);
    json_object_put(input);
    return code;
}

/* ---- reading ---- */

static bool take_text(sqlite3_stmt *statement, int column, struct fm_buf *text) {
    fm_buf_init(text, FM_STORE_TEXT_MAX);
    const unsigned char *bytes = sqlite3_column_text(statement, column);
    fm_buf_append(text, bytes, (size_t)sqlite3_column_bytes(statement, column));
    return bytes && !text->failed;
}

/* Reads the row of the response `response->id`, as the SELECT below returns it. */
static enum fm_code take_row(const struct fm_store *store, sqlite3_stmt *statement, struct fm_stored_response *response,
                             struct fm_error *error) {
    const char *previous = (const char *)sqlite3_column_text(statement, 1);
    bool whole = sqlite3_column_int(statement, 0) == 1 && previous;
    if (!whole) {
        bool no_memory = sqlite3_errcode(store->db.sqlite) == SQLITE_NOMEM;
        return no_memory ? fm_fail_no_memory(error) : damaged(store, response->id, error);
    }
    snprintf(response->previous_id, sizeof response->previous_id, "%s", previous);
    bool object = take_text(statement, 2, &response->object);
    bool input = take_text(statement, 3, &response->input);
    bool stream = take_text(statement, 4, &response->stream);
    return object && input && stream ? FM_OK : fm_fail_no_memory(error);
}

/* Notes a use. It does not matter if this fails or would have to wait, but damage that it finds is noted. */
static void note_use(struct fm_store *store, const char *id) {
    struct fm_error error;
    if (store->db.damaged) {
        return;
    }
    sqlite3_busy_timeout(store->db.sqlite, 0);
    sqlite3_stmt *statement = fm_store_db_prepare(
        &store->db, "UPDATE responses SET used = " NEXT_USE " WHERE id = ?1"
                    " AND used <> (SELECT max(used) FROM responses WHERE used < 4611686018427387904)");
    bool bound = statement && bind_string(statement, 1, id);
    if (fm_store_db_run(statement, bound)) {
        if (sqlite3_changes(store->db.sqlite) > 0) {
            fm_store_db_works(&store->db);
        }
    } else if (sqlite3_errcode(store->db.sqlite) == SQLITE_CORRUPT) {
        (void)fm_store_db_fail(&store->db, &error);
    }
}

static enum fm_code step_to_row(struct fm_store *store, sqlite3_stmt *statement, struct fm_stored_response *response,
                                struct fm_error *error) {
    switch (sqlite3_step(statement)) {
    case SQLITE_ROW: return take_row(store, statement, response, error);
    case SQLITE_DONE: return not_found(response->id, error);
    case SQLITE_TOOBIG: return damaged(store, response->id, error);
    default: return fm_store_db_fail(&store->db, error);
    }
}

enum fm_code fm_store_get(struct fm_store *store, const char *id, struct fm_stored_response *response,
                          struct fm_error *error) {
    enum fm_code code = fm_store_open(store, error);
    if (code != FM_OK) {
        return code;
    }
    /* the checksum covers the requested id, because a damaged index may lead to another row */
    sqlite3_stmt *statement = fm_store_db_prepare(
        &store->db, "SELECT checksum = checksum(?1, previous, bytes, object, input, stream), previous, object, input,"
                    " stream FROM responses WHERE id = ?1");
    if (!statement || !bind_string(statement, 1, id)) {
        sqlite3_finalize(statement);
        return fm_store_db_fail(&store->db, error);
    }
    *response = (struct fm_stored_response){0};
    snprintf(response->id, sizeof response->id, "%s", id);
    code = step_to_row(store, statement, response, error);
    sqlite3_finalize(statement);
    if (code != FM_OK) {
        fm_stored_response_free(response);
        return code;
    }
    note_use(store, id);
    return FM_OK;
}

/* Deletes by key, but only if the row has that id: a damaged index may lead to another row. */
static enum fm_code delete_row(struct fm_store *store, const char *id, struct fm_error *error) {
    sqlite3_stmt *statement =
        fm_store_db_prepare(&store->db, "DELETE FROM responses WHERE key = (SELECT key FROM responses WHERE id = ?1)"
                                        " AND +id = ?1");
    bool bound = statement && bind_string(statement, 1, id);
    if (!fm_store_db_run(statement, bound)) {
        return fm_store_db_fail(&store->db, error);
    }
    return sqlite3_changes(store->db.sqlite) > 0 ? FM_OK : not_found(id, error);
}

enum fm_code fm_store_delete(struct fm_store *store, const char *id, struct fm_error *error) {
    enum fm_code code = fm_store_open(store, error);
    code = code ? code : fm_store_db_begin(&store->db, error);
    if (code != FM_OK) {
        return code;
    }
    code = delete_row(store, id, error);
    if (code == FM_OK && !fm_store_db_exec(&store->db, "COMMIT")) {
        code = fm_store_db_fail(&store->db, error);
    }
    if (code != FM_OK) {
        (void)fm_store_db_exec(&store->db, "ROLLBACK");
        return code;
    }
    store->total = -1;
    fm_store_db_works(&store->db);
    /*
     * Without this, the text stays in the log and, until the log is copied, in the file. While another process reads,
     * the text stays.
     */
    sqlite3_busy_timeout(store->db.sqlite, 0);
    (void)fm_store_db_exec(&store->db, "PRAGMA wal_checkpoint(TRUNCATE)");
    return FM_OK;
}

/*
 * Finds the last response that has the item. If the response is missing, the store is damaged, because items are
 * deleted with their response.
 */
static enum fm_code take_found(struct fm_store *store, sqlite3_stmt *statement, const char *item_id,
                               char id[FM_ID_SIZE], struct fm_error *error) {
    int step = bind_string(statement, 1, item_id) ? sqlite3_step(statement) : SQLITE_ERROR;
    if (step != SQLITE_ROW) {
        return step == SQLITE_DONE ? not_found(item_id, error) : fm_store_db_fail(&store->db, error);
    }
    const char *found = (const char *)sqlite3_column_text(statement, 0);
    if (!found) {
        return fm_store_db_fail_damaged(&store->db, "an item's response is not there", error);
    }
    snprintf(id, FM_ID_SIZE, "%s", found);
    return FM_OK;
}

enum fm_code fm_store_find_item(struct fm_store *store, const char *item_id, char id[FM_ID_SIZE],
                                struct fm_error *error) {
    enum fm_code code = fm_store_open(store, error);
    if (code != FM_OK) {
        return code;
    }
    sqlite3_stmt *statement =
        fm_store_db_prepare(&store->db, "SELECT r.id FROM items i LEFT JOIN responses r ON r.key = i.response"
                                        " WHERE i.id = ?1 ORDER BY i.response DESC LIMIT 1");
    code = statement ? take_found(store, statement, item_id, id, error) : fm_store_db_fail(&store->db, error);
    sqlite3_finalize(statement);
    return code;
}
