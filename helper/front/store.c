#include "front/store.h"
#include "base/file.h"

#include <json-c/json.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX       (64u << 20)  /* bytes of a stored text that is read back */
#define APPLICATION_ID "1718448752" /* "fmpp" as a number of 4 bytes: what the file is (sqlite.org/pragma.html) */
#define SCHEMA_VERSION 2

struct fm_store {
    sqlite3 *db;
    int64_t bytes_max;
    const char *name; /* of the file, for errors; borrowed */
};

/* ---- statements ---- */

/* Text goes in and comes out by index; the bytes stay the caller's until the statement is finished. */
static sqlite3_stmt *prepare(struct fm_store *store, const char *sql) {
    sqlite3_stmt *statement = NULL;
    sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL);
    return statement;
}

static bool bind(sqlite3_stmt *statement, int index, const char *text, size_t len) {
    return sqlite3_bind_text64(statement, index, text ? text : "", len, SQLITE_STATIC, SQLITE_UTF8) == SQLITE_OK;
}

static bool bind_string(sqlite3_stmt *statement, int index, const char *text) {
    return bind(statement, index, text, strlen(text));
}

/* Runs a statement without rows, unless it could not be prepared (NULL) or `bound`; and finalizes it. */
static bool run(sqlite3_stmt *statement, bool bound) {
    bool done = statement && bound && sqlite3_step(statement) == SQLITE_DONE;
    return sqlite3_finalize(statement) == SQLITE_OK && done;
}

static bool run_sql(struct fm_store *store, const char *sql) {
    return sqlite3_exec(store->db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

static enum fm_code fail(struct fm_store *store, struct fm_error *error) {
    int code = sqlite3_extended_errcode(store->db);
    return fm_fail(error, FM_UNAVAILABLE, "the store of responses %s can't be used: %s", store->name,
                   sqlite3_errstr(code == SQLITE_OK || code == SQLITE_DONE ? SQLITE_ERROR : code));
}

static enum fm_code not_found(const char *id, struct fm_error *error) {
    fm_fail(error, FM_NOT_FOUND, "Response with id '%.*s' not found.", FM_ID_SIZE, id);
    error->openai_code = "response_not_found";
    return error->code;
}

/* ---- opening ---- */

/*
 * `used` rises with every use. `total` is kept by triggers, so that several processes agree on it.
 */
static const char schema[] =
    "CREATE TABLE responses(key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, previous TEXT NOT NULL,"
    " used INTEGER NOT NULL, bytes INTEGER NOT NULL, object TEXT NOT NULL, input TEXT NOT NULL,"
    " stream TEXT NOT NULL);"
    "CREATE INDEX responses_used ON responses(used);"
    "CREATE TABLE items(id TEXT NOT NULL, response INTEGER NOT NULL REFERENCES responses(key) ON DELETE CASCADE,"
    " PRIMARY KEY(id, response)) WITHOUT ROWID;"
    "CREATE INDEX items_response ON items(response);"
    "CREATE TABLE total(bytes INTEGER NOT NULL);"
    "INSERT INTO total VALUES(0);"
    "CREATE TRIGGER put AFTER INSERT ON responses BEGIN UPDATE total SET bytes = bytes + new.bytes; END;"
    "CREATE TRIGGER removed AFTER DELETE ON responses BEGIN UPDATE total SET bytes = bytes - old.bytes; END;"
    "PRAGMA application_id = " APPLICATION_ID ";"
    "PRAGMA user_version = 2;";

static int64_t read_pragma(struct fm_store *store, const char *sql) {
    sqlite3_stmt *statement = prepare(store, sql);
    bool row = statement && sqlite3_step(statement) == SQLITE_ROW;
    int64_t value = row ? sqlite3_column_int64(statement, 0) : -1;
    sqlite3_finalize(statement);
    return value;
}

static bool is_empty(struct fm_store *store) {
    return read_pragma(store, "SELECT count(*) FROM sqlite_master") == 0;
}

/* A file with tables and another application's number belongs to somebody else; nothing of it has been changed yet. */
static enum fm_code check_file(struct fm_store *store, struct fm_error *error) {
    int64_t application = read_pragma(store, "PRAGMA application_id");
    int64_t version = read_pragma(store, "PRAGMA user_version");
    if (application < 0 || version < 0) {
        return fail(store, error);
    }
    if (is_empty(store)) {
        return FM_OK;
    }
    if (application != strtoll(APPLICATION_ID, NULL, 10)) {
        return fm_fail(error, FM_UNAVAILABLE, "the file %s holds something else than a store of responses",
                       store->name);
    }
    return version == SCHEMA_VERSION
               ? FM_OK
               : fm_fail(error, FM_UNAVAILABLE, "the store of responses %s is of version %lld, not %d", store->name,
                         (long long)version, SCHEMA_VERSION);
}

/* secure_delete: what is deleted is the user's text. */
static const char settings[] = "PRAGMA journal_mode = WAL;"
                               "PRAGMA synchronous = NORMAL;"
                               "PRAGMA foreign_keys = ON;"
                               "PRAGMA secure_delete = ON;"
                               "PRAGMA temp_store = MEMORY;"
                               "PRAGMA trusted_schema = OFF;";

static enum fm_code set_up(struct fm_store *store, struct fm_error *error) {
    bool done = run_sql(store, settings) && run_sql(store, "BEGIN IMMEDIATE"); /* two processes may come at once */
    done = done && (!is_empty(store) || run_sql(store, schema));
    return done && run_sql(store, "COMMIT") ? FM_OK : fail(store, error);
}

static enum fm_code open_file(struct fm_store *store, const char *file, struct fm_error *error) {
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    enum fm_code code = file ? fm_file_create(file, error) : FM_OK;
    if (code == FM_OK && sqlite3_open_v2(file ? file : ":memory:", &store->db, flags, NULL) != SQLITE_OK) {
        return store->db ? fail(store, error) : fm_fail_no_memory(error);
    }
    if (code == FM_OK) {
        sqlite3_busy_timeout(store->db, FM_STORE_BUSY_MS);
        code = check_file(store, error);
    }
    return code == FM_OK && file ? fm_file_make_private(file, error) : code;
}

enum fm_code fm_store_open(const char *file, int64_t bytes_max, struct fm_store **store, struct fm_error *error) {
    *store = calloc(1, sizeof **store);
    if (!*store) {
        return fm_fail_no_memory(error);
    }
    **store = (struct fm_store){.bytes_max = bytes_max, .name = file ? file : "in memory"};
    enum fm_code code = open_file(*store, file, error);
    code = code ? code : set_up(*store, error);
    if (code != FM_OK) {
        fm_store_close(*store);
        *store = NULL;
    }
    return code;
}

void fm_store_close(struct fm_store *store) {
    if (store) {
        sqlite3_close(store->db);
        free(store);
    }
}

/* ---- putting ---- */

static int64_t size_of(const struct fm_stored_response *response) {
    return (int64_t)(response->object.len + response->input.len + response->stream.len) + FM_STORE_ROW_BYTES;
}

/* The least recently used ones go until there is room. */
static bool make_room(struct fm_store *store, int64_t bytes) {
    int64_t total = read_pragma(store, "SELECT bytes FROM total");
    while (total > 0 && total + bytes > store->bytes_max) {
        if (!run_sql(store, "DELETE FROM responses WHERE key = (SELECT key FROM responses ORDER BY used LIMIT 1)")) {
            return false;
        }
        total = read_pragma(store, "SELECT bytes FROM total");
    }
    return total >= 0;
}

static bool insert_response(struct fm_store *store, const struct fm_stored_response *response) {
    sqlite3_stmt *statement =
        prepare(store, "INSERT INTO responses(id, previous, used, bytes, object, input, stream)"
                       " VALUES(?1, ?2, (SELECT coalesce(max(used), 0) + 1 FROM responses), ?3, ?4, ?5, ?6)");
    bool bound = statement && bind_string(statement, 1, response->id) &&
                 bind_string(statement, 2, response->previous_id) &&
                 sqlite3_bind_int64(statement, 3, size_of(response)) == SQLITE_OK &&
                 bind(statement, 4, response->object.data, response->object.len) &&
                 bind(statement, 5, response->input.data, response->input.len) &&
                 bind(statement, 6, response->stream.data, response->stream.len);
    return run(statement, bound);
}

static bool insert_items(struct fm_store *store, sqlite3_int64 response, struct json_object *items) {
    bool list = json_object_is_type(items, json_type_array);
    size_t count = list ? json_object_array_length(items) : 0;
    for (size_t i = 0; i < count; i++) {
        struct json_object *id = json_object_object_get(json_object_array_get_idx(items, i), "id");
        if (!json_object_is_type(id, json_type_string)) {
            continue;
        }
        sqlite3_stmt *statement = prepare(store, "INSERT OR IGNORE INTO items VALUES(?1, ?2)");
        bool bound = statement && bind_string(statement, 1, json_object_get_string(id)) &&
                     sqlite3_bind_int64(statement, 2, response) == SQLITE_OK;
        if (!run(statement, bound)) {
            return false;
        }
    }
    return true;
}

static enum fm_code put(struct fm_store *store, const struct fm_stored_response *response, struct json_object *output,
                        struct json_object *input, struct fm_error *error) {
    if (!run_sql(store, "BEGIN IMMEDIATE")) {
        return fail(store, error);
    }
    bool done = make_room(store, size_of(response)) && insert_response(store, response);
    sqlite3_int64 key = sqlite3_last_insert_rowid(store->db);
    done = done && insert_items(store, key, output) && insert_items(store, key, input) && run_sql(store, "COMMIT");
    if (!done) {
        (void)fail(store, error);
        (void)run_sql(store, "ROLLBACK");
        return error->code;
    }
    return FM_OK;
}

enum fm_code fm_store_put(struct fm_store *store, const struct fm_stored_response *response, struct fm_error *error) {
    struct json_object *object = NULL;
    struct json_object *input = NULL;
    if (size_of(response) > store->bytes_max) {
        return fm_fail(error, FM_UNAVAILABLE, "the response has %lld bytes, the store has room for %lld",
                       (long long)size_of(response), (long long)store->bytes_max);
    }
    enum fm_code code = fm_stored_json_read(&response->object, &object, error);
    code = code ? code : fm_stored_json_read(&response->input, &input, error);
    code = code ? code : put(store, response, json_object_object_get(object, "output"), input, error);
    json_object_put(object);
    json_object_put(input);
    return code;
}

/* ---- getting ---- */

static bool take_text(sqlite3_stmt *statement, int column, struct fm_buf *text) {
    fm_buf_init(text, TEXT_MAX);
    const unsigned char *bytes = sqlite3_column_text(statement, column);
    fm_buf_append(text, bytes, (size_t)sqlite3_column_bytes(statement, column));
    return bytes && !text->failed;
}

static bool take_row(sqlite3_stmt *statement, struct fm_stored_response *response) {
    const unsigned char *previous = sqlite3_column_text(statement, 0);
    snprintf(response->previous_id, sizeof response->previous_id, "%s", previous ? (const char *)previous : "");
    bool object = take_text(statement, 1, &response->object);
    bool input = take_text(statement, 2, &response->input);
    bool stream = take_text(statement, 3, &response->stream);
    return object && input && stream;
}

/* Of no consequence where it fails. */
static void note_use(struct fm_store *store, const char *id) {
    sqlite3_stmt *statement =
        prepare(store, "UPDATE responses SET used = (SELECT max(used) + 1 FROM responses) WHERE id = ?1"
                       " AND used < (SELECT max(used) FROM responses)");
    if (statement && bind_string(statement, 1, id)) {
        sqlite3_step(statement);
    }
    sqlite3_finalize(statement);
}

enum fm_code fm_store_get(struct fm_store *store, const char *id, struct fm_stored_response *response,
                          struct fm_error *error) {
    sqlite3_stmt *statement = prepare(store, "SELECT previous, object, input, stream FROM responses WHERE id = ?1");
    if (!statement || !bind_string(statement, 1, id)) {
        sqlite3_finalize(statement);
        return fail(store, error);
    }
    *response = (struct fm_stored_response){0};
    snprintf(response->id, sizeof response->id, "%s", id);
    enum fm_code code = FM_OK;
    switch (sqlite3_step(statement)) {
    case SQLITE_ROW: code = take_row(statement, response) ? FM_OK : fm_fail_no_memory(error); break;
    case SQLITE_DONE: code = not_found(id, error); break;
    default: code = fail(store, error); break;
    }
    sqlite3_finalize(statement);
    if (code != FM_OK) {
        fm_stored_response_free(response);
        return code;
    }
    note_use(store, id);
    return FM_OK;
}

enum fm_code fm_store_delete(struct fm_store *store, const char *id, struct fm_error *error) {
    sqlite3_stmt *statement = prepare(store, "DELETE FROM responses WHERE id = ?1");
    bool bound = statement && bind_string(statement, 1, id);
    if (!run(statement, bound)) {
        return fail(store, error);
    }
    if (sqlite3_changes(store->db) == 0) {
        return not_found(id, error);
    }
    /* or the text stays in the log and, until that is copied, in the file; it fails where another process reads */
    (void)run_sql(store, "PRAGMA wal_checkpoint(TRUNCATE)");
    return FM_OK;
}

enum fm_code fm_store_find_item(struct fm_store *store, const char *item_id, char id[FM_ID_SIZE],
                                struct fm_error *error) {
    sqlite3_stmt *statement = prepare(store, "SELECT r.id FROM items i JOIN responses r ON r.key = i.response"
                                             " WHERE i.id = ?1 ORDER BY i.response DESC LIMIT 1");
    int step = statement && bind_string(statement, 1, item_id) ? sqlite3_step(statement) : SQLITE_ERROR;
    enum fm_code code = FM_OK;
    if (step == SQLITE_ROW) {
        snprintf(id, FM_ID_SIZE, "%s", (const char *)sqlite3_column_text(statement, 0));
    } else {
        code = step == SQLITE_DONE ? not_found(item_id, error) : fail(store, error);
    }
    sqlite3_finalize(statement);
    return code;
}
