/*
 * The one door to llama.cpp's C++: chat templates, and what throws in spite of its C API. Plain C; no exception
 * escapes. Everything else of llama.cpp is used through the C APIs of llama.h, ggml and mtmd.h.
 *
 * No call here is thread-safe on the same fm_templates; all run on the caller's thread, and none logs.
 */
#ifndef FM_ENGINE_LLAMA_BRIDGE_H
#define FM_ENGINE_LLAMA_BRIDGE_H

#include "base/error.h"
#include "engine/chat/chat.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct llama_model;
struct llama_vocab;

/* A model's chat template, parsed. */
struct fm_templates;

/*
 * Reads the chat template out of `model`, which must outlive the result. One that is missing or broken is replaced by
 * ChatML, as llama.cpp does, and `*replaced` tells. `source` is used in its place, where it is not NULL: broken, it is
 * FM_UNAVAILABLE. Free with fm_templates_free, NULL included.
 */
FM_MUST_USE enum fm_code fm_templates_load(const struct llama_model *model, const char *source,
                                           struct fm_templates **templates, bool *replaced, struct fm_error *error);
void fm_templates_free(struct fm_templates *templates);

/*
 * Renders `chat`. `*prompt` (`*len` bytes, with a NUL after them) is the caller's to free(). A template that refuses
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
