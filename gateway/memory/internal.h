/* What the files of memory.h share. Calls go down: memory.c; indexing.c and searching.c; desk.c. */
#ifndef GW_MEMORY_INTERNAL_H
#define GW_MEMORY_INTERNAL_H

#include "memory/memory.h"
#include "sessions/blobs.h"

#define GW_MEMORY_NAME_SIZE (sizeof "sessions/.jsonl" + GW_SESSION_KEY_LEN)

struct gw_memory_task;

struct gw_memory {
    struct gw_memory_options options; /* the memory owns copies of the texts */
    struct gw_worker *worker;
    struct gw_memory_db *db;      /* used only by the thread */
    struct gw_memory_task *first; /* background work, one at a time: the first is at work */
    struct gw_memory_task **end;
    size_t embeddings; /* questions that the embedder has not answered yet */
    bool closing;
    bool worker_gone;
    /* The database is new: everything must be indexed. */
    void (*begin_anew)(struct gw_memory *memory);
};

/* A job of the thread: `work` runs on the thread, then `back` on the loop. A job is a member of its owner's struct. */
struct gw_memory_job {
    struct gw_job job;
    struct gw_memory *memory;
    enum fm_code (*work)(struct gw_memory_job *job, struct gw_memory_db *db, struct fm_error *error);
    void (*back)(struct gw_memory_job *job);
    bool is_new;
    struct fm_error error; /* code FM_OK: `work` went well */
};

/* A question to the embedder. It is a member of its owner's struct. */
struct gw_memory_ask {
    struct gw_embedding embedding; /* the first member: a pointer to it is a pointer to the ask */
    struct gw_memory *memory;
    /* `error` NULL: `vectors` is valid during the call and scaled to length 1. May be called from gw_memory_embed. */
    void (*back)(struct gw_memory_ask *ask, const struct fm_error *error, const float *vectors, size_t dimensions);
};

/* The thread's part: `context` is the memory. */
void gw_memory_run_jobs(void *context, struct gw_job *jobs);

/* Hands the job to the thread. */
void gw_memory_run(struct gw_memory *memory, struct gw_memory_job *job, bool urgent);

/* Asks the embedder. Fails at once if the memory has no embedder. */
void gw_memory_embed(struct gw_memory *memory, struct gw_memory_ask *ask);

/* Frees the memory once it is closed, its thread has ended and the embedder has answered everything. */
void gw_memory_leave(struct gw_memory *memory);
void gw_memory_free(struct gw_memory *memory);

/* FM_CANCELLED: the memory is being closed. */
enum fm_code gw_memory_fail_closing(struct fm_error *error);

/* Begins a sync without a callback, unless a sync is queued that has not read the folder yet. */
void gw_memory_index_anew(struct gw_memory *memory);

/* Ends the background tasks that wait. */
void gw_memory_drop_tasks(struct gw_memory *memory);

#endif
