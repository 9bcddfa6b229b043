/*
 * Text to tokens, as many as a context holds. If the length of a text shows that it is too long, it is refused before
 * the work is done. One thread at a time; blocks as long as the tokenizer takes.
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
 * Whether `token` is a control token, not text. llama.cpp treats five control tokens of gpt-oss and one of Solar as
 * text, so that its server shows them. Here they are control tokens.
 */
bool fm_token_is_control(const struct llama_vocab *vocab, llama_token token);

/* Works as llama_token_to_piece, but a control token (fm_token_is_control) only has a text with `control`. */
int32_t fm_token_piece(const struct llama_vocab *vocab, llama_token token, bool control, char *text, int32_t room);

/* True for control tokens and user-defined ones: the tokenizer turns their text into this one token everywhere. */
bool fm_token_is_special(const struct llama_vocab *vocab, llama_token token);

/* The one token (of any kind) whose text is `text` (NUL-terminated); LLAMA_TOKEN_NULL if it is several. */
llama_token fm_token_of(const struct llama_vocab *vocab, const char *text);

/*
 * Writes to `tokens` at most `room` tokens whose text is the beginning of `text` (`len` bytes): the shortest first, up
 * to a control or user-defined token. Returns how many.
 */
size_t fm_tokens_beginning(const struct llama_vocab *vocab, const char *text, size_t len, llama_token *tokens,
                           size_t room);

/* How the tokenizer should treat a text. */
enum fm_tokens_kind {
    FM_TOKENS_TEXT,   /* plain, inside a prompt */
    FM_TOKENS_MARKS,  /* inside a prompt, with control tokens parsed */
    FM_TOKENS_INPUT,  /* plain, with the tokens that the model wants at both ends */
    FM_TOKENS_PROMPT, /* as FM_TOKENS_INPUT, with control tokens parsed */
};

/* Allocates nothing. fm_tokens_take ends it. */
void fm_tokens_init(struct fm_tokens *tokens, const struct llama_vocab *vocab, size_t longest_token, size_t context);

/* How many tokens `tokens` has so far. */
size_t fm_tokens_count(const struct fm_tokens *tokens);

/* FM_CONTEXT_OVERFLOW if `count` tokens do not fit. `or_more`: there are at least `count` tokens. */
FM_MUST_USE enum fm_code fm_tokens_check(const struct fm_tokens *tokens, size_t count, bool or_more,
                                         struct fm_error *error);

/*
 * Adds the tokens of a text. FM_INVALID_REQUEST when a line is too long (docs/limits.md, "Requests and replies");
 * FM_CONTEXT_OVERFLOW when the length of the text shows that it does not fit; fm_tokens_check finds the other cases.
 */
FM_MUST_USE enum fm_code fm_tokens_add(struct fm_tokens *tokens, const char *text, size_t len, enum fm_tokens_kind kind,
                                       struct fm_error *error);

/* Adds one token; tokens->buf.failed is set when memory runs out. */
void fm_tokens_append(struct fm_tokens *tokens, llama_token token);

/*
 * Returns `code`, and hands the tokens over to the caller, who frees them with free(); if `code` is not FM_OK, there
 * are none.
 */
FM_MUST_USE enum fm_code fm_tokens_take(struct fm_tokens *tokens, enum fm_code code, llama_token **list, size_t *count);

#endif
