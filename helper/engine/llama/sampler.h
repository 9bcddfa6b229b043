/* Draws a job's tokens: by its sampling parameters, and within its grammar where it has one. Engine thread only. */
#ifndef FM_ENGINE_LLAMA_SAMPLER_H
#define FM_ENGINE_LLAMA_SAMPLER_H

#include "engine/guide/grammar.h"
#include "engine/kit/kit.h"

#include <llama.h>

#define FM_SAMPLER_ALSO 32u

struct fm_sampler {
    struct llama_sampler *chain;         /* NULL: the best token is taken */
    struct fm_grammar *grammar;          /* borrowed; NULL: none */
    struct llama_token_data *candidates; /* `vocab_size` entries */
    const struct llama_vocab *vocab;     /* borrowed */
    size_t vocab_size;
    const struct fm_kit_job *job;
    float *adjusted;       /* logits with all that is added to them; NULL: nothing is */
    float *added;          /* what each token's logit gets: its bias, and the penalties so far; NULL: nothing */
    unsigned char *seen;   /* 1: the token was generated; as long as `added` */
    unsigned char *recent; /* how often each token is in `window`; NULL: no repeat_penalty */
    llama_token window[FM_REPEAT_WINDOW]; /* the last tokens of prompt and answer, a ring */
    size_t windowed;                      /* how many tokens were put into `window` so far */
    llama_token also[FM_SAMPLER_ALSO]; /* tokens that may come whatever the grammar has; LLAMA_TOKEN_NULL: none */
    bool also_alike;                   /* `also` is drawn like the grammar's tokens; else only from all tokens */
    bool also_space;                   /* all white space may come, too, whatever the grammar has */
};

/*
 * Makes a sampler by the parameters of `job`; `job` and `grammar` must outlive it. FM_INVALID_REQUEST with `param`
 * "logit_bias" if a bias names a token that the vocabulary lacks. On failure nothing is left to free.
 */
FM_MUST_USE enum fm_code fm_sampler_init(struct fm_sampler *sampler, const struct fm_kit_job *job,
                                         struct fm_grammar *grammar, const struct llama_vocab *vocab,
                                         struct fm_error *error);
void fm_sampler_free(struct fm_sampler *sampler);

/* The next token by `logits` (one a token). LLAMA_TOKEN_NULL: the grammar has none, fm_grammar_reason says why. */
llama_token fm_sampler_draw(struct fm_sampler *sampler, const float *logits);

/* The prompt's last tokens count for `repeat_penalty`. What is not a token (the place of an image) does not. */
void fm_sampler_take_prompt(struct fm_sampler *sampler, const llama_token *tokens, size_t count);

/* `token` is part of the answer, whether it was drawn or forced: it counts for the penalties from here on. */
void fm_sampler_take(struct fm_sampler *sampler, llama_token token);

#endif
