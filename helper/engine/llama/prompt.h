/*
 * Messages to tokens: the model's chat template, then its tokenizer. The template's own control tokens are parsed; text
 * inside a message that only looks like one ("<|im_end|>") stays text.
 */
#ifndef FM_ENGINE_LLAMA_PROMPT_H
#define FM_ENGINE_LLAMA_PROMPT_H

#include "base/error.h"
#include "engine/chat/thoughts.h"
#include "engine/llama/bridge.h"
#include "engine/llama/vision.h"

#include <llama.h>
#include <stdbool.h>
#include <stddef.h>

struct fm_control_text {
    const char *text; /* borrowed from the vocabulary */
    size_t len;
    llama_token token;
};

struct fm_prompter {
    const struct llama_vocab *vocab;
    struct fm_templates *templates;
    struct fm_control_text *controls; /* texts that a message must not turn into control tokens */
    size_t control_count;
    bool control_starts[256]; /* the first bytes of `controls` */
    struct fm_control_text *tags; /* user-defined tokens, except white space */
    size_t tag_count;
    llama_token text_end;     /* text_end of fm_thought_form; LLAMA_TOKEN_NULL: none, or not read yet */
    size_t longest_token;     /* no token stands for more bytes than this; 0: not known */
};

/*
 * `model` must outlive the prompter. `source` is a chat template to use instead of the model's; NULL: none. On failure
 * nothing is left to free.
 */
FM_MUST_USE enum fm_code fm_prompter_init(struct fm_prompter *prompter, const struct llama_model *model,
                                          const char *source, struct fm_error *error);
void fm_prompter_free(struct fm_prompter *prompter);

/* Makes a prompter without a template, only for fm_prompter_input_tokens. Allocates nothing. */
void fm_prompter_init_plain(struct fm_prompter *prompter, const struct llama_model *model);

/* The longest text of a control token that `text` (`len` bytes, at least 1) begins with; NULL: none. */
const struct fm_control_text *fm_prompter_control(const struct fm_prompter *prompter, const char *text, size_t len);

/*
 * The longest text of a user-defined token that `text` begins with; NULL: none. The tokenizer turns such a text into
 * its token everywhere; the tags of most families are such tokens.
 */
const struct fm_control_text *fm_prompter_tag(const struct fm_prompter *prompter, const char *text, size_t len);

/* A prompt as the model reads it. */
struct fm_prompt {
    llama_token *tokens; /* owned; FM_VISION_TOKEN at the places of images */
    size_t count;
    struct fm_span *spans; /* owned; the places of images, in order; NULL: none */
    size_t span_count;
};

/* Harmless twice. */
void fm_prompt_free(struct fm_prompt *prompt);

/* The images of a job, by their index. */
struct fm_pictures {
    struct fm_picture **list;
    size_t count;
};

/* The thought of the answer to a prompt. */
struct fm_prompt_thought {
    const struct fm_thought_form *form;
    const struct fm_kit_job *job;
    enum fm_thought_state state; /* out: where the answer begins */
};

/*
 * Renders and tokenizes the messages, and the text that fm_thought_prompt puts after them. `prompt` gets at least 1
 * token and less than `context`; the caller frees it with fm_prompt_free. The images of the messages are in `pictures`.
 * Text that looks like a control token only stays text in contents and thoughts: tools and calls must not contain such
 * text. FM_INVALID_REQUEST when the template refuses the messages or alters what looks like a control token in them, or
 * a line is too long (docs/limits.md, "Requests and replies"). FM_CONTEXT_OVERFLOW when the messages do not fit; if
 * their length shows that, it is noticed before the work is done.
 */
FM_MUST_USE enum fm_code fm_prompter_tokens(const struct fm_prompter *prompter, const struct fm_chat *chat,
                                            const struct fm_pictures *pictures, size_t context,
                                            struct fm_prompt_thought *thought, struct fm_prompt *prompt,
                                            struct fm_error *error);

/*
 * Tokenizes a text to embed: without a template, but with the tokens that the model wants at both ends; control tokens
 * stay text. The caller frees `*tokens` (`*count`, at least 1 and at most `context`) with free(). FM_INVALID_REQUEST
 * when a line is too long, or there is no token; FM_CONTEXT_OVERFLOW when the tokens do not fit.
 */
FM_MUST_USE enum fm_code fm_prompter_input_tokens(const struct fm_prompter *prompter, const char *text, size_t len,
                                                  size_t context, llama_token **tokens, size_t *count,
                                                  struct fm_error *error);

/*
 * Tokenizes a text that the answer continues, unchanged: without a template and control tokens, but with the tokens
 * that the vocabulary wants in front. With `suffix` (NULL: none) the tokens for infill are around the two texts.
 * `*tokens`, `*count` and errors are as in fm_prompter_input_tokens, except that FM_INVALID_REQUEST means: the
 * vocabulary has no such tokens (`suffix` is the param), a line is too long, or the text is empty and there is no token
 * to begin a text with.
 */
FM_MUST_USE enum fm_code fm_prompter_plain_tokens(const struct fm_prompter *prompter, const char *text, size_t len,
                                                  const char *suffix, size_t suffix_len, size_t context,
                                                  llama_token **tokens, size_t *count, struct fm_error *error);

/*
 * Tokenizes plain text as in an answer: no template, nothing added in front, no control tokens. The caller frees
 * `*tokens` (`*count`, may be 0) with free(). FM_INVALID_REQUEST when a line is too long.
 */
FM_MUST_USE enum fm_code fm_prompter_text_tokens(const struct fm_prompter *prompter, const char *text, size_t len,
                                                 llama_token **tokens, size_t *count, struct fm_error *error);

/* Tokenizes a mark. Works as fm_prompter_text_tokens, but with control tokens. */
FM_MUST_USE enum fm_code fm_prompter_mark_tokens(const struct fm_prompter *prompter, const char *mark,
                                                 llama_token **tokens, size_t *count, struct fm_error *error);

#endif
