/*
 * The only access to llama.cpp's C++: chat templates, and functions of its C API that throw. Plain C; no exception
 * escapes. All other parts of llama.cpp are used through the C APIs of llama.h, ggml and mtmd.h.
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

struct llama_batch;
struct llama_context;
struct llama_context_params;
struct llama_model;
struct llama_model_params;
struct llama_vocab;

/* A model's chat template, parsed. */
struct fm_templates;

/*
 * Reads the chat template out of `model`, which must outlive the result. If the template is missing or broken, ChatML
 * replaces it, as in llama.cpp, and `*replaced` is set. If `source` is not NULL, it is used instead of the model's
 * template; FM_UNAVAILABLE if `source` is broken. Free with fm_templates_free, which accepts NULL.
 */
FM_MUST_USE enum fm_code fm_templates_load(const struct llama_model *model, const char *source,
                                           struct fm_templates **templates, bool *replaced, struct fm_error *error);
void fm_templates_free(struct fm_templates *templates);

/*
 * Renders `chat`. The caller frees `*prompt` (`*len` bytes, with a NUL after them) with free(). If the template refuses
 * these messages (for example because roles do not alternate), it fails with FM_INVALID_REQUEST.
 */
FM_MUST_USE enum fm_code fm_templates_apply(const struct fm_templates *templates, const struct fm_chat *chat,
                                            char **prompt, size_t *len, struct fm_error *error);

/*
 * llama_tokenize: writes at most `room` tokens to `tokens`, and their number to `*count`. It recurses once for each
 * character of an unbroken run. FM_INTERNAL when it fails.
 */
FM_MUST_USE enum fm_code fm_tokenize(const struct llama_vocab *vocab, const char *text, size_t len, bool first,
                                     bool parse_control, int32_t *tokens, size_t room, size_t *count,
                                     struct fm_error *error);

/*
 * Sets in `params`, which otherwise have the defaults, how much of the model in `path` the GPUs take. It must fit
 * beside a context of `context`, with some room left. The memory that `params` points to then lives as long as the
 * process, so call it once. FM_UNAVAILABLE when nothing fits, or when the model can't be loaded.
 */
FM_MUST_USE enum fm_code fm_fit_layers(const char *path, const struct llama_context_params *context,
                                       struct llama_model_params *params, struct fm_error *error);

#define FM_COMPUTE_THREW (-1000) /* not a value of llama.cpp's own */

/*
 * Calls llama_encode with `encode`, else llama_decode, waits for the end, and returns their result. A driver's
 * exception, such as a lost device, becomes FM_COMPUTE_THREW, with its text in `error`. Blocks.
 */
int32_t fm_compute(struct llama_context *context, const struct llama_batch *batch, bool encode, struct fm_error *error);

/*
 * The number of cores of this machine that are worth a thread for arithmetic, at least 1. Hyper-threads of a core count
 * once, slow cores do not count. fm_processors says how many processors this process may use.
 */
int fm_math_cores(void);

#endif
