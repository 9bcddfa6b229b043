/*
 * A draft model: a small model with the same vocabulary as the model, which guesses the next tokens. It has a separate
 * context with one sequence, which follows one answer. The CPU computes it, with the threads of the model. Engine
 * thread only.
 */
#ifndef FM_ENGINE_LLAMA_DRAFT_MODEL_H
#define FM_ENGINE_LLAMA_DRAFT_MODEL_H

#include "engine/llama/model.h"

struct fm_draft_model {
    const struct fm_llama_model *model; /* the model for which it guesses; borrowed */
    struct llama_model *weights;
    struct llama_context *context;
    struct llama_batch batch;
    llama_token *tokens;    /* tokens in its memory */
    size_t count;           /* how many tokens are in `tokens` */
    size_t room;            /* size of its context */
    llama_token vocabulary; /* number of tokens that both models have */
    int64_t memory_bytes;   /* bytes of its weights and KV memory */
    double token_us;        /* measured time of a token in a batch of many; 0: not known yet */
};

/*
 * Loads `path` for `model`, which must outlive it and was loaded with `options`. FM_UNAVAILABLE if it can't be loaded,
 * has another vocabulary, is of a kind that can't draft, or if the memory is too small for both models: the error names
 * the option and the file, and says what to do. Blocks as long as it takes; nothing is left loaded after a failure.
 */
FM_MUST_USE enum fm_code fm_draft_model_load(struct fm_draft_model *draft, const struct fm_llama_model *model,
                                             const char *path, const struct fm_llama_model_options *options,
                                             fm_llama_model_progress *progress, void *argument, struct fm_error *error);

/* Allowed if it was never loaded. Call it before the model is freed. */
void fm_draft_model_free(struct fm_draft_model *draft);

/* After this call `stop` is called many times while the draft model computes, on this thread; NULL: no longer. */
void fm_draft_model_watch(struct fm_draft_model *draft, fm_llama_stop *stop, void *argument);

/*
 * How many of `tokens` the draft model must compute before it can guess the token after the last one; 0: it can't guess
 * at all.
 */
size_t fm_draft_model_behind(const struct fm_draft_model *draft, const llama_token *tokens, size_t count);

/*
 * Computes at most `most` of the tokens that the draft model lacks, and forgets those that differ from `tokens`. False:
 * it was stopped, or failed; then some tokens may be left. Blocks.
 */
FM_MUST_USE bool fm_draft_model_follow(struct fm_draft_model *draft, const llama_token *tokens, size_t count,
                                       size_t most);

/*
 * Call it after a fm_draft_model_follow up to the last token. Computes `token` as the next token of the answer. False:
 * there is no room for it, or the computation was stopped, or failed. Blocks.
 */
FM_MUST_USE bool fm_draft_model_go_on(struct fm_draft_model *draft, llama_token token);

/*
 * The most likely next token, and its probability. Call it after fm_draft_model_follow up to the last token, or after
 * fm_draft_model_go_on.
 */
llama_token fm_draft_model_guess(const struct fm_draft_model *draft, double *probability);

#endif
