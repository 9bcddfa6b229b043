/*
 * Constrained decoding, by llguidance: which tokens may come next in a text, and which must. Engine thread only;
 * nothing blocks for longer than it computes.
 *
 * The nouns: a *grammar vocabulary* is a model's, made once; a *grammar* is one job's, and is moved on token by token.
 */
#ifndef FM_ENGINE_LLAMA_GRAMMAR_H
#define FM_ENGINE_LLAMA_GRAMMAR_H

#include "engine/llama/prompt.h"

#include <stdint.h>

struct fm_grammar_vocab;
struct fm_grammar;

/* False in a build without llguidance: then the calls below fail, and what there is to free is NULL. */
bool fm_grammar_supported(void);

/*
 * The vocabulary as llguidance wants it, about 100 ms of work. `prompter` must outlive it. On failure (FM_INTERNAL)
 * `*vocab` is NULL.
 */
FM_MUST_USE enum fm_code fm_grammar_vocab_new(const struct fm_prompter *prompter, struct fm_grammar_vocab **vocab,
                                              struct fm_error *error);

/* After its grammars; NULL is fine. Waits for a compilation that was given up. */
void fm_grammar_vocab_free(struct fm_grammar_vocab *vocab);

/*
 * Compiles `text` (NUL-terminated UTF-8, borrowed for the call), of `kind` "json_schema", "lark" or "regex" (a static
 * string). Blocks for 0.4 s at most. FM_INVALID_REQUEST says what is wrong with it, or that it is too large for
 * llguidance's limits or takes longer; FM_OVERLOADED: one that took longer is still at it.
 */
FM_MUST_USE enum fm_code fm_grammar_new(struct fm_grammar_vocab *vocab, const char *kind, const char *text,
                                        struct fm_grammar **grammar, struct fm_error *error);
void fm_grammar_free(struct fm_grammar *grammar); /* NULL is fine */

/* Whether `token` may come next; of an end of turn also where it ends a rule alone. Takes microseconds. */
bool fm_grammar_allows(struct fm_grammar *grammar, llama_token token);

/*
 * One bit a token, those that may come next; valid until the next call. May take a millisecond. NULL when it can't be
 * told: fm_grammar_reason.
 */
const uint32_t *fm_grammar_mask(struct fm_grammar *grammar);

/* `token` has come. False when it was not allowed, or a limit of llguidance was reached: fm_grammar_reason. */
FM_MUST_USE bool fm_grammar_take(struct fm_grammar *grammar, llama_token token);

/*
 * The token that must come next, in what the tokenizer would make of the text that must come; LLAMA_TOKEN_NULL when
 * there is a choice. It is to be taken like others.
 */
llama_token fm_grammar_forced(struct fm_grammar *grammar);

/* The text is whole, and nothing can follow. */
bool fm_grammar_complete(const struct fm_grammar *grammar);

/* The text may end here. Takes microseconds. */
bool fm_grammar_accepts(struct fm_grammar *grammar);

/* Why a call failed; valid as long as the grammar. */
const char *fm_grammar_reason(struct fm_grammar *grammar);

#endif
