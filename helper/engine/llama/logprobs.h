/* How likely the model itself held a token, and which ones it held most likely. Engine thread only. */
#ifndef FM_ENGINE_LLAMA_LOGPROBS_H
#define FM_ENGINE_LLAMA_LOGPROBS_H

#include "engine/kit/kit.h"

#include <llama.h>

struct fm_llama_logprobs {
    struct fm_token_logprobs told; /* all its bytes lie in `text`, except the token's own */
    struct fm_buf text;
};

/*
 * By `logits` (one a token of `vocab`), as they come out of the model: the probabilities are their softmax. `told` has
 * the logprob of `token`, whose bytes are the caller's to fill in, and the `count` most likely tokens (at most
 * FM_TOP_LOGPROBS_MAX; control tokens as the vocabulary writes them). False when out of memory. Free it either way.
 */
FM_MUST_USE bool fm_llama_logprobs_read(struct fm_llama_logprobs *logprobs, const struct llama_vocab *vocab,
                                        const float *logits, llama_token token, size_t count);
void fm_llama_logprobs_free(struct fm_llama_logprobs *logprobs);

/* Of tokens that may be a thought's, as long as that is open. Zeroed, it has none. */
struct fm_held_logprobs {
    struct fm_llama_logprobs *tokens; /* owned; told.token.len is known, the bytes are not */
    size_t count;
};

/* Holds those of `token`, which has `len` bytes; the rest as for fm_llama_logprobs_read. False when out of memory. */
FM_MUST_USE bool fm_held_logprobs_add(struct fm_held_logprobs *held, const struct llama_vocab *vocab,
                                      const float *logits, llama_token token, size_t len, size_t count);

/*
 * The last `len` bytes of the tokens are text after all, `text`: tells the job of those tokens, and of the first one as
 * much as is text. Before the job is told the text.
 */
void fm_held_logprobs_tell(struct fm_held_logprobs *held, struct fm_kit_job *job, const char *text, size_t len);

/* Lets go of them; it can be used again. */
void fm_held_logprobs_drop(struct fm_held_logprobs *held);

#endif
