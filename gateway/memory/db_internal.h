/* What the files of db.h share. */
#ifndef GW_MEMORY_DB_INTERNAL_H
#define GW_MEMORY_DB_INTERNAL_H

#include "memory/db.h"

#include <sqlite3.h>

struct gw_memory_db {
    sqlite3 *sqlite; /* NULL: it could not be opened again */
    char *path;
    char *model;
    size_t dimensions; /* the length of all vectors; 0: there are no vectors yet, and no table for them */
    bool is_new;
    bool damaged; /* the last failure was due to damage */
};

/* A prepared statement, which the caller finalizes. NULL: a failure; the database has its message. */
sqlite3_stmt *gw_memory_db_prepare(struct gw_memory_db *db, const char *sql);

/* Fills `error` from what the database says. Returns its code. */
enum fm_code gw_memory_db_fail(struct gw_memory_db *db, struct fm_error *error);

#endif
