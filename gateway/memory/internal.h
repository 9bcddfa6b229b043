/* What the files of memory.h share. Calls go down: memory.c; indexing.c and searching.c; desk.c. */
#ifndef GW_MEMORY_INTERNAL_H
#define GW_MEMORY_INTERNAL_H

#include "memory/memory.h"
#include "sessions/blobs.h"

#define GW_MEMORY_NAME_SIZE (sizeof "sessions/.jsonl" + GW_SESSION_KEY_LEN)

struct gw_memory_task;

struct gw_memory {
    struct gw_memory_options options; /* texts are its own */
    struct gw_worker *worker;
    struct gw_memory_db *db;      /* the thread's */
    struct gw_memory_task *first; /* background work, one at a time: the first is at work */
    struct gw_memory_task **end;
    size_t embeddings; /* that the embedder has */
    bool closing;
    bool worker_gone;
    /* The database is a new one: everything is to be indexed. */
    void (*begin_anew)(struct gw_memory *memory);
};

/* A job of the thread: `work` there, `back` on the loop afterwards. Inside a struct of its owner. */
struct gw_memory_job {
    struct gw_job job;
    struct gw_memory *memory;
    enum fm_code (*work)(struct gw_memory_job *job, struct gw_memory_db *db, struct fm_error *error);
    void (*back)(struct gw_memory_job *job);
    bool is_new;
    struct fm_error error; /* code FM_OK: `work` went well */
};

/* What is asked of the embedder. Inside a struct of its owner. */
struct gw_memory_ask {
    struct gw_embedding embedding; /* first: the embedder's pointer is the ask's */
    struct gw_memory *memory;
    /* `error` NULL: `vectors` is there during the call, scaled to length 1. May be called from gw_memory_embed. */
    void (*back)(struct gw_memory_ask *ask, const struct fm_error *error, const float *vectors, size_t dimensions);
};

/* The thread's part: `context` is the memory. */
void gw_memory_run_jobs(void *context, struct gw_job *jobs);

/* Hands the job to the thread. */
void gw_memory_run(struct gw_memory *memory, struct gw_memory_job *job, bool urgent);

/* Asks; without an embedder it fails at once. */
void gw_memory_embed(struct gw_memory *memory, struct gw_memory_ask *ask);

/* Frees the memory once it is closed, its thread is gone and the embedder has nothing of it. */
void gw_memory_leave(struct gw_memory *memory);
void gw_memory_free(struct gw_memory *memory);

/* FM_CANCELLED: the memory is being closed. */
enum fm_code gw_memory_fail_closing(struct fm_error *error);

/* Begins a sync that nobody waits for, unless one is yet to read the folder. */
void gw_memory_index_anew(struct gw_memory *memory);

/* Ends what waits of the background work. */
void gw_memory_drop_tasks(struct gw_memory *memory);

#endif
