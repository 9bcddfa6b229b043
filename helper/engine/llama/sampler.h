/* Draws a job's tokens by the job's sampling parameters, and within its grammar if it has one. Engine thread only. */
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
    float *adjusted;       /* the logits with all additions; NULL: nothing is added */
    float *added;          /* the addition to each token's logit: its bias, and the penalties so far; NULL: nothing */
    unsigned char *seen;   /* for each token, 1 if it was generated; as long as `added` */
    unsigned char *recent; /* how often each token is in `window`; NULL: no repeat_penalty */
    llama_token window[FM_REPEAT_WINDOW]; /* the last tokens of prompt and answer, a ring */
    size_t windowed;                      /* how many tokens were put into `window` so far */
    /* tokens that may come even if the grammar does not allow them; LLAMA_TOKEN_NULL: none */
    llama_token also[FM_SAMPLER_ALSO];
    /* `also` takes part in the masked draw too; otherwise only in the free draw from all tokens */
    bool also_alike;
    bool also_space;                   /* all white space may come too, even if the grammar does not allow it */
    /*
     * Ends the turn. It is drawn if the grammar allows an end, but not the word that the free draw gives: the model wants
     * to go on with prose, which is no reason for anything else. LLAMA_TOKEN_NULL: the masked draw decides.
     */
    llama_token end;
};

/*
 * Makes a sampler with the parameters of `job`; `job` and `grammar` must outlive the sampler. FM_INVALID_REQUEST with
 * `param` "logit_bias" if a bias names a token that the vocabulary lacks. On failure nothing is left to free.
 */
FM_MUST_USE enum fm_code fm_sampler_init(struct fm_sampler *sampler, const struct fm_kit_job *job,
                                         struct fm_grammar *grammar, const struct llama_vocab *vocab,
                                         struct fm_error *error);
void fm_sampler_free(struct fm_sampler *sampler);

/*
 * Draws the next token by `logits` (one for each token). LLAMA_TOKEN_NULL: the grammar allows no token;
 * fm_grammar_reason says why.
 */
llama_token fm_sampler_draw(struct fm_sampler *sampler, const float *logits);

/* Makes the prompt's last tokens count for `repeat_penalty`. The place of an image does not count. */
void fm_sampler_take_prompt(struct fm_sampler *sampler, const llama_token *tokens, size_t count);

/* Call it for every token of the answer, drawn or forced: the token then counts for the penalties. */
void fm_sampler_take(struct fm_sampler *sampler, llama_token token);

#endif
