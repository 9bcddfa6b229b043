/*
 * Several jobs at once: continuous batching. In a loop it admits new jobs, fills a batch (one token of each present
 * answer, and pieces of prompts that are not computed yet), computes the batch, and gives each sequence its logits.
 * Engine thread only.
 */
#ifndef FM_ENGINE_LLAMA_SCHEDULER_H
#define FM_ENGINE_LLAMA_SCHEDULER_H

#include "engine/llama/sequence.h"

struct fm_scheduler {
    struct fm_llama_model *model; /* borrowed */
    struct fm_draft_model *draft; /* borrowed; NULL: none */
    struct fm_cache cache;
    struct fm_batch batch;
    struct fm_sequence *list;    /* model->slots sequences; those without a job are free */
    size_t running;              /* sequences with a job, including those whose grammar is being compiled */
    struct fm_kit *kit;          /* borrowed during fm_scheduler_run */
    struct fm_saved *saved;      /* borrowed during fm_scheduler_run */
    struct fm_huge_pages *pages; /* borrowed during fm_scheduler_run */
    bool computed;               /* something was computed, so it is known which weights are read */
    /* the sequence whose job or image is being worked on, so it must not be ended now. NULL: none */
    const struct fm_sequence *busy;
    bool wanted;      /* some job waits for the present computation */
    int64_t asked_ms; /* when `wanted` was checked last */
    /* a sequence had to give up its place: no sequence gets a place until one ends */
    bool crowded;
    bool gives_way;                    /* the present computation, a long batch of prompts, gives way to a new job */
    size_t long_max;                   /* most tokens of a batch of prompts alone; fewer after batches were given up */
    int64_t vain_ms;                   /* tokens computed in vain since long_max was last changed */
    int64_t begun_ms;                  /* when the present batch was begun */
    unsigned asked;                    /* how often llama.cpp has called abort_asked since begun_ms */
    unsigned asks;                     /* how often it called abort_asked in a whole earlier batch; 0: there was none */
    double token_ms;                   /* measured time of a token of a prompt; 0: not known yet */
    struct fm_speculation speculation; /* the cost of drafts */
    bool cramped;                      /* the memory had no room for drafts: the next batch has none */
};

/*
 * Makes a scheduler for `model` and its draft model (NULL: none), which must outlive it. On failure nothing is left to
 * free.
 */
FM_MUST_USE enum fm_code fm_scheduler_init(struct fm_scheduler *scheduler, struct fm_llama_model *model,
                                           struct fm_draft_model *draft, struct fm_error *error);
void fm_scheduler_free(struct fm_scheduler *scheduler);

/*
 * Takes jobs and runs them until `kit` ends; then saves the computed tokens to `saved`. Moves `pages` (weights.h) while
 * there is no job. Blocks.
 */
void fm_scheduler_run(struct fm_scheduler *scheduler, struct fm_saved *saved, struct fm_huge_pages *pages,
                      struct fm_kit *kit);

#endif
