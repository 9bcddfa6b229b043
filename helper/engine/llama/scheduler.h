/*
 * Several jobs at once: continuous batching. In a loop: jobs that came are admitted, a batch is filled (one token of
 * each answer that is under way, and pieces of the prompts that are not computed yet), it is computed, and each
 * sequence takes its logits. Engine thread only.
 */
#ifndef FM_ENGINE_LLAMA_SCHEDULER_H
#define FM_ENGINE_LLAMA_SCHEDULER_H

#include "engine/llama/sequence.h"

struct fm_scheduler {
    struct fm_llama_model *model; /* borrowed */
    struct fm_draft_model *draft; /* borrowed; NULL: none */
    struct fm_cache cache;
    struct fm_batch batch;
    struct fm_sequence *list; /* model->slots of them; those without a job are free */
    size_t running;           /* those with one, also where its grammar is still being compiled */
    struct fm_kit *kit;       /* borrowed; while it runs, as the next */
    struct fm_saved *saved;
    struct fm_huge_pages *pages;
    bool computed;                     /* something: which weights are read is known */
    const struct fm_sequence *busy;    /* whose job or image is worked on: it is not ended meanwhile. NULL: none */
    bool wanted;                       /* somebody waits for what is being computed */
    int64_t asked_ms;                  /* when that was looked at */
    bool crowded;                      /* one had to give its place up: none gets one before another ends */
    bool gives_way;                    /* what is computed, to a job that comes: a long batch of prompts */
    size_t long_max;                   /* tokens of such a batch; fewer after some were in vain */
    int64_t vain_ms;                   /* that went into these */
    int64_t begun_ms;                  /* when the batch was begun */
    unsigned asked;                    /* how often llama.cpp has asked since then whether to stop; */
    unsigned asks;                     /* and in the whole of an earlier one; 0: there was none */
    double token_ms;                   /* what a token of a prompt takes, as measured; 0: not known yet */
    struct fm_speculation speculation; /* what drafts take */
    bool cramped;                      /* the memory had no room for drafts: the next batch has none */
};

/* For `model` and its draft model (NULL: none), which must outlive it. On failure nothing is left to free. */
FM_MUST_USE enum fm_code fm_scheduler_init(struct fm_scheduler *scheduler, struct fm_llama_model *model,
                                           struct fm_draft_model *draft, struct fm_error *error);
void fm_scheduler_free(struct fm_scheduler *scheduler);

/*
 * Takes jobs and runs them, until `kit` ends; then saves to `saved` what it has computed. Moves `pages` (weights.h)
 * while there is no job. Blocks.
 */
void fm_scheduler_run(struct fm_scheduler *scheduler, struct fm_saved *saved, struct fm_huge_pages *pages,
                      struct fm_kit *kit);

#endif
