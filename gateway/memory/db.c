/*
 * memory.db. Each change is one transaction over the file and the vectors in memory, so both always have the same
 * chunks.
 */
#include "memory/db.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "memory/db_internal.h"
#include "text/fold.h"

#include <sqlite-vec.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define APPLICATION_ID 1785885293 /* "jrvm" as a number of 4 bytes: what the file is (sqlite.org/pragma.html) */
#define SCHEMA_VERSION 2
#define WORDS_MAX      (1u << 20) /* bytes that the index gets of a chunk, which has at most some thousand */
#define BUSY_MS        2000       /* another program, such as the sqlite3 shell, may read the file */
#define NOT_WHOLE      "-"        /* before the hash of a file of which some chunks have no vector */

/*
 * gw_fold_for_index prepares the words. The tokenizer reduces them to their English stems, and takes marks for parts of
 * a word, as Hindi and Thai need. The triggers keep chunks_fts equal to chunks.
 */
static const char words_schema[] =
    "CREATE VIRTUAL TABLE chunks_fts USING fts5(content, content='chunks', content_rowid='id',"
    " tokenize=\"porter unicode61 categories 'L* M* N* Co'\");"
    "CREATE TRIGGER chunks_insert AFTER INSERT ON chunks BEGIN"
    " INSERT INTO chunks_fts(rowid, content) VALUES(new.id, gw_words(new.content)); END;"
    "CREATE TRIGGER chunks_delete AFTER DELETE ON chunks BEGIN"
    " INSERT INTO chunks_fts(chunks_fts, rowid, content) VALUES('delete', old.id, gw_words(old.content)); END;";

/* Version 1 indexed the words as they were. */
static const char drop_words[] = "DROP TRIGGER chunks_insert; DROP TRIGGER chunks_delete; DROP TABLE chunks_fts;";
static const char index_words[] = "INSERT INTO chunks_fts(rowid, content) SELECT id, gw_words(content) FROM chunks;";

static const char schema[] =
    "CREATE TABLE files(path TEXT PRIMARY KEY, hash TEXT, indexed_at INTEGER);"
    "CREATE TABLE chunks(id INTEGER PRIMARY KEY, file_path TEXT, content TEXT, embedding BLOB);"
    "CREATE INDEX chunks_file_path ON chunks(file_path);"
    "CREATE TABLE embedding_cache(hash TEXT PRIMARY KEY, embedding BLOB, created_at INTEGER);"
    "CREATE TABLE embedding_model(name TEXT, dimensions INTEGER);";

static bool is_damaged(int code) {
    return (code & 0xff) == SQLITE_CORRUPT || (code & 0xff) == SQLITE_NOTADB;
}

/* ---- SQL ---- */

sqlite3_stmt *gw_memory_db_prepare(struct gw_memory_db *db, const char *sql) {
    sqlite3_stmt *statement = NULL;
    if (db->sqlite) {
        sqlite3_prepare_v2(db->sqlite, sql, -1, &statement, NULL);
    }
    return statement;
}

enum fm_code gw_memory_db_fail(struct gw_memory_db *db, struct fm_error *error) {
    if (!db->sqlite) {
        return fm_fail(error, FM_UNAVAILABLE,
                       "the memory %s can't be opened: look at the disk, and restart the gateway", db->path);
    }
    db->damaged = db->damaged || is_damaged(sqlite3_extended_errcode(db->sqlite));
    return fm_fail(error, FM_UNAVAILABLE, "the memory %s can't be used (%s)", db->path, sqlite3_errmsg(db->sqlite));
}

static bool exec(struct gw_memory_db *db, const char *sql) {
    return db->sqlite && sqlite3_exec(db->sqlite, sql, NULL, NULL, NULL) == SQLITE_OK;
}

/* Runs a statement that gives no rows, and finalizes it. */
static bool run_statement(sqlite3_stmt *statement) {
    bool done = statement && sqlite3_step(statement) == SQLITE_DONE;
    return sqlite3_finalize(statement) == SQLITE_OK && done;
}

/* Returns the number that a query gives; -1: it gave none, or failed. */
static int64_t number(struct gw_memory_db *db, const char *sql) {
    sqlite3_stmt *statement = gw_memory_db_prepare(db, sql);
    bool row = statement && sqlite3_step(statement) == SQLITE_ROW;
    int64_t value = row ? sqlite3_column_int64(statement, 0) : -1;
    return sqlite3_finalize(statement) == SQLITE_OK ? value : -1;
}

/* Ends a transaction: commits it if all went well. */
static enum fm_code end_transaction(struct gw_memory_db *db, bool done, struct fm_error *error) {
    if (done && exec(db, "COMMIT")) {
        return FM_OK;
    }
    enum fm_code code = gw_memory_db_fail(db, error);
    exec(db, "ROLLBACK");
    return code;
}

/* ---- the vectors in memory ---- */

static bool make_vectors(struct gw_memory_db *db, size_t dimensions) {
    char sql[160];
    snprintf(sql, sizeof sql, "CREATE VIRTUAL TABLE vectors.knn USING vec0(embedding float[%zu])", dimensions);
    return exec(db, sql);
}

static bool load_vectors(struct gw_memory_db *db) {
    char sql[256];
    snprintf(sql, sizeof sql,
             "INSERT INTO vectors.knn(rowid, embedding) SELECT id, embedding FROM main.chunks"
             " WHERE length(embedding) = %zu",
             db->dimensions * sizeof(float));
    return make_vectors(db, db->dimensions) && exec(db, "BEGIN") && exec(db, sql) && exec(db, "COMMIT");
}

/* Drops everything, because it belongs to another model. Runs in a transaction. */
static bool empty(struct gw_memory_db *db) {
    bool done = exec(db, "DELETE FROM chunks; DELETE FROM files; DELETE FROM embedding_cache;"
                         "DELETE FROM embedding_model; DROP TABLE IF EXISTS vectors.knn");
    db->dimensions = done ? 0 : db->dimensions;
    return done;
}

/* Runs in a transaction. */
static bool set_model(struct gw_memory_db *db, size_t dimensions) {
    sqlite3_stmt *statement = gw_memory_db_prepare(db, "INSERT INTO embedding_model VALUES(?1, ?2)");
    sqlite3_bind_text(statement, 1, db->model, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 2, (sqlite3_int64)dimensions);
    return run_statement(statement) && make_vectors(db, dimensions);
}

/* ---- open ---- */

/* Creates the tables in an empty file, or indexes the words anew. False: a failure, or a database that is not ours. */
static bool open_tables(struct gw_memory_db *db, bool *ours) {
    int64_t id = number(db, "PRAGMA application_id");
    int64_t version = number(db, "PRAGMA user_version");
    int64_t tables = number(db, "SELECT count(*) FROM sqlite_schema");
    char sql[128];
    snprintf(sql, sizeof sql, "PRAGMA application_id=%d; PRAGMA user_version=%d; COMMIT", APPLICATION_ID,
             SCHEMA_VERSION);
    *ours = id == APPLICATION_ID && version == SCHEMA_VERSION;
    if (id == 0 && version == 0 && tables == 0) {
        db->is_new = true;
        *ours = exec(db, "BEGIN IMMEDIATE") && exec(db, schema) && exec(db, words_schema) && exec(db, sql);
    } else if (id == APPLICATION_ID && version == 1) {
        *ours = exec(db, "BEGIN IMMEDIATE") && exec(db, drop_words) && exec(db, words_schema) &&
                exec(db, index_words) && exec(db, sql);
    }
    return *ours;
}

/* The SQL function gw_words(TEXT). */
static void words_of(sqlite3_context *context, int count, sqlite3_value **values) {
    const char *text = (const char *)sqlite3_value_text(values[0]);
    struct fm_buf words;
    (void)count;
    fm_buf_init(&words, WORDS_MAX);
    if (gw_fold_for_index(text ? text : "", (size_t)sqlite3_value_bytes(values[0]), &words)) {
        sqlite3_result_text(context, words.data ? words.data : "", (int)words.len, SQLITE_TRANSIENT);
    } else {
        sqlite3_result_error_nomem(context);
    }
    fm_buf_free(&words);
}

/* Empties the database if its vectors are another model's. */
static bool check_model(struct gw_memory_db *db) {
    sqlite3_stmt *statement = gw_memory_db_prepare(db, "SELECT name, dimensions FROM embedding_model");
    bool row = statement && sqlite3_step(statement) == SQLITE_ROW;
    const char *name = row ? (const char *)sqlite3_column_text(statement, 0) : NULL;
    int64_t dimensions = row ? sqlite3_column_int64(statement, 1) : 0;
    bool same =
        name && (!*db->model || strcmp(name, db->model) == 0) && dimensions > 0 && dimensions <= GW_DIMENSIONS_MAX;
    if (!statement || sqlite3_finalize(statement) != SQLITE_OK) {
        return false;
    }
    if (same) {
        db->dimensions = (size_t)dimensions;
        return load_vectors(db);
    }
    if (row) {
        struct fm_error error;
        db->is_new = true;
        return exec(db, "BEGIN IMMEDIATE") && end_transaction(db, empty(db), &error) == FM_OK;
    }
    return true;
}

/* Returns the extended result code of the failure; SQLITE_NOTADB for a file of another program. */
static int open_file(struct gw_memory_db *db) {
    char *unused = NULL;
    bool ours = false;
    db->dimensions = 0;
    if (sqlite3_open_v2(db->path, &db->sqlite, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                        NULL) != SQLITE_OK) {
        return sqlite3_extended_errcode(db->sqlite);
    }
    sqlite3_busy_timeout(db->sqlite, BUSY_MS);
    sqlite3_vec_init(db->sqlite, &unused, NULL);
    sqlite3_free(unused);
    sqlite3_create_function(db->sqlite, "gw_words", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, NULL,
                            words_of, NULL, NULL);
    bool done = exec(db, "PRAGMA page_size=8192; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
                         "PRAGMA secure_delete=ON; ATTACH ':memory:' AS vectors") &&
                open_tables(db, &ours) && check_model(db);
    if (done) {
        return SQLITE_OK;
    }
    int code = sqlite3_extended_errcode(db->sqlite);
    return code == SQLITE_OK || code == SQLITE_DONE || code == SQLITE_ROW ? (ours ? SQLITE_ERROR : SQLITE_NOTADB)
                                                                          : code;
}

static void close_file(struct gw_memory_db *db) {
    sqlite3_close(db->sqlite);
    db->sqlite = NULL;
}

static void move_aside(struct gw_memory_db *db) {
    char to[4200];
    char beside[4200];
    static const char *const endings[] = {"-wal", "-shm"};
    snprintf(to, sizeof to, "%s.broken-%lld", db->path, (long long)fm_wall_seconds());
    if (rename(db->path, to) == 0) {
        fm_log(FM_LOG_WARN, "the memory was damaged: the file is now %s, and everything is indexed anew", to);
    }
    for (size_t i = 0; i < 2; i++) {
        snprintf(beside, sizeof beside, "%s%s", db->path, endings[i]);
        fm_file_remove(beside);
    }
}

/* A damaged file is moved aside once. */
static enum fm_code open_or_begin(struct gw_memory_db *db, struct fm_error *error) {
    int code = open_file(db);
    if (is_damaged(code)) {
        close_file(db);
        move_aside(db);
        code = open_file(db);
    }
    if (code == SQLITE_OK) {
        return FM_OK;
    }
    fm_fail(error, FM_UNAVAILABLE, "the memory %s can't be opened (%s): look at its rights and the disk", db->path,
            sqlite3_errstr(code));
    close_file(db);
    return error->code;
}

enum fm_code gw_memory_db_open(const char *path, const char *model, struct gw_memory_db **out, struct fm_error *error) {
    struct gw_memory_db *db = calloc(1, sizeof *db);
    if (!db || !(db->path = strdup(path)) || !(db->model = strdup(model))) {
        gw_memory_db_close(db);
        return fm_fail_no_memory(error);
    }
    /* creates the file with mode 0600; SQLite gives the -wal and -shm files the same mode */
    enum fm_code code = fm_file_create(path, error);
    code = code == FM_OK ? open_or_begin(db, error) : code;
    if (code != FM_OK) {
        gw_memory_db_close(db);
        return code;
    }
    *out = db;
    return FM_OK;
}

void gw_memory_db_close(struct gw_memory_db *db) {
    if (db) {
        close_file(db);
        free(db->path);
        free(db->model);
        free(db);
    }
}

bool gw_memory_db_is_new(struct gw_memory_db *db) {
    bool is_new = db->is_new;
    db->is_new = false;
    return is_new;
}

void gw_memory_db_mend(struct gw_memory_db *db) {
    struct fm_error error;
    if (db->sqlite && !db->damaged) {
        return;
    }
    db->damaged = false;
    if (db->sqlite) {
        close_file(db);
        move_aside(db);
    }
    if (fm_file_create(db->path, &error) != FM_OK || open_or_begin(db, &error) != FM_OK) {
        fm_log(FM_LOG_ERROR, "%s", error.detail);
    }
}

/* ---- files ---- */

enum fm_code gw_memory_db_hash(struct gw_memory_db *db, const char *path, char hash[GW_HASH_LEN + 1], bool *whole,
                               struct fm_error *error) {
    sqlite3_stmt *statement = gw_memory_db_prepare(db, "SELECT hash FROM files WHERE path = ?1");
    if (!statement) {
        return gw_memory_db_fail(db, error);
    }
    sqlite3_bind_text(statement, 1, path, -1, SQLITE_STATIC);
    hash[0] = '\0';
    *whole = true;
    if (sqlite3_step(statement) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(statement, 0);
        *whole = !text || text[0] != NOT_WHOLE[0];
        snprintf(hash, GW_HASH_LEN + 1, "%s", text ? text + !*whole : "");
    }
    return sqlite3_finalize(statement) == SQLITE_OK ? FM_OK : gw_memory_db_fail(db, error);
}

enum fm_code gw_memory_db_files(struct gw_memory_db *db, bool (*each)(void *context, const char *path), void *context,
                                struct fm_error *error) {
    sqlite3_stmt *statement = gw_memory_db_prepare(db, "SELECT path FROM files");
    if (!statement) {
        return gw_memory_db_fail(db, error);
    }
    bool more = true;
    while (more && sqlite3_step(statement) == SQLITE_ROW) {
        const char *path = (const char *)sqlite3_column_text(statement, 0);
        more = !path || each(context, path);
    }
    return sqlite3_finalize(statement) == SQLITE_OK ? FM_OK : gw_memory_db_fail(db, error);
}

enum fm_code gw_memory_db_look_up(struct gw_memory_db *db, struct gw_chunks *chunks, struct fm_error *error) {
    sqlite3_stmt *statement = gw_memory_db_prepare(db, "SELECT embedding FROM embedding_cache WHERE hash = ?1");
    bool memory = true;
    if (!statement) {
        return gw_memory_db_fail(db, error);
    }
    for (size_t i = 0; memory && db->dimensions && i < chunks->count; i++) {
        sqlite3_bind_text(statement, 1, chunks->items[i].hash, -1, SQLITE_STATIC);
        if (sqlite3_step(statement) == SQLITE_ROW &&
            (size_t)sqlite3_column_bytes(statement, 0) == db->dimensions * sizeof(float)) {
            memory = gw_chunks_set_vector(chunks, i, sqlite3_column_blob(statement, 0), db->dimensions);
        }
        sqlite3_reset(statement);
    }
    bool done = sqlite3_finalize(statement) == SQLITE_OK;
    return !memory ? fm_fail_no_memory(error) : done ? FM_OK : gw_memory_db_fail(db, error);
}

/* ---- chunks ---- */

/* Deletes one chunk and its vector. Runs in a transaction. */
static bool drop_chunk(struct gw_memory_db *db, int64_t id, const char *hash) {
    sqlite3_stmt *chunk = gw_memory_db_prepare(db, "DELETE FROM chunks WHERE id = ?1");
    sqlite3_bind_int64(chunk, 1, id);
    sqlite3_stmt *cached = gw_memory_db_prepare(db, "DELETE FROM embedding_cache WHERE hash = ?1");
    sqlite3_bind_text(cached, 1, hash, -1, SQLITE_STATIC);
    sqlite3_stmt *vector = db->dimensions ? gw_memory_db_prepare(db, "DELETE FROM vectors.knn WHERE rowid = ?1") : NULL;
    sqlite3_bind_int64(vector, 1, id);
    bool chunk_done = run_statement(chunk);
    bool cached_done = run_statement(cached);
    return chunk_done && cached_done && (!db->dimensions || run_statement(vector));
}

static bool add_vector(struct gw_memory_db *db, int64_t id, const struct gw_chunk *chunk, size_t bytes) {
    sqlite3_stmt *vector = gw_memory_db_prepare(db, "INSERT INTO vectors.knn(rowid, embedding) VALUES(?1, ?2)");
    sqlite3_bind_int64(vector, 1, id);
    sqlite3_bind_blob64(vector, 2, chunk->vector, bytes, SQLITE_STATIC);
    sqlite3_stmt *cached = gw_memory_db_prepare(db, "INSERT OR REPLACE INTO embedding_cache VALUES(?1, ?2, ?3)");
    sqlite3_bind_text(cached, 1, chunk->hash, -1, SQLITE_STATIC);
    sqlite3_bind_blob64(cached, 2, chunk->vector, bytes, SQLITE_STATIC);
    sqlite3_bind_int64(cached, 3, fm_wall_seconds());
    bool vector_done = run_statement(vector);
    return run_statement(cached) && vector_done;
}

static bool add_chunk(struct gw_memory_db *db, const char *path, const struct gw_chunk *chunk) {
    size_t bytes = db->dimensions * sizeof(float);
    sqlite3_stmt *statement =
        gw_memory_db_prepare(db, "INSERT INTO chunks(file_path, content, embedding) VALUES(?1, ?2, ?3)");
    sqlite3_bind_text(statement, 1, path, -1, SQLITE_STATIC);
    sqlite3_bind_text64(statement, 2, chunk->text, chunk->len, SQLITE_STATIC, SQLITE_UTF8);
    if (chunk->vector) {
        sqlite3_bind_blob64(statement, 3, chunk->vector, bytes, SQLITE_STATIC);
    }
    return run_statement(statement) &&
           (!chunk->vector || add_vector(db, sqlite3_last_insert_rowid(db->sqlite), chunk, bytes));
}

/*
 * Finds the first chunk with this hash that is not `kept` yet. If the stored chunk has no vector, the found chunk must
 * have none either.
 */
static size_t find_same(const struct gw_chunks *chunks, const bool *kept, const char *hash, bool has_vector) {
    size_t i = 0;
    while (i < chunks->count &&
           (kept[i] || strcmp(chunks->items[i].hash, hash) != 0 || (chunks->items[i].vector && !has_vector))) {
        i++;
    }
    return i;
}

/* Deletes the stored chunks that the file no longer has, and marks those that it still has as `kept`. */
static bool drop_old(struct gw_memory_db *db, const char *path, const struct gw_chunks *chunks, bool *kept) {
    sqlite3_stmt *old =
        gw_memory_db_prepare(db, "SELECT id, content, embedding IS NOT NULL FROM chunks WHERE file_path = ?1");
    bool done = old;
    sqlite3_bind_text(old, 1, path, -1, SQLITE_STATIC);
    while (done && sqlite3_step(old) == SQLITE_ROW) {
        char hash[GW_HASH_LEN + 1];
        const void *text = sqlite3_column_blob(old, 1);
        gw_hash(text ? text : "", (size_t)sqlite3_column_bytes(old, 1), hash);
        size_t same = find_same(chunks, kept, hash, sqlite3_column_int(old, 2));
        if (same < chunks->count) {
            kept[same] = true;
        } else {
            done = drop_chunk(db, sqlite3_column_int64(old, 0), hash);
        }
    }
    return sqlite3_finalize(old) == SQLITE_OK && done;
}

static bool note_file(struct gw_memory_db *db, const char *path, const char *hash) {
    sqlite3_stmt *statement = gw_memory_db_prepare(db, "INSERT OR REPLACE INTO files VALUES(?1, ?2, ?3)");
    sqlite3_bind_text(statement, 1, path, -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 2, hash, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 3, fm_wall_seconds());
    return run_statement(statement);
}

static bool store(struct gw_memory_db *db, const char *path, const char *hash, bool whole,
                  const struct gw_chunks *chunks, bool *kept) {
    char marked[GW_HASH_LEN + 2];
    bool done = true;
    snprintf(marked, sizeof marked, "%s%s", whole ? "" : NOT_WHOLE, hash);
    if (chunks->dimensions && chunks->dimensions != db->dimensions) {
        db->is_new = db->is_new || db->dimensions;
        done = empty(db) && set_model(db, chunks->dimensions);
        db->dimensions = done ? chunks->dimensions : db->dimensions;
    }
    done = done && drop_old(db, path, chunks, kept);
    for (size_t i = 0; done && i < chunks->count; i++) {
        done = kept[i] || add_chunk(db, path, &chunks->items[i]);
    }
    return done && note_file(db, path, marked);
}

enum fm_code gw_memory_db_store(struct gw_memory_db *db, const char *path, const char *hash, bool whole,
                                const struct gw_chunks *chunks, struct fm_error *error) {
    size_t dimensions = db->dimensions;
    bool *kept = calloc(chunks->count + 1, sizeof *kept);
    if (!kept) {
        return fm_fail_no_memory(error);
    }
    enum fm_code code = exec(db, "BEGIN IMMEDIATE")
                            ? end_transaction(db, store(db, path, hash, whole, chunks, kept), error)
                            : gw_memory_db_fail(db, error);
    free(kept);
    db->dimensions = code == FM_OK ? db->dimensions : dimensions; /* the failed transaction changed nothing */
    return code;
}

enum fm_code gw_memory_db_forget(struct gw_memory_db *db, const char *path, struct fm_error *error) {
    const struct gw_chunks none = {.count = 0};
    bool kept = false;
    if (!exec(db, "BEGIN IMMEDIATE")) {
        return gw_memory_db_fail(db, error);
    }
    bool done = drop_old(db, path, &none, &kept);
    sqlite3_stmt *statement = gw_memory_db_prepare(db, "DELETE FROM files WHERE path = ?1");
    sqlite3_bind_text(statement, 1, path, -1, SQLITE_STATIC);
    done = run_statement(statement) && done;
    /* FTS5 keeps the words of deleted rows until it merges its parts. */
    enum fm_code code =
        end_transaction(db, done && exec(db, "INSERT INTO chunks_fts(chunks_fts) VALUES('optimize')"), error);
    /* removes the text from the log too; while another program reads, only the next checkpoint can do so */
    if (code == FM_OK) {
        exec(db, "PRAGMA wal_checkpoint(TRUNCATE)");
    }
    return code;
}
