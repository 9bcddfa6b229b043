/* The database: its settings and tables, how it is opened, checked, migrated and opened again, and its failures. */
#include "front/store/db.h"
#include "base/crc32.h"
#include "base/log.h"
#include "front/store/store.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define APPLICATION_ID 1718448752 /* the application_id: "fmpp" as a number of 4 bytes (sqlite.org/pragma.html) */
#define SCHEMA_VERSION 3
#define ROW_MAX        (3 * FM_STORE_TEXT_MAX + 65536) /* bytes: a greater length means damage */

/* ---- SQL ---- */

sqlite3_stmt *fm_store_db_prepare(struct fm_store_db *db, const char *sql) {
    sqlite3_stmt *statement = NULL;
    sqlite3_prepare_v2(db->sqlite, sql, -1, &statement, NULL);
    return statement;
}

bool fm_store_db_run(sqlite3_stmt *statement, bool bound) {
    bool done = statement && bound && sqlite3_step(statement) == SQLITE_DONE;
    return sqlite3_finalize(statement) == SQLITE_OK && done;
}

bool fm_store_db_exec(struct fm_store_db *db, const char *sql) {
    return sqlite3_exec(db->sqlite, sql, NULL, NULL, NULL) == SQLITE_OK;
}

int64_t fm_store_db_number(struct fm_store_db *db, const char *sql) {
    sqlite3_stmt *statement = fm_store_db_prepare(db, sql);
    bool row = statement && sqlite3_step(statement) == SQLITE_ROW;
    int64_t value = row ? sqlite3_column_int64(statement, 0) : -1;
    bool done = sqlite3_finalize(statement) == SQLITE_OK;
    return done && value >= 0 ? value : -1;
}

/* The SQL function checksum(...): the CRC-32 of its arguments as text, with the length before each argument. */
static void checksum(sqlite3_context *context, int count, sqlite3_value **values) {
    uint32_t crc = 0;
    for (int i = 0; i < count; i++) {
        const unsigned char *text = sqlite3_value_text(values[i]);
        if (!text && sqlite3_value_type(values[i]) != SQLITE_NULL) {
            sqlite3_result_error_nomem(context);
            return;
        }
        uint32_t len = text ? (uint32_t)sqlite3_value_bytes(values[i]) : UINT32_MAX;
        const unsigned char frame[4] = {(unsigned char)len, (unsigned char)(len >> 8), (unsigned char)(len >> 16),
                                        (unsigned char)(len >> 24)};
        crc = fm_crc32(crc, frame, sizeof frame);
        crc = text ? fm_crc32(crc, text, len) : crc;
    }
    sqlite3_result_int64(context, crc);
}

/* ---- failures ---- */

static const struct {
    int code;           /* a primary result code (sqlite.org/rescode.html) */
    const char *advice; /* what to do next */
} advices[] = {
    {SQLITE_BUSY, "another process has locked it; it is used again when that lets it go"},
    {SQLITE_LOCKED, "another process has locked it; it is used again when that lets it go"},
    {SQLITE_FULL, "free some space; it is used again then"},
    {SQLITE_IOERR, "look whether the disk is full, over a quota or at fault; it is tried again"},
    {SQLITE_NOTADB, "name another file, or move or delete this one"},
    {SQLITE_READONLY, "let this user write the file and its folder; it is tried again"},
    {SQLITE_CANTOPEN, "let this user write the file and its folder; it is tried again"},
    {SQLITE_PERM, "let this user write the file and its folder; it is tried again"},
    {SQLITE_NOMEM, "free some memory; it is tried again"},
};

static const char *advice_for(int code) {
    for (size_t i = 0; i < sizeof advices / sizeof advices[0]; i++) {
        if (advices[i].code == code) {
            return advices[i].advice;
        }
    }
    return "move or delete the file; a new one is made then";
}

static const char *name_of(const struct fm_store_db *db) {
    return db->file ? db->file : "in memory";
}

static enum fm_code keep_trouble(struct fm_store_db *db, struct fm_error *error) {
    db->trouble = *error;
    return error->code;
}

enum fm_code fm_store_db_fail(struct fm_store_db *db, struct fm_error *error) {
    int extended = sqlite3_extended_errcode(db->sqlite);
    int code = extended & 0xFF;
    if (code == SQLITE_OK || code == SQLITE_DONE || code == SQLITE_ROW) {
        extended = code = SQLITE_ERROR;
    }
    fm_fail(error, FM_UNAVAILABLE, "the store of responses %s can't be used (%s): %s", name_of(db),
            sqlite3_errstr(extended), advice_for(code));
    if (code == SQLITE_CONSTRAINT || code == SQLITE_TOOBIG) { /* the failure concerns only this row */
        return error->code;
    }
    db->damaged = db->damaged || code == SQLITE_CORRUPT;
    db->locked = code == SQLITE_BUSY || code == SQLITE_LOCKED;
    db->reopen = code == SQLITE_READONLY || code == SQLITE_CANTOPEN || code == SQLITE_IOERR || code == SQLITE_NOTADB;
    return keep_trouble(db, error);
}

enum fm_code fm_store_db_fail_damaged(struct fm_store_db *db, const char *what, struct fm_error *error) {
    db->damaged = true;
    fm_fail(error, FM_UNAVAILABLE, "the store of responses %s is damaged (%s): %s", name_of(db), what,
            advice_for(SQLITE_CORRUPT));
    return keep_trouble(db, error);
}

void fm_store_db_works(struct fm_store_db *db) {
    db->trouble.code = FM_OK;
    db->locked = false;
}

/* ---- the tables ---- */

/*
 * Sorted by name, because that is how they are compared. `used` rises with every use. `checksum` covers the columns
 * with the text; it is the last column because version 2 lacked it. The index has `bytes` too, so their sum can be read
 * from the index only.
 */
static const char schema[] =
    "CREATE TABLE items(id TEXT NOT NULL, response INTEGER NOT NULL REFERENCES responses(key) ON DELETE CASCADE,"
    " PRIMARY KEY(id, response)) WITHOUT ROWID;"
    "CREATE INDEX items_response ON items(response);"
    "CREATE TABLE responses(key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, previous TEXT NOT NULL,"
    " used INTEGER NOT NULL, bytes INTEGER NOT NULL, object TEXT NOT NULL, input TEXT NOT NULL,"
    " stream TEXT NOT NULL, checksum INTEGER NOT NULL DEFAULT 0);"
    "CREATE INDEX responses_used ON responses(used, bytes);";

static const char from_version_2[] =
    "DROP TRIGGER put;"
    "DROP TRIGGER removed;"
    "DROP TABLE total;"
    "DROP INDEX responses_used;"
    "ALTER TABLE responses ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;"
    "UPDATE responses SET checksum = checksum(id, previous, bytes, object, input, stream);"
    "CREATE INDEX responses_used ON responses(used, bytes);";

/*
 * Makes the settings that do not touch the file, before its first read. secure_delete is on because deleted text
 * belongs to the user.
 */
static const char settings[] = "PRAGMA trusted_schema = OFF;"
                               "PRAGMA cell_size_check = ON;"
                               "PRAGMA mmap_size = 0;"
                               "PRAGMA temp_store = MEMORY;"
                               "PRAGMA foreign_keys = ON;"
                               "PRAGMA secure_delete = ON;"
                               "PRAGMA synchronous = NORMAL;";

static enum fm_code refuse_file(struct fm_store_db *db, struct fm_error *error, const char *why) {
    fm_fail(error, FM_UNAVAILABLE, "the file %s %s: name another file, or move or delete this one", name_of(db), why);
    return keep_trouble(db, error);
}

/* Checks that the tables are exactly ours, because changed tables could make SQLite run anything. */
static enum fm_code check_schema(struct fm_store_db *db, struct fm_error *error) {
    sqlite3_stmt *statement =
        fm_store_db_prepare(db, "SELECT group_concat(sql, '') FROM (SELECT sql || ';' AS sql FROM sqlite_master"
                                " WHERE sql IS NOT NULL ORDER BY name)");
    bool row = statement && sqlite3_step(statement) == SQLITE_ROW;
    const unsigned char *text = row ? sqlite3_column_text(statement, 0) : NULL;
    bool ours = text && strcmp((const char *)text, schema) == 0;
    bool read = sqlite3_finalize(statement) == SQLITE_OK && row;
    if (!read) {
        return fm_store_db_fail(db, error);
    }
    return ours ? FM_OK : fm_store_db_fail_damaged(db, "its tables are others", error);
}

struct look {
    int64_t application;
    int64_t version;
    int64_t tables; /* the number of tables and of all other objects */
};

static enum fm_code look_at(struct fm_store_db *db, struct look *look, struct fm_error *error) {
    look->application = fm_store_db_number(db, "PRAGMA application_id");
    look->version = fm_store_db_number(db, "PRAGMA user_version");
    look->tables = fm_store_db_number(db, "SELECT count(*) FROM sqlite_master");
    return look->application < 0 || look->version < 0 || look->tables < 0 ? fm_store_db_fail(db, error) : FM_OK;
}

/*
 * Checks that the file is ours: a file with tables and another application's number is not. Such a file stays
 * unchanged.
 */
static enum fm_code check_file(struct fm_store_db *db, struct look *look, struct fm_error *error) {
    enum fm_code code = look_at(db, look, error);
    if (code != FM_OK || (look->tables == 0 && look->application == 0)) {
        return code;
    }
    if (look->application != APPLICATION_ID) {
        return refuse_file(db, error, "holds something else than a store of responses");
    }
    if (look->version < 2 || look->version > SCHEMA_VERSION) {
        return refuse_file(db, error, "is a store of responses of another version of fm-proxy");
    }
    return look->version == SCHEMA_VERSION ? check_schema(db, error) : FM_OK;
}

/* Makes the tables, or migrates them. Another process may have done that already. */
static enum fm_code set_up_tables(struct fm_store_db *db, struct fm_error *error) {
    char numbers[96];
    struct look look;
    snprintf(numbers, sizeof numbers, "PRAGMA application_id = %d; PRAGMA user_version = %d;", APPLICATION_ID,
             SCHEMA_VERSION);
    if (!fm_store_db_exec(db, "BEGIN IMMEDIATE")) {
        return fm_store_db_fail(db, error);
    }
    enum fm_code code = look_at(db, &look, error);
    if (code == FM_OK && look.version != SCHEMA_VERSION) {
        bool made = fm_store_db_exec(db, look.tables == 0 ? schema : from_version_2) && fm_store_db_exec(db, numbers);
        code = made ? FM_OK : fm_store_db_fail(db, error);
    }
    code = code ? code : check_schema(db, error);
    if (code == FM_OK && !fm_store_db_exec(db, "COMMIT")) {
        code = fm_store_db_fail(db, error);
    }
    if (code != FM_OK) {
        (void)fm_store_db_exec(db, "ROLLBACK");
    }
    return code;
}

/* ---- opening ---- */

static void be_patient(struct fm_store_db *db) {
    sqlite3_busy_timeout(db->sqlite, db->locked ? 0 : FM_STORE_WAIT_MS);
}

static bool harden(struct fm_store_db *db) {
    sqlite3_limit(db->sqlite, SQLITE_LIMIT_LENGTH, ROW_MAX);
    return sqlite3_db_config(db->sqlite, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL) == SQLITE_OK &&
           sqlite3_create_function_v2(db->sqlite, "checksum", -1,
                                      SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY, NULL, checksum, NULL,
                                      NULL, NULL) == SQLITE_OK &&
           fm_store_db_exec(db, settings);
}

/*
 * Refuses a file of a few bytes. SQLite treats it as empty, and would overwrite it (sqlite.org/fileformat2.html, 1.3).
 */
static bool may_be_database(const char *path) {
    static const char magic[16] = "SQLite format 3";
    struct fm_error error;
    struct fm_buf start;
    fm_buf_init(&start, sizeof magic);
    bool read = fm_file_read_start(path, &start, sizeof magic, &error) == FM_OK;
    bool fits = !read || start.len == 0 || (start.len == sizeof magic && memcmp(start.data, magic, sizeof magic) == 0);
    fm_buf_free(&start);
    return fits;
}

static enum fm_code open_sqlite(struct fm_store_db *db, struct look *look, struct fm_error *error) {
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    struct fm_error reason;
    if (db->file && fm_file_create(db->file, &reason) != FM_OK) {
        fm_fail(error, reason.code,
                "the store of responses: %s; make sure that fm-proxy may write it, or name another file with the "
                "option store (--store)",
                reason.detail);
        return keep_trouble(db, error);
    }
    if (db->file && !may_be_database(db->file)) {
        return refuse_file(db, error, "holds something else than a store of responses");
    }
    if (sqlite3_open_v2(db->file ? db->file : ":memory:", &db->sqlite, flags, NULL) != SQLITE_OK) {
        if (db->sqlite) {
            return fm_store_db_fail(db, error);
        }
        (void)fm_fail_no_memory(error);
        return keep_trouble(db, error);
    }
    be_patient(db);
    return harden(db) ? check_file(db, look, error) : fm_store_db_fail(db, error);
}

static enum fm_code open_it(struct fm_store_db *db, struct fm_error *error) {
    struct look look = {0};
    enum fm_code code = open_sqlite(db, &look, error);
    if (code == FM_OK && db->file && fm_file_make_private(db->file, error) != FM_OK) {
        code = keep_trouble(db, error);
    }
    if (code == FM_OK && !fm_store_db_exec(db, "PRAGMA journal_mode = WAL")) {
        code = fm_store_db_fail(db, error);
    }
    return code == FM_OK && look.version != SCHEMA_VERSION ? set_up_tables(db, error) : code;
}

struct names {
    char log[PATH_MAX + 8];
    char index[PATH_MAX + 8];
};

/* Finds the names of SQLite's extra files (sqlite.org/walformat.html, "Files On Disk"); "" if it uses none. */
static struct names names_of(const struct fm_store_db *db) {
    struct names names = {"", ""};
    const char *file = sqlite3_db_filename(db->sqlite, "main");
    if (file) {
        snprintf(names.log, sizeof names.log, "%s-wal", file);
        snprintf(names.index, sizeof names.index, "%s-shm", file);
    }
    return names;
}

/* Notes which files are open. The first transaction creates the log, so call this after a transaction. */
static struct fm_store_files identify(const struct fm_store_db *db) {
    const struct names names = names_of(db);
    return (struct fm_store_files){fm_file_identify(db->file), fm_file_identify(names.log),
                                   fm_file_identify(names.index)};
}

static bool is_another_file(const struct fm_store_db *db) {
    if (!db->file) {
        return false;
    }
    const struct fm_store_files now = identify(db);
    return !fm_file_id_equal(&now.main, &db->files.main) || !fm_file_id_equal(&now.log, &db->files.log);
}

static void remove_same(const char *path, const struct fm_file_id *now, const struct fm_file_id *ours) {
    if (fm_file_id_equal(now, ours)) {
        fm_file_remove(path);
    }
}

/*
 * Called before the open file is given up, because the file or its log was deleted or replaced. If only the log is
 * gone, the content of the log is written into the file. Otherwise SQLite would take the old log and index for those of
 * a new file. They are removed if they still exist, unless another helper has made new ones.
 */
static void leave_files(struct fm_store_db *db) {
    const struct names names = names_of(db);
    const struct fm_store_files now = identify(db);
    if (fm_file_id_equal(&now.main, &db->files.main)) {
        (void)fm_store_db_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)");
    } else {
        remove_same(names.log, &now.log, &db->files.log);
        remove_same(names.index, &now.index, &db->files.index);
    }
}

void fm_store_db_init(struct fm_store_db *db, const char *file) {
    *db = (struct fm_store_db){.file = file};
}

void fm_store_db_close(struct fm_store_db *db) {
    sqlite3_close(db->sqlite);
    db->sqlite = NULL;
    db->damaged = false;
    db->reopen = false;
}

static enum fm_code open_again(struct fm_store_db *db, struct fm_error *error) {
    bool write_failed = db->reopen; /* after a failed write, a successful open proves nothing */
    fm_store_db_close(db);
    enum fm_code code = open_it(db, error);
    if (code == FM_OK && db->file) {
        (void)fm_store_db_number(db, "SELECT count(*) FROM sqlite_master"); /* a transaction */
        db->files = identify(db);
    }
    if (code != FM_OK) {
        fm_store_db_close(db);
    } else if (!write_failed) {
        fm_store_db_works(db);
    }
    return code;
}

enum fm_code fm_store_db_ready(struct fm_store_db *db, bool *opened, struct fm_error *error) {
    bool another = db->sqlite && is_another_file(db);
    bool open = db->sqlite && !another && !db->reopen;
    if (opened) {
        *opened = !open;
    }
    if (another) {
        fm_log(FM_LOG_ERROR,
               "the store of responses %s, or its log, was deleted or replaced: what is there now is used, or made",
               db->file);
        leave_files(db);
    }
    if (!open) {
        return open_again(db, error);
    }
    be_patient(db);
    return FM_OK;
}

enum fm_code fm_store_db_begin(struct fm_store_db *db, struct fm_error *error) {
    if (db->damaged) {
        *error = db->trouble;
        return error->code;
    }
    return fm_store_db_exec(db, "BEGIN IMMEDIATE") ? FM_OK : fm_store_db_fail(db, error);
}
