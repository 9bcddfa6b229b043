/*
 * The probability that the model itself gave to a token, and the tokens that it found most likely. Engine thread only.
 */
#ifndef FM_ENGINE_LLAMA_LOGPROBS_H
#define FM_ENGINE_LLAMA_LOGPROBS_H

#include "engine/kit/kit.h"

#include <llama.h>

struct fm_llama_logprobs {
    struct fm_token_logprobs told; /* all its bytes are in `text`, except the token's own */
    struct fm_buf text;
};

/* The logarithm of the sum of exp(logit) of `size` logits, at least 1. Pure. */
double fm_llama_log_sum_exp(const float *logits, size_t size);

/*
 * Computes log probabilities from `logits` (one for each token of `vocab`), as the model returns them: the
 * probabilities are their softmax. `told` gets the logprob of `token`, whose bytes the caller fills in, and the `count`
 * most likely tokens (at most FM_TOP_LOGPROBS_MAX; control tokens as the vocabulary writes them). False when out of
 * memory. Free `told` in both cases.
 */
FM_MUST_USE bool fm_llama_logprobs_read(struct fm_llama_logprobs *logprobs, const struct llama_vocab *vocab,
                                        const float *logits, llama_token token, size_t count);
void fm_llama_logprobs_free(struct fm_llama_logprobs *logprobs);

/*
 * Log probabilities of tokens that may belong to a thought, as long as it is not decided whether they do. All zero:
 * there are none.
 */
struct fm_held_logprobs {
    struct fm_llama_logprobs *tokens; /* owned; told.token.len is known, the bytes are not */
    size_t count;
};

/*
 * Holds the log probabilities of `token`, which has `len` bytes; other parameters as in fm_llama_logprobs_read. False
 * when out of memory.
 */
FM_MUST_USE bool fm_held_logprobs_add(struct fm_held_logprobs *held, const struct llama_vocab *vocab,
                                      const float *logits, llama_token token, size_t len, size_t count);

/*
 * Call it when the last `len` bytes of the held tokens are text, `text`, and before the job gets this text. Passes on
 * the tokens of these bytes to the job; of the first token only the part that is text.
 */
void fm_held_logprobs_tell(struct fm_held_logprobs *held, struct fm_kit_job *job, const char *text, size_t len);

/* Drops the held log probabilities; `held` can be used again. */
void fm_held_logprobs_drop(struct fm_held_logprobs *held);

#endif
