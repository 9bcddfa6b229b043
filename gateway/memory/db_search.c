/* Searches: two lists, each the best first, which gw_fuse makes one. A list that can't be had fails the search. */
#include "memory/db_internal.h"

#include <stdlib.h>
#include <string.h>

/* Runs a query that gives ids, at most GW_CANDIDATES_MAX. */
static bool read_ids(sqlite3_stmt *statement, int64_t *ids, size_t *count) {
    *count = 0;
    while (statement && *count < GW_CANDIDATES_MAX && sqlite3_step(statement) == SQLITE_ROW) {
        ids[(*count)++] = sqlite3_column_int64(statement, 0);
    }
    return statement && sqlite3_finalize(statement) == SQLITE_OK;
}

static bool search_words(struct gw_memory_db *db, const char *query, int64_t *ids, size_t *count) {
    sqlite3_stmt *statement =
        gw_memory_db_prepare(db, "SELECT rowid FROM chunks_fts WHERE chunks_fts MATCH ?1 ORDER BY rank LIMIT ?2");
    sqlite3_bind_text(statement, 1, query, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 2, GW_CANDIDATES_MAX);
    return read_ids(statement, ids, count);
}

/* Vectors have length 1, so the nearest ones have the greatest cosine. */
static bool search_vectors(struct gw_memory_db *db, const float *vector, int64_t *ids, size_t *count) {
    sqlite3_stmt *statement =
        gw_memory_db_prepare(db, "SELECT rowid FROM vectors.knn WHERE embedding MATCH ?1 AND k = ?2");
    sqlite3_bind_blob64(statement, 1, vector, db->dimensions * sizeof *vector, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 2, GW_CANDIDATES_MAX);
    return read_ids(statement, ids, count);
}

static char *copy_column(sqlite3_stmt *statement, int column, size_t *len) {
    const void *bytes = sqlite3_column_blob(statement, column);
    *len = (size_t)sqlite3_column_bytes(statement, column);
    char *copy = malloc(*len + 1);
    if (copy) {
        memcpy(copy, bytes ? bytes : "", *len);
        copy[*len] = '\0';
    }
    return copy;
}

/* A chunk's text. False with a database that says why, or without memory. */
static bool read_hit(struct gw_memory_db *db, struct gw_hit *hit) {
    size_t path_len;
    sqlite3_stmt *statement = gw_memory_db_prepare(db, "SELECT file_path, content FROM chunks WHERE id = ?1");
    sqlite3_bind_int64(statement, 1, hit->found.id);
    if (statement && sqlite3_step(statement) == SQLITE_ROW) {
        hit->path = copy_column(statement, 0, &path_len);
        hit->text = copy_column(statement, 1, &hit->len);
    }
    sqlite3_finalize(statement);
    return hit->path && hit->text;
}

void gw_hits_free(struct gw_hit *hits, size_t count) {
    for (size_t i = 0; i < count; i++) {
        free(hits[i].path);
        free(hits[i].text);
    }
}

enum fm_code gw_memory_db_search(struct gw_memory_db *db, const char *query, const float *vector, size_t dimensions,
                                 struct gw_hit *hits, size_t limit, size_t *count, struct fm_error *error) {
    int64_t by_words[GW_CANDIDATES_MAX];
    int64_t by_vector[GW_CANDIDATES_MAX];
    struct gw_found found[2 * GW_CANDIDATES_MAX];
    size_t words = 0;
    size_t vectors = 0;
    *count = 0;
    if ((*query && !search_words(db, query, by_words, &words)) ||
        (vector && dimensions == db->dimensions && !search_vectors(db, vector, by_vector, &vectors))) {
        return gw_memory_db_fail(db, error);
    }
    size_t all = gw_fuse(by_words, words, by_vector, vectors, found);
    for (size_t i = 0; i < all && *count < limit; i++) {
        hits[*count] = (struct gw_hit){.found = found[i]};
        bool whole = read_hit(db, &hits[*count]);
        (*count)++;
        if (!whole) {
            gw_hits_free(hits, *count);
            return gw_memory_db_fail(db, error);
        }
    }
    return FM_OK;
}
