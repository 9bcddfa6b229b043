/*
 * The questions of a job, decided one after the other (ENGINE.md, Decisions). Nothing is generated. The sequence goes
 * back to the end of the shared part of the prompt before each question, and to the end of the question before each
 * choice. A choice of one token needs no computing besides the question's. Engine thread only; nothing here blocks,
 * except that fm_decide_begin and fm_decide_next render and tokenize the whole prompt.
 *
 * The bits of a result do not depend on the other questions, if the sequence is exact (cache.h): what is shared ends
 * in the same place for all questions, and a batch ends there.
 */
#ifndef FM_ENGINE_LLAMA_DECIDE_H
#define FM_ENGINE_LLAMA_DECIDE_H

#include "engine/llama/batch.h"
#include "engine/llama/cached.h"
#include "engine/llama/request.h"

/* The tokens of a choice. */
struct fm_choice_tokens {
    llama_token *tokens; /* owned */
    size_t count;
};

struct fm_decide {
    struct fm_llama_request *request; /* borrowed */
    size_t question;                  /* the question under way */
    llama_token *shared;              /* owned: the tokens with which the prompt of each question begins */
    size_t shared_count;
    size_t asked;   /* tokens of the prompt, up to the end of the question */
    size_t variant; /* which tokens of the choices count: those without, or with a space in front */
    size_t choice;  /* the choice under way; the number of choices: none is left */
    /* by variant: of the question's choices */
    struct fm_choice_tokens choices[2][FM_QUESTION_CHOICES_MAX];
    double first[2][FM_QUESTION_CHOICES_MAX]; /* the log probability of each choice's first token, by variant */
    double logprobs[FM_QUESTION_CHOICES_MAX];
    double *rest;  /* owned: log probabilities of the tokens of the choice under way, except the first; room for `room` */
    size_t room;
    int64_t input; /* tokens of all questions so far; the shared part counts once */
};

/*
 * Makes the prompts of two questions that nobody asks, to see what all prompts share, then that of the longest
 * question, to see whether it fits. `request` was read before. `*decide` is NULL on failure; the errors are those of
 * fm_llama_request_read.
 */
FM_MUST_USE enum fm_code fm_decide_begin(struct fm_llama_request *request, struct fm_decide **decide,
                                         struct fm_error *error);
void fm_decide_free(struct fm_decide *decide); /* harmless on NULL */

/*
 * Puts the prompt of the next question into `tokens` (room for a context), `*count` of them. Returns FM_OK, or an error
 * of fm_llama_request_read.
 */
FM_MUST_USE enum fm_code fm_decide_next(struct fm_decide *decide, llama_token *tokens, size_t *count,
                                        struct fm_error *error);

/* How many of the `count` tokens from `from` on may be in one batch. */
size_t fm_decide_limit(const struct fm_decide *decide, size_t from, size_t count);

/* Whether the logits after the token with this index are wanted. */
bool fm_decide_wants(const struct fm_decide *decide, size_t index);

/* Takes the logits after the token with this index, for which fm_decide_wants is true. `tokens`: as in fm_decide_next. */
void fm_decide_take(struct fm_decide *decide, const llama_token *tokens, size_t count, size_t index,
                    const float *logits);

/*
 * Call it when all `*count` tokens are computed and their logits taken: adds the tokens of the next choice, or reports
 * the decision and puts the next question there. `cached` is cut as needed. FM_REASON_NONE: go on.
 */
FM_MUST_USE enum fm_reason fm_decide_step(struct fm_decide *decide, struct fm_cached *cached, llama_token *tokens,
                                          size_t *count, struct fm_error *error);

#endif
