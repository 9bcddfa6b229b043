/*
 * A draft model: a small model with the vocabulary of the model, which guesses what comes next. It has a context of its
 * own with one sequence, which follows the answer that has guesses made. The CPU computes it, by the threads of the
 * model. Engine thread only.
 */
#ifndef FM_ENGINE_LLAMA_DRAFT_MODEL_H
#define FM_ENGINE_LLAMA_DRAFT_MODEL_H

#include "engine/llama/model.h"

struct fm_draft_model {
    const struct fm_llama_model *model; /* that it guesses for; borrowed */
    struct llama_model *weights;
    struct llama_context *context;
    struct llama_batch batch;
    llama_token *tokens;    /* in its memory */
    size_t count;           /* of these */
    size_t room;            /* of its context */
    llama_token vocabulary; /* tokens that both models have */
    int64_t memory_bytes;   /* what its weights and its KV memory take */
    double token_us;        /* what a token takes where it computes many at once, as measured; 0: not known yet */
};

/*
 * Loads `path` for `model`, which must outlive it and was loaded with `options`. FM_UNAVAILABLE where it can't be
 * loaded, has another vocabulary, is of a kind that can't draft, or the memory is too small for both: names the option
 * and the file, and says what to do. Blocks as long as it takes; nothing is left loaded after a failure.
 */
FM_MUST_USE enum fm_code fm_draft_model_load(struct fm_draft_model *draft, const struct fm_llama_model *model,
                                             const char *path, const struct fm_llama_model_options *options,
                                             fm_llama_model_progress *progress, void *argument, struct fm_error *error);

/* Also where it was never loaded. Before the model is freed. */
void fm_draft_model_free(struct fm_draft_model *draft);

/* From now on `stop` is asked many times while it computes, on this thread; NULL: no longer. */
void fm_draft_model_watch(struct fm_draft_model *draft, fm_llama_stop *stop, void *argument);

/* How many of `tokens` it would have to compute before it can guess what follows the last one; 0: it can't at all. */
size_t fm_draft_model_behind(const struct fm_draft_model *draft, const llama_token *tokens, size_t count);

/*
 * Computes at most `most` of those, and forgets what differs from `tokens`. False: stopped, or it failed; then some of
 * them may be left. Blocks.
 */
FM_MUST_USE bool fm_draft_model_follow(struct fm_draft_model *draft, const llama_token *tokens, size_t count,
                                       size_t most);

/* After a follow up to the last token: computes `token` after it, as if it had come. False: as above. Blocks. */
FM_MUST_USE bool fm_draft_model_go_on(struct fm_draft_model *draft, llama_token token);

/* After either: the token that is the most likely next one, and how likely it is. */
llama_token fm_draft_model_guess(const struct fm_draft_model *draft, double *probability);

#endif
