/*
 * Constrained decoding with llguidance: which tokens may come next in a text, and which token must come. Does not need
 * llama.cpp. Engine thread only; no call waits, except where its comment says so.
 *
 * The nouns: a *vocabulary* is a model's tokens, as its engine describes them; a *grammar vocabulary* is made from it
 * once; a *grammar* belongs to one job: it is compiled on a separate thread, and then moves on token by token.
 */
#ifndef FM_ENGINE_GUIDE_GRAMMAR_H
#define FM_ENGINE_GUIDE_GRAMMAR_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FM_TOKEN_NONE (-1)

struct fm_grammar_vocab;
struct fm_grammar;

/*
 * A model's tokens, from 0 on. The functions get `argument`; they are called on the engine thread and on the threads
 * that compile, at the same time.
 */
struct fm_vocabulary {
    int32_t size;
    int32_t end_of_turn;
    bool (*ends_turn)(const void *argument, int32_t token);
    /*
     * Writes the token's text to `piece`; 0: the token has no text, or more than `room` bytes. Only with `control` a
     * control token has a text, which is its name.
     */
    size_t (*piece)(const void *argument, int32_t token, bool control, char *piece, size_t room);
    /* Tokenizes plain text as in an answer, without control tokens. The caller frees `*tokens` with free(). */
    enum fm_code (*tokenize)(const void *argument, const char *text, size_t len, int32_t **tokens, size_t *count,
                             struct fm_error *error);
    /*
     * The length of the tag, such as </tool_call>, at the beginning of `text` (`len` bytes, at least 1). A tag is plain
     * text that is always one token. 0: there is no tag. NULL: the vocabulary has no tags.
     */
    size_t (*tag)(const void *argument, const char *text, size_t len, int32_t *token);
    const void *argument;
};

/* False in a build without llguidance: then the functions below fail, and all pointers that they return are NULL. */
bool fm_grammar_supported(void);

/*
 * Makes a grammar vocabulary of `vocabulary`, which is copied; the things that it points to must outlive the result.
 * `wake` (NULL: none) is called with `waiter`, on another thread, when a grammar may have been compiled, or when the
 * compilation of another grammar may begin. `wake` must not block, and both must live as long as the process. On
 * failure `*vocab` is NULL. The first compilation converts the vocabulary to llguidance's form, which takes some 100
 * ms.
 */
FM_MUST_USE enum fm_code fm_grammar_vocab_new(const struct fm_vocabulary *vocabulary, void (*wake)(void *), void *waiter,
                                              struct fm_grammar_vocab **vocab, struct fm_error *error);

/* Call it after all grammars of the vocabulary were freed. `vocab` may be NULL. Waits for abandoned compilations. */
void fm_grammar_vocab_free(struct fm_grammar_vocab *vocab);

#define FM_GRAMMAR_POLL_MS 20 /* ms between calls of fm_grammar_wait, so that it notices the end of the time limit */

/*
 * Begins to compile `text` (NUL-terminated UTF-8, copied), of `kind` "json_schema", "lark" or "regex" (a static
 * string). Only fm_grammar_wait and fm_grammar_free may be called until it is compiled. Fails when out of memory.
 */
FM_MUST_USE enum fm_code fm_grammar_new(struct fm_grammar_vocab *vocab, const char *kind, const char *text,
                                        struct fm_grammar **grammar, struct fm_error *error);

/* If the grammar is being compiled, the compilation is abandoned. `grammar` may be NULL. */
void fm_grammar_free(struct fm_grammar *grammar);

/* True while the grammar is not compiled yet. */
bool fm_grammar_compiles(const struct fm_grammar *grammar);

/*
 * Waits until the grammar is compiled, or until fm_now_ms() reaches `until_ms` (0: does not wait). fm_grammar_compiles
 * then says whether the grammar is compiled. A few grammars are compiled at the same time, each within a limit of
 * processor time, and the others wait, the shortest first. After a failure only fm_grammar_free may be called:
 * FM_INVALID_REQUEST says what is wrong with the text, or that the text is too large for llguidance's limits or takes
 * too long.
 */
FM_MUST_USE enum fm_code fm_grammar_wait(struct fm_grammar *grammar, int64_t until_ms, struct fm_error *error);

/*
 * Whether `token` may come next. A token that ends the turn is also allowed where it only ends a rule of the grammar,
 * not the whole text. Takes microseconds.
 */
bool fm_grammar_allows(struct fm_grammar *grammar, int32_t token);

/*
 * One bit for each token, set if it may come next; valid until the next call. May take a millisecond. NULL when it
 * can't be computed: fm_grammar_reason says why.
 */
const uint32_t *fm_grammar_mask(struct fm_grammar *grammar);

/*
 * Takes the next token. False when the token is not allowed, or a limit of llguidance was reached; fm_grammar_reason
 * says why.
 */
FM_MUST_USE bool fm_grammar_take(struct fm_grammar *grammar, int32_t token);

/* Goes back to the beginning of the text. False: fm_grammar_reason says why. */
FM_MUST_USE bool fm_grammar_restart(struct fm_grammar *grammar);

/*
 * The token that must come next, as the tokenizer would split the text that must come; FM_TOKEN_NONE when there is a
 * choice. Take it with fm_grammar_take, like other tokens.
 */
int32_t fm_grammar_forced(struct fm_grammar *grammar);

/* True if the text is complete, and nothing can follow. */
bool fm_grammar_complete(const struct fm_grammar *grammar);

/* True if the text may end here. Takes microseconds. */
bool fm_grammar_accepts(struct fm_grammar *grammar);

/* The reason why a call failed, in one line for users; valid until the next call of this function. */
const char *fm_grammar_reason(struct fm_grammar *grammar);

#endif
