/*
 * Text to tokens, as many as a context holds: what is too long is refused before the work is done, where its length
 * shows it. One thread at a time; blocks as long as the tokenizer takes.
 */
#ifndef FM_ENGINE_LLAMA_TOKENS_H
#define FM_ENGINE_LLAMA_TOKENS_H

#include "base/buf.h"
#include "base/error.h"

#include <llama.h>
#include <stdbool.h>
#include <stddef.h>

struct fm_tokens {
    const struct llama_vocab *vocab; /* borrowed */
    size_t longest_token;            /* bytes; 0: not known */
    size_t context;                  /* tokens */
    bool embeds;                     /* no room for output is needed */
    struct fm_buf buf;               /* of llama_token */
};

/*
 * True where `token` is no text. llama.cpp has five of gpt-oss's control tokens, and one of Solar's, as text, so that its
 * server shows them: here they are not text.
 */
bool fm_token_is_control(const struct llama_vocab *vocab, llama_token token);

/* llama_token_to_piece, where a control token as above has a text with `control` alone. */
int32_t fm_token_piece(const struct llama_vocab *vocab, llama_token token, bool control, char *text, int32_t room);

/* True for control tokens and user-defined ones: the tokenizer makes its text this one token, wherever that is. */
bool fm_token_is_special(const struct llama_vocab *vocab, llama_token token);

/* The one token that `text` (NUL-terminated) is, of any kind; LLAMA_TOKEN_NULL where it is several. */
llama_token fm_token_of(const struct llama_vocab *vocab, const char *text);

/*
 * The tokens whose text `text` (`len` bytes) begins with, but at most `room` of them, into `tokens`: the shortest first,
 * up to a control token or one that stands for itself. Returns how many.
 */
size_t fm_tokens_beginning(const struct llama_vocab *vocab, const char *text, size_t len, llama_token *tokens,
                           size_t room);

/* What a text is to the tokenizer. */
enum fm_tokens_kind {
    FM_TOKENS_TEXT,   /* plain, somewhere in a prompt */
    FM_TOKENS_MARKS,  /* the same, in which control tokens are parsed */
    FM_TOKENS_INPUT,  /* plain, with what the model wants added at the ends */
    FM_TOKENS_PROMPT, /* the same, in which control tokens are parsed */
};

/* Allocates nothing. fm_tokens_take ends it. */
void fm_tokens_init(struct fm_tokens *tokens, const struct llama_vocab *vocab, size_t longest_token, size_t context);

/* How many there are so far. */
size_t fm_tokens_count(const struct fm_tokens *tokens);

/* FM_CONTEXT_OVERFLOW where `count` tokens (`or_more`: at least) do not fit. */
FM_MUST_USE enum fm_code fm_tokens_check(const struct fm_tokens *tokens, size_t count, bool or_more,
                                         struct fm_error *error);

/*
 * Adds the tokens of a text. FM_INVALID_REQUEST when a line is too long (docs/limits.md, "Requests and replies");
 * FM_CONTEXT_OVERFLOW when its length shows that it does not fit; else see fm_tokens_check.
 */
FM_MUST_USE enum fm_code fm_tokens_add(struct fm_tokens *tokens, const char *text, size_t len, enum fm_tokens_kind kind,
                                       struct fm_error *error);

/* Adds one token; tokens->buf.failed tells that there is no memory. */
void fm_tokens_append(struct fm_tokens *tokens, llama_token token);

/* Returns `code`, and hands the tokens over, which are the caller's to free(); none where it is not FM_OK. */
FM_MUST_USE enum fm_code fm_tokens_take(struct fm_tokens *tokens, enum fm_code code, llama_token **list, size_t *count);

#endif
