/* Searches: gw_fuse merges two lists, each with the best first. If a list can't be read, the search fails. */
#include "memory/db_internal.h"
#include "memory/memory.h"
#include "text/fold.h"

#include <stdlib.h>
#include <string.h>

#define COMMON      5000  /* a word in at least this many chunks is common */
#define MATCHES_MAX 15000 /* how many chunks may be scored */
#define QUERY_MAX   65536 /* bytes */
#define FOLDED_MAX  (20u * GW_QUESTION_MAX)

/* Runs a query that gives ids; `ids` has room for GW_CANDIDATES_MAX. */
static bool read_ids(sqlite3_stmt *statement, int64_t *ids, size_t *count) {
    *count = 0;
    while (statement && *count < GW_CANDIDATES_MAX && sqlite3_step(statement) == SQLITE_ROW) {
        ids[(*count)++] = sqlite3_column_int64(statement, 0);
    }
    return statement && sqlite3_finalize(statement) == SQLITE_OK;
}

static bool match(struct gw_memory_db *db, const struct gw_words *words, const char *sql, int64_t limit, int64_t *ids,
                  size_t *count) {
    struct fm_buf query;
    fm_buf_init(&query, QUERY_MAX);
    gw_query_write(words, &query);
    fm_buf_append(&query, "", 1);
    sqlite3_stmt *statement = query.failed ? NULL : gw_memory_db_prepare(db, sql);
    sqlite3_bind_text(statement, 1, query.data, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 2, limit);
    bool done = read_ids(statement, ids, count);
    fm_buf_free(&query);
    return done;
}

struct counted {
    struct gw_word word;
    int64_t chunks; /* chunks that have the word; counting stops at COMMON */
};

static int rarest_first(const void *a, const void *b) {
    const struct counted *one = a;
    const struct counted *other = b;
    return (one->chunks > other->chunks) - (one->chunks < other->chunks);
}

/*
 * BM25 computes a score for each chunk that has any of the words, in about 1 us each. So the rarest words, which have
 * the most weight anyway, are chosen first, until the words would match too many chunks. Common words find nothing that
 * a vector does not find better (`has_vector`).
 */
static bool choose_words(struct gw_memory_db *db, bool has_vector, struct gw_words *words) {
    struct counted counted[GW_QUESTION_WORDS_MAX];
    int64_t sum = 0;
    size_t chosen = 0;
    for (size_t i = 0; i < words->count; i++) {
        const struct gw_words one = {.items = {words->items[i]}, .count = 1};
        size_t rows;
        counted[i].word = words->items[i];
        if (!match(db, &one, "SELECT count(*) FROM (SELECT 1 FROM chunks_fts WHERE chunks_fts MATCH ?1 LIMIT ?2)",
                   COMMON, &counted[i].chunks, &rows)) {
            return false;
        }
    }
    qsort(counted, words->count, sizeof *counted, rarest_first);
    for (size_t i = 0; i < words->count && chosen < GW_QUERY_WORDS_MAX; i++) {
        sum += counted[i].chunks;
        bool common = counted[i].chunks >= COMMON || sum > MATCHES_MAX;
        if (!common || (i == 0 && !has_vector)) {
            words->items[chosen++] = counted[i].word;
        }
    }
    words->count = chosen;
    return true;
}

static bool search_words(struct gw_memory_db *db, const char *question, size_t len, bool has_vector, size_t wanted,
                         int64_t *ids, size_t *count) {
    struct gw_words words;
    struct fm_buf folded;
    fm_buf_init(&folded, FOLDED_MAX);
    bool done = gw_fold(question, len, &folded);
    gw_words_find(folded.data ? folded.data : "", folded.len, &words);
    done = done && choose_words(db, has_vector, &words);
    done = done && (words.count == 0 ||
                    match(db, &words, "SELECT rowid FROM chunks_fts WHERE chunks_fts MATCH ?1 ORDER BY rank LIMIT ?2",
                          (int64_t)wanted, ids, count));
    fm_buf_free(&folded);
    return done;
}

/* Vectors have length 1, so the nearest ones have the greatest cosine. */
static bool search_vectors(struct gw_memory_db *db, const float *vector, size_t wanted, int64_t *ids, size_t *count) {
    sqlite3_stmt *statement =
        gw_memory_db_prepare(db, "SELECT rowid FROM vectors.knn WHERE embedding MATCH ?1 AND k = ?2");
    sqlite3_bind_blob64(statement, 1, vector, db->dimensions * sizeof *vector, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 2, (int64_t)wanted);
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

/* Reads a chunk's path and text. False: the database failed, and has the message, or memory ran out. */
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

enum fm_code gw_memory_db_search(struct gw_memory_db *db, const char *question, size_t len, const float *vector,
                                 size_t dimensions, struct gw_hit *hits, size_t limit, size_t *count,
                                 struct fm_error *error) {
    int64_t by_words[GW_CANDIDATES_MAX];
    int64_t by_vector[GW_CANDIDATES_MAX];
    struct gw_found found[2 * GW_CANDIDATES_MAX];
    size_t words = 0;
    size_t vectors = 0;
    size_t wanted = limit < GW_CANDIDATES_LEAST ? GW_CANDIDATES_LEAST : limit;
    wanted = wanted < GW_CANDIDATES_MAX ? wanted : GW_CANDIDATES_MAX;
    *count = 0;
    bool has_vector = vector && dimensions == db->dimensions;
    if ((len && !search_words(db, question, len, has_vector, wanted, by_words, &words)) ||
        (has_vector && !search_vectors(db, vector, wanted, by_vector, &vectors))) {
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
