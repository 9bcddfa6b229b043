/*
 * The memory: finds again what was said in past sessions, by its words and by its meaning.
 *
 *     gw_memory_open   at the start; then gw_memory_sync: what is new or has changed is indexed in the background
 *     gw_memory_index  after a run
 *     gw_memory_forget when a session is deleted
 *     gw_memory_search before a run
 *
 * Only the memory's thread uses the database. The vectors come from an embedder, which is called on the loop. Searches
 * go before indexing. If the embedder fails, a search uses only words, and transcripts that lack vectors are indexed
 * again at the next sync.
 *
 * Loop thread. Only gw_memory_close blocks. Callbacks come later, never from within the function that takes them, and
 * once each; after a failure nothing calls back.
 */
#ifndef GW_MEMORY_MEMORY_H
#define GW_MEMORY_MEMORY_H

#include "memory/db.h"
#include "sessions/worker.h"

#define GW_SEARCH_LIMIT_MAX 50u
#define GW_EMBED_AT_ONCE    16u   /* texts of a call of the embedder */
#define GW_QUESTION_MAX     8192u /* bytes of a question that are searched for */

/* ---- the embedder ---- */

/*
 * Texts that need vectors. The embedder keeps the struct from `embed` until it calls gw_embedding_done or
 * gw_embedding_failed. It calls one of them exactly once, on the loop thread, either at once or later, and also if the
 * memory is closed meanwhile.
 */
struct gw_embedding {
    const char *const *texts; /* UTF-8, NUL-terminated as well */
    const size_t *lens;
    size_t count;
    bool for_search; /* a search waits for the vectors; otherwise this is background work */
};

struct gw_embedder {
    void *context;
    void (*embed)(void *context, struct gw_embedding *embedding);
};

/* `vectors` has count * dimensions numbers, one vector after the other. They are copied, and scaled to length 1. */
void gw_embedding_done(struct gw_embedding *embedding, const float *vectors, size_t dimensions);

/*
 * FM_CONTEXT_OVERFLOW: a text is too long for the model; the memory asks again with its halves. Any other code: there
 * are no vectors now.
 */
void gw_embedding_failed(struct gw_embedding *embedding, const struct fm_error *error);

/* ---- the memory ---- */

struct gw_memory;

struct gw_memory_options {
    uv_loop_t *loop;
    const char *database; /* path of memory.db */
    const char *folder;   /* the folder of the transcripts */
    const char *model;    /* the vectors' model, such as "openai/NAME"; if it changes, all is indexed anew; "": none */
    struct gw_embedder embedder; /* `embed` NULL: no embedder, so the memory only searches by words */
};

/*
 * Texts are copied. FM_UNAVAILABLE: no thread. The database is opened on its thread; if that fails, later calls fail.
 */
FM_MUST_USE enum fm_code gw_memory_open(const struct gw_memory_options *options, struct gw_memory **memory,
                                        struct fm_error *error);

/*
 * Ends the thread after its current job. Calls that wait are dropped: they call back with FM_CANCELLED. The loop has to
 * run once more, and the memory lives until the embedder has answered everything.
 */
void gw_memory_close(struct gw_memory *memory);

/* `error` NULL: done. */
typedef void gw_memory_done(void *context, const struct fm_error *error);

/* Indexes what is new or has changed in the folder, and forgets what is gone. */
FM_MUST_USE enum fm_code gw_memory_sync(struct gw_memory *memory, gw_memory_done *done, void *context,
                                        struct fm_error *error);

/* Indexes a session's transcript. */
FM_MUST_USE enum fm_code gw_memory_index(struct gw_memory *memory, const char *session_key, gw_memory_done *done,
                                         void *context, struct fm_error *error);

/*
 * Removes the session from the memory. Call it after the transcript is gone; otherwise the next sync indexes it again.
 */
FM_MUST_USE enum fm_code gw_memory_forget(struct gw_memory *memory, const char *session_key, gw_memory_done *done,
                                          void *context, struct fm_error *error);

/*
 * Receives the hits, the best first; `path` of a hit is "sessions/KEY.jsonl". `error` NULL: the search went well, and
 * `by_meaning` says whether vectors took part. All of it is valid during the call.
 */
typedef void gw_memory_searched(void *context, const struct fm_error *error, const struct gw_hit *hits, size_t count,
                                bool by_meaning);

/* Searches for a question, `limit` (1 to GW_SEARCH_LIMIT_MAX) chunks at most. */
FM_MUST_USE enum fm_code gw_memory_search(struct gw_memory *memory, const char *question, size_t limit,
                                          gw_memory_searched *done, void *context, struct fm_error *error);

#endif
