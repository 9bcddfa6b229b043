/* How likely the model itself held a token, and which ones it held most likely. Engine thread only. */
#ifndef FM_ENGINE_LLAMA_LOGPROBS_H
#define FM_ENGINE_LLAMA_LOGPROBS_H

#include "engine/kit/logprobs.h"

#include <llama.h>

struct fm_logprobs {
    struct fm_token_logprobs told; /* its bytes lie in `text`, but for the token's own */
    struct fm_buf text;
};

/*
 * By `logits` (one a token of `vocab`), as they come out of the model: the probabilities are their softmax. `told` has
 * the logprob of `token`, whose bytes are the caller's to fill in, and the `count` most likely tokens (at most
 * FM_TOP_LOGPROBS_MAX; control tokens as the vocabulary writes them). False when out of memory. Free it either way.
 */
FM_MUST_USE bool fm_logprobs_read(struct fm_logprobs *logprobs, const struct llama_vocab *vocab, const float *logits,
                                  llama_token token, size_t count);
void fm_logprobs_free(struct fm_logprobs *logprobs);

#endif
