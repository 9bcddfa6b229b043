/*
 * The SQLite database of stored responses: opening it, opening it again, its failures, and SQL. store.c knows what the
 * rows mean. Only one thread uses it; all functions except init, close and works may block on the disk, and for
 * FM_STORE_WAIT_MS on another process.
 *
 * The file may be damaged in any bit, and may be gone at any time. SQLite reads it with all of its checks on, and its
 * tables must be exactly those that we make. A file that SQLite finds damaged is not written any more: a write could do
 * more harm.
 */
#ifndef FM_FRONT_STORE_DB_H
#define FM_FRONT_STORE_DB_H

#include "base/error.h"
#include "base/file.h"

#include <sqlite3.h>
#include <stdbool.h>

/* Which files the names of a database stand for. */
struct fm_store_files {
    struct fm_file_id main;
    struct fm_file_id log;   /* FILE-wal */
    struct fm_file_id index; /* FILE-shm */
};

struct fm_store_db {
    sqlite3 *sqlite;             /* NULL: not open */
    const char *file;            /* borrowed; NULL: in memory */
    struct fm_store_files files; /* the files that are open */
    struct fm_error trouble;     /* why it can't be used; code FM_OK: it can */
    bool damaged;                /* the file is damaged: it is read, but not written */
    bool locked;                 /* the last wait for another process timed out: the next ones do not wait */
    bool reopen;                 /* open it again before the next use */
};

/* Starts closed; the first fm_store_db_ready opens it. */
void fm_store_db_init(struct fm_store_db *db, const char *file);

/* Harmless if it is not open. */
void fm_store_db_close(struct fm_store_db *db);

/*
 * Opens the database if necessary: the first time, after a failure, and if the file or its log is no longer the one
 * that was opened. `*opened` (may be NULL): it was opened now. UNAVAILABLE, INTERNAL: see `db->trouble`.
 */
FM_MUST_USE enum fm_code fm_store_db_ready(struct fm_store_db *db, bool *opened, struct fm_error *error);

/* Begins a transaction that writes, in a database that is ready. UNAVAILABLE: locked, or damaged. */
FM_MUST_USE enum fm_code fm_store_db_begin(struct fm_store_db *db, struct fm_error *error);

/* Makes SQLite's last failure an error, with the file and what to do, which is also stored as `db->trouble`. */
enum fm_code fm_store_db_fail(struct fm_store_db *db, struct fm_error *error);

/* Makes damage that we find ourselves an error, as fm_store_db_fail: `what` is a part of a sentence. */
enum fm_code fm_store_db_fail_damaged(struct fm_store_db *db, const char *what, struct fm_error *error);

/* Something was written, so `db->trouble` is over. */
void fm_store_db_works(struct fm_store_db *db);

/* ---- SQL, in a database that is ready ---- */

/* Text goes in and comes out by index; the bytes stay the caller's until the statement is finished. */
sqlite3_stmt *fm_store_db_prepare(struct fm_store_db *db, const char *sql);

/* Runs a statement without rows, unless it could not be prepared (NULL) or `bound`; and finalizes it. */
FM_MUST_USE bool fm_store_db_run(sqlite3_stmt *statement, bool bound);

/* Runs statements without results. */
bool fm_store_db_exec(struct fm_store_db *db, const char *sql);

/* The first column of the first row, not below 0; -1: an error, or there is none. */
int64_t fm_store_db_number(struct fm_store_db *db, const char *sql);

#endif
