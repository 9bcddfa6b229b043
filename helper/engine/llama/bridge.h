/*
 * The one door to llama.cpp's C++: chat templates, and what throws in spite of its C API. Plain C; no exception
 * escapes. Everything else of llama.cpp is used through that API, llama.h.
 *
 * No call here is thread-safe on the same fm_templates; all run on the caller's thread, and none logs.
 */
#ifndef FM_ENGINE_LLAMA_BRIDGE_H
#define FM_ENGINE_LLAMA_BRIDGE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct llama_model;
struct llama_vocab;

/* A model's chat template, parsed. */
struct fm_templates;

struct fm_chat_call { /* all borrowed, as below */
    const char *id;
    const char *name;
    const char *arguments; /* JSON text of an object */
    size_t arguments_len;
};

/* An image in a message. Templates don't see it: whoever renders puts a mark in its place. */
struct fm_chat_image {
    size_t at;    /* bytes of the content before it */
    size_t index; /* which of the job's it is */
};

struct fm_chat_message {
    const char *role;
    const char *content;
    size_t content_len;
    const struct fm_chat_image *images; /* of the user, in their order */
    size_t image_count;
    const char *reasoning; /* of the assistant; NULL: none. Templates that show none leave it out without a word */
    size_t reasoning_len;
    const struct fm_chat_call *calls; /* of the assistant */
    size_t call_count;
    const char *answered_id; /* of a tool: the call that it answers; else NULL, as the next */
    const char *answered_name;
};

struct fm_chat_tool {
    const char *name;
    const char *description; /* NULL: none */
    const char *parameters;  /* JSON text of a schema */
    size_t parameters_len;
};

/* What a template is told of thinking, by the names that templates have for it. */
enum fm_chat_thinking {
    FM_CHAT_THINKING_DEFAULT,
    FM_CHAT_THINKING_ON,
    FM_CHAT_THINKING_OFF,
};

/* What a template renders. Calls and tools are for templates that know them: others leave them out without a word. */
struct fm_chat {
    const struct fm_chat_message *messages;
    size_t count;
    const struct fm_chat_tool *tools;
    size_t tool_count;
    enum fm_chat_thinking thinking;
    const char *effort; /* how much to think: "low", say; NULL: nothing is said of it */
    bool closed;        /* without the start of the assistant's turn */
};

/*
 * Reads the chat template out of `model`, which must outlive the result. One that is missing or broken is replaced by
 * ChatML, as llama.cpp does, and `*replaced` tells. `source` is used in its place, where it is not NULL: broken, it is
 * FM_UNAVAILABLE. Free with fm_templates_free, NULL included.
 */
FM_MUST_USE enum fm_code fm_templates_load(const struct llama_model *model, const char *source,
                                           struct fm_templates **templates, bool *replaced, struct fm_error *error);
void fm_templates_free(struct fm_templates *templates);

/*
 * Renders `chat`. `*prompt` (`*len` bytes, with a NUL behind them) is the caller's to free(). A template that refuses
 * these messages (roles that do not alternate, say) is FM_INVALID_REQUEST.
 */
FM_MUST_USE enum fm_code fm_templates_apply(const struct fm_templates *templates, const struct fm_chat *chat,
                                            char **prompt, size_t *len, struct fm_error *error);

/*
 * llama_tokenize: at most `room` tokens to `tokens`, `*count` of them. It recurses once for each character of an
 * unbroken run. FM_INTERNAL when it fails.
 */
FM_MUST_USE enum fm_code fm_tokenize(const struct llama_vocab *vocab, const char *text, size_t len, bool first,
                                     bool parse_control, int32_t *tokens, size_t room, size_t *count,
                                     struct fm_error *error);

/*
 * Cores of this machine that are worth a thread for arithmetic, at least 1: hyper-threads counted once, slow cores not at
 * all. Which of them this process may use is another matter: fm_processors.
 */
int fm_math_cores(void);

#endif
