/*
 * Connects the loop, the memory's thread and the embedder. Each job or question goes out and comes back exactly once.
 * The memory is freed when it is closed, its thread has ended, and the embedder has answered everything.
 */
#include "memory/internal.h"
#include "protocol/vector.h"

#include <stdlib.h>
#include <string.h>

/* ---- the thread ---- */

/* The worker's `run`: see gw_memory_open. */
static void run_one(struct gw_memory *memory, struct gw_memory_job *job) {
    const struct gw_memory_options *options = &memory->options;
    if (!memory->db && gw_memory_db_open(options->database, options->model, &memory->db, &job->error) != FM_OK) {
        return; /* the next job tries again to open the database */
    }
    job->error.code = job->work(job, memory->db, &job->error);
    if (job->error.code == FM_UNAVAILABLE) {
        gw_memory_db_mend(memory->db);
    }
    job->is_new = gw_memory_db_is_new(memory->db);
}

void gw_memory_run_jobs(void *context, struct gw_job *jobs) {
    for (struct gw_job *job = jobs; job; job = job->next) {
        run_one(context, (struct gw_memory_job *)job);
    }
}

static void on_job(struct gw_job *base) {
    struct gw_memory_job *job = (struct gw_memory_job *)base;
    if (job->is_new && !job->memory->closing) {
        job->memory->begin_anew(job->memory);
    }
    job->back(job);
}

void gw_memory_run(struct gw_memory *memory, struct gw_memory_job *job, bool urgent) {
    job->memory = memory;
    job->error.code = FM_OK;
    job->is_new = false;
    job->job.done = on_job;
    job->job.urgent = urgent;
    gw_worker_add(memory->worker, &job->job);
}

/* ---- the embedder ---- */

void gw_memory_embed(struct gw_memory *memory, struct gw_memory_ask *ask) {
    struct fm_error error;
    const struct gw_embedder *embedder = &memory->options.embedder;
    ask->memory = memory;
    memory->embeddings++;
    if (embedder->embed) {
        embedder->embed(embedder->context, &ask->embedding);
    } else {
        fm_fail(&error, FM_UNAVAILABLE, "there is no model for vectors");
        gw_embedding_failed(&ask->embedding, &error);
    }
}

static void settle_ask(struct gw_memory_ask *ask, const struct fm_error *error, const float *vectors,
                       size_t dimensions) {
    struct gw_memory *memory = ask->memory; /* this call may free the ask */
    ask->back(ask, error, vectors, dimensions);
    memory->embeddings--;
    gw_memory_leave(memory);
}

void gw_embedding_failed(struct gw_embedding *embedding, const struct fm_error *error) {
    settle_ask((struct gw_memory_ask *)embedding, error, NULL, 0);
}

static bool scale(float *vectors, size_t count, size_t dimensions) {
    bool done = true;
    for (size_t i = 0; i < count; i++) {
        done = fm_vector_normalise(vectors + i * dimensions, dimensions) && done;
    }
    return done;
}

void gw_embedding_done(struct gw_embedding *embedding, const float *vectors, size_t dimensions) {
    struct fm_error error;
    size_t numbers = embedding->count * dimensions;
    float *copy = dimensions && dimensions <= GW_DIMENSIONS_MAX ? malloc(numbers * sizeof *copy) : NULL;
    if (copy) {
        memcpy(copy, vectors, numbers * sizeof *copy);
    }
    if (copy && scale(copy, embedding->count, dimensions)) {
        settle_ask((struct gw_memory_ask *)embedding, NULL, copy, dimensions);
    } else {
        fm_fail(&error, FM_INTERNAL,
                "the model's vectors of %zu numbers can't be used: too many or none, all zeros, or "
                "not finite",
                dimensions);
        gw_embedding_failed(embedding, &error);
    }
    free(copy);
}

/* ---- the end ---- */

enum fm_code gw_memory_fail_closing(struct fm_error *error) {
    return fm_fail(error, FM_CANCELLED, "the gateway ends");
}

void gw_memory_free(struct gw_memory *memory) {
    free((char *)memory->options.database);
    free((char *)memory->options.folder);
    free((char *)memory->options.model);
    free(memory);
}

void gw_memory_leave(struct gw_memory *memory) {
    if (memory->closing && memory->worker_gone && memory->embeddings == 0) {
        gw_memory_free(memory);
    }
}
