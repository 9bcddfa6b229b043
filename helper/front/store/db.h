/*
 * The SQLite database of stored responses: opening it, opening it again, its failures, and SQL. store.c knows the
 * meaning of the rows. Only one thread uses the database. All functions except init, close and works may block on the
 * disk, and for FM_STORE_WAIT_MS on another process.
 *
 * Any bit of the file may be damaged, and the file may disappear at any time. SQLite reads it with all of its checks
 * on, and its tables must be exactly those that we make. A file that SQLite finds damaged is not written any more,
 * because a write could do more harm.
 */
#ifndef FM_FRONT_STORE_DB_H
#define FM_FRONT_STORE_DB_H

#include "base/error.h"
#include "base/file.h"

#include <sqlite3.h>
#include <stdbool.h>

/* The identities of the files that belong to a database. */
struct fm_store_files {
    struct fm_file_id main;
    struct fm_file_id log;   /* FILE-wal */
    struct fm_file_id index; /* FILE-shm */
};

struct fm_store_db {
    sqlite3 *sqlite;             /* NULL: not open */
    const char *file;            /* path; borrowed; NULL: in memory */
    struct fm_store_files files; /* the files that are open */
    struct fm_error trouble;     /* why the database can't be used; code FM_OK: it can */
    bool damaged;                /* the file is damaged: it is read, but not written */
    bool locked;                 /* the last wait for another process timed out: the next ones do not wait */
    bool reopen;                 /* the database must be opened again before the next use */
};

/* Starts closed; the first fm_store_db_ready opens the database. */
void fm_store_db_init(struct fm_store_db *db, const char *file);

/* Harmless if the database is not open. */
void fm_store_db_close(struct fm_store_db *db);

/*
 * Opens the database if necessary: the first time, after a failure, and if the file or its log was replaced. `*opened`
 * (may be NULL): the database was opened now. UNAVAILABLE, INTERNAL: see `db->trouble`.
 */
FM_MUST_USE enum fm_code fm_store_db_ready(struct fm_store_db *db, bool *opened, struct fm_error *error);

/* Begins a transaction that writes, in a database that is ready. UNAVAILABLE: the database is locked or damaged. */
FM_MUST_USE enum fm_code fm_store_db_begin(struct fm_store_db *db, struct fm_error *error);

/*
 * Turns SQLite's last failure into an error that names the file and says what to do. The error is also stored as
 * `db->trouble`.
 */
enum fm_code fm_store_db_fail(struct fm_store_db *db, struct fm_error *error);

/* Turns damage that we find ourselves into an error, like fm_store_db_fail. `what` is a part of a sentence. */
enum fm_code fm_store_db_fail_damaged(struct fm_store_db *db, const char *what, struct fm_error *error);

/* Notes a successful write, which ends `db->trouble`. */
void fm_store_db_works(struct fm_store_db *db);

/* ---- SQL, in a database that is ready ---- */

/* Binds and reads text by index. The caller keeps the bytes valid until the statement is finished. */
sqlite3_stmt *fm_store_db_prepare(struct fm_store_db *db, const char *sql);

/*
 * Runs a statement that returns no rows, and finalizes it. Does not run it if it could not be prepared (NULL), or if
 * `bound` is false.
 */
FM_MUST_USE bool fm_store_db_run(sqlite3_stmt *statement, bool bound);

/* Runs statements without results. */
bool fm_store_db_exec(struct fm_store_db *db, const char *sql);

/* Returns the first column of the first row if it is not negative; -1: an error, or there is no row. */
int64_t fm_store_db_number(struct fm_store_db *db, const char *sql);

#endif
