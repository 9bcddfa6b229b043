/*
 * A search: the question's vector, then the two lists on the memory's thread. Without a vector, only words are
 * searched.
 */
#include "memory/internal.h"

#include <stdlib.h>
#include <string.h>

struct search {
    struct gw_memory_ask ask; /* the first member */
    struct gw_memory_job job;
    gw_memory_searched *done;
    void *context;
    size_t limit;
    float *vector;
    size_t dimensions;
    struct gw_hit hits[GW_SEARCH_LIMIT_MAX];
    size_t count;
    const char *text; /* the ask's, as the length */
    size_t len;
    char question[];
};

static struct search *search_of(struct gw_memory_job *job) {
    return (struct search *)(void *)((char *)job - offsetof(struct search, job));
}

static void end_search(struct search *search, const struct fm_error *error) {
    search->done(search->context, error, search->hits, search->count, search->vector != NULL);
    gw_hits_free(search->hits, search->count);
    free(search->vector);
    free(search);
}

static enum fm_code run_search(struct gw_memory_job *job, struct gw_memory_db *db, struct fm_error *error) {
    struct search *search = search_of(job);
    enum fm_code code = gw_memory_db_search(db, search->text, search->len, search->vector, search->dimensions,
                                            search->hits, search->limit, &search->count, error);
    search->count = code == FM_OK ? search->count : 0;
    return code;
}

static void on_searched(struct gw_memory_job *job) {
    end_search(search_of(job), job->error.code == FM_OK ? NULL : &job->error);
}

static void on_vector(struct gw_memory_ask *ask, const struct fm_error *error, const float *vectors,
                      size_t dimensions) {
    struct search *search = (struct search *)ask;
    struct fm_error closing;
    if (ask->memory->closing) {
        gw_memory_fail_closing(&closing);
        end_search(search, &closing);
        return;
    }
    if (!error && (search->vector = malloc(dimensions * sizeof *vectors))) {
        memcpy(search->vector, vectors, dimensions * sizeof *vectors);
        search->dimensions = dimensions;
    }
    gw_memory_run(ask->memory, &search->job, true);
}

enum fm_code gw_memory_search(struct gw_memory *memory, const char *question, size_t limit, gw_memory_searched *done,
                              void *context, struct fm_error *error) {
    size_t len = strlen(question);
    if (limit == 0 || limit > GW_SEARCH_LIMIT_MAX || len > GW_QUESTION_MAX) {
        return fm_fail(error, FM_INVALID_REQUEST, "a search has a question of at most %u bytes and a limit of 1 to %u",
                       GW_QUESTION_MAX, GW_SEARCH_LIMIT_MAX);
    }
    struct search *search = calloc(1, sizeof *search + len + 1);
    if (!search) {
        return fm_fail_no_memory(error);
    }
    memcpy(search->question, question, len + 1);
    search->text = search->question;
    search->len = len;
    search->limit = limit;
    search->done = done;
    search->context = context;
    search->job.work = run_search;
    search->job.back = on_searched;
    search->ask.back = on_vector;
    search->ask.embedding =
        (struct gw_embedding){.texts = &search->text, .lens = &search->len, .count = 1, .for_search = true};
    gw_memory_embed(memory, &search->ask);
    return FM_OK;
}
