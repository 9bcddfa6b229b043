/*
 * memory.db: chunks with their words (FTS5) and vectors, and the vectors of texts that were seen (the cache).
 *
 *     files           (path TEXT PRIMARY KEY, hash TEXT, indexed_at INTEGER)
 *     chunks          (id INTEGER PRIMARY KEY, file_path TEXT, content TEXT, embedding BLOB)
 *     chunks_fts      (content), FTS5 on chunks
 *     embedding_cache (hash TEXT PRIMARY KEY, embedding BLOB, created_at INTEGER)
 *     embedding_model (name TEXT, dimensions INTEGER), one row: the model of the vectors
 *
 * Vectors have length 1, as 32-bit floats of this machine. For searches they are also in a table of sqlite-vec in
 * memory, which is filled at the start: a search through chunks.embedding itself reads all texts too, and takes two to
 * four times as long.
 *
 * The whole database can be made again from the transcripts. So a damaged file is moved aside, and a new one is begun.
 *
 * The memory's thread; everything may block on the disk.
 */
#ifndef GW_MEMORY_DB_H
#define GW_MEMORY_DB_H

#include "base/error.h"
#include "memory/chunks.h"
#include "memory/query.h"

/*
 * How many entries of each of the two search lists are fused: as many as the caller wants, within these limits. A chunk
 * that is in both lists comes before all chunks that are in only one, whatever its places are (2 / (60 + 50) is more
 * than 1 / 61). In longer lists, chunks would be in both by chance. On the questions of tests/gateway, recall@5 is 0.95
 * with 5 to 10 of each, and 0.87 with 50.
 */
#define GW_CANDIDATES_LEAST 10u
#define GW_CANDIDATES_MAX   50u
#define GW_DIMENSIONS_MAX   8192u /* today's models have up to 4,096 */

struct gw_memory_db;

/*
 * Opens the file. Creates the file if it is missing. Empties it if its vectors belong to another model than `model`
 * ("": there is no model now, and the content stays). FM_UNAVAILABLE: it can't be used (a file that is damaged or no
 * database is moved aside). A later failure may also be due to damage: see gw_memory_db_mend.
 */
FM_MUST_USE enum fm_code gw_memory_db_open(const char *path, const char *model, struct gw_memory_db **db,
                                           struct fm_error *error);
void gw_memory_db_close(struct gw_memory_db *db);

/* True once, if everything must be indexed again: the file was created, was damaged, or had another model's vectors. */
bool gw_memory_db_is_new(struct gw_memory_db *db);

/* After a failure: if the file is damaged, it is moved aside, and an empty one is opened. */
void gw_memory_db_mend(struct gw_memory_db *db);

/*
 * The hash with which a file was indexed; "": it was not indexed. `*whole`: false if some of its chunks have no vector
 * that should have one.
 */
FM_MUST_USE enum fm_code gw_memory_db_hash(struct gw_memory_db *db, const char *path, char hash[GW_HASH_LEN + 1],
                                           bool *whole, struct fm_error *error);

/* Gives the chunks the vectors that the cache has for them. */
FM_MUST_USE enum fm_code gw_memory_db_look_up(struct gw_memory_db *db, struct gw_chunks *chunks,
                                              struct fm_error *error);

/*
 * Replaces the chunks of a file and puts their vectors into the cache, in one transaction. `hash` and `whole` are what
 * gw_memory_db_hash returns from then on. Vectors of another length than the stored ones mean another model: everything
 * else is dropped, and gw_memory_db_is_new is true.
 */
FM_MUST_USE enum fm_code gw_memory_db_store(struct gw_memory_db *db, const char *path, const char *hash, bool whole,
                                            const struct gw_chunks *chunks, struct fm_error *error);

/* Removes everything of the file, its vectors in the cache too. A file that is not there is no error. */
FM_MUST_USE enum fm_code gw_memory_db_forget(struct gw_memory_db *db, const char *path, struct fm_error *error);

/* Calls `each` with the path of each file, until it returns false. `each` may not use the database. */
FM_MUST_USE enum fm_code gw_memory_db_files(struct gw_memory_db *db, bool (*each)(void *context, const char *path),
                                            void *context, struct fm_error *error);

/* A chunk that a search found. */
struct gw_hit {
    char *path; /* as gw_memory_db_store got it; the caller frees it and `text` */
    char *text;
    size_t len;
    struct gw_found found;
};

/*
 * Finds the best `limit` chunks for a question, by its words (`len` bytes; 0: not by words) and its vector (NULL: not
 * by vector). Words that very many chunks have are left out, so a search takes about as long in a large memory as in a
 * small one. `hits` has room for `limit`. The caller frees them by gw_hits_free; after a failure there is nothing to
 * free.
 */
FM_MUST_USE enum fm_code gw_memory_db_search(struct gw_memory_db *db, const char *question, size_t len,
                                             const float *vector, size_t dimensions, struct gw_hit *hits, size_t limit,
                                             size_t *count, struct fm_error *error);
void gw_hits_free(struct gw_hit *hits, size_t count);

#endif
