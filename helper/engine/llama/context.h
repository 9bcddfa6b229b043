/* How long a model's context should be, and whether the memory can hold it. Nothing here blocks. */
#ifndef FM_ENGINE_LLAMA_CONTEXT_H
#define FM_ENGINE_LLAMA_CONTEXT_H

#include "engine/llama/model.h"

/* The variable that sets the context's length, and its name in errors, with the option of createClient. */
#define FM_CONTEXT_VARIABLE "FM_ENGINE_LLAMA_CTX"
#define FM_CONTEXT_SETTING  FM_CONTEXT_VARIABLE " (contextLength)"

/* Tokens; more than a batch, so that batches are the same as with the full memory. */
#define FM_CONTEXT_FIRST 1024

#define FM_CONTEXT_SLOTS 8 /* jobs at once, by default */

/*
 * The way in which the states of a text's tokens become its vector; LLAMA_POOLING_TYPE_NONE if the file does not say.
 */
enum llama_pooling_type fm_context_pooling(const struct llama_model *weights);

/* Whether a text can't be computed in pieces: tokens attend to later ones, or all states are pooled together. */
bool fm_context_needs_whole_text(const struct fm_llama_model *model);

/*
 * Whether the memory holds each token of a sequence separately, so that any part can be cut off or shared. False for
 * models with a sliding window or with recurrent layers, which may also need less memory.
 */
bool fm_context_keeps_all_tokens(const struct llama_model *weights);

/* Whether some layers keep one state for all tokens so far instead of the tokens: in a recurrent model, or a hybrid. */
bool fm_context_has_states(const struct llama_model *weights);

/* The most tokens of one prompt with its answer: the setting, or the default. */
uint32_t fm_context_length(const struct fm_llama_model *model, const struct fm_llama_model_options *options);

/*
 * Jobs at once: the setting, or the default. With recurrent layers the default is half as many, because each job's
 * state takes memory, used or not. It is one if the model embeds or all jobs are repeatable. Needs model->weights and
 * ->embeds.
 */
uint32_t fm_context_slots(const struct fm_llama_model *model, const struct fm_llama_model_options *options);

/* Bytes of the KV memory. Needs model->weights and ->embeds. */
int64_t fm_context_memory(const struct fm_llama_model *model, const struct fm_llama_model_options *options,
                          const char *path);

/* Bytes that the KV memories of all models may take together: three quarters of all devices' memory; 0: not known. */
double fm_context_usable_memory(void);

/*
 * The parameters of llama.cpp's context. `path` is the model's file. Needs model->weights, ->embeds and ->thread_count.
 */
struct llama_context_params fm_context_params(const struct fm_llama_model *model,
                                              const struct fm_llama_model_options *options, const char *path);

/*
 * The number of tokens for which the KV memory has room at first: FM_CONTEXT_FIRST, until more are needed
 * (kv_memory.h). It is the full size, as in model->context_params, on a GPU, because the number of layers on the GPU
 * was chosen for it, and if llama.cpp computes differently with a longer memory (LongRoPE).
 */
uint32_t fm_context_first(const struct fm_llama_model *model);

/*
 * FM_UNAVAILABLE if the settings contradict each other, or the memory is too small for them: the error names the
 * setting.
 */
FM_MUST_USE enum fm_code fm_context_check(const struct fm_llama_model *model,
                                          const struct fm_llama_model_options *options, const char *path,
                                          struct fm_error *error);

#endif
