/* How long a model's context is to be, and whether the memory holds it. Nothing here blocks. */
#ifndef FM_ENGINE_LLAMA_CONTEXT_H
#define FM_ENGINE_LLAMA_CONTEXT_H

#include "engine/llama/model.h"

/* The variable that sets the context's length, and how an error names it: with the option of createClient. */
#define FM_CONTEXT_VARIABLE "FM_ENGINE_LLAMA_CTX"
#define FM_CONTEXT_SETTING  FM_CONTEXT_VARIABLE " (contextLength)"

/* Tokens; more than a batch, so that batches are those of a whole memory. */
#define FM_CONTEXT_FIRST 1024

#define FM_CONTEXT_SLOTS 8 /* jobs at once, by default */

/* How the states of a text's tokens become its vector; LLAMA_POOLING_TYPE_NONE where the file says nothing of it. */
enum llama_pooling_type fm_context_pooling(const struct llama_model *weights);

/* A text can't be computed in pieces: tokens look at later ones, or the vector is made of all states at once. */
bool fm_context_needs_whole_text(const struct fm_llama_model *model);

/*
 * The memory holds each token of a sequence by itself, so that any part can be cut off or shared. False for models with
 * a sliding window or with recurrent layers, which may also need less memory.
 */
bool fm_context_keeps_all_tokens(const struct llama_model *weights);

/* Some layers keep one state of all tokens before, in place of the tokens: it is a recurrent model, or a hybrid. */
bool fm_context_has_states(const struct llama_model *weights);

/* Tokens of one prompt and its answer: what is asked for, or the default. */
uint32_t fm_context_length(const struct fm_llama_model *model, const struct fm_llama_model_options *options);

/*
 * Jobs at once: what is asked for, or the default, which is half as many with recurrent layers: each job's state takes
 * its memory, used or not. One, where the model embeds or all are repeatable. Needs model->weights and ->embeds.
 */
uint32_t fm_context_slots(const struct fm_llama_model *model, const struct fm_llama_model_options *options);

/* Bytes of the KV memory. Needs model->weights and ->embeds. */
int64_t fm_context_memory(const struct fm_llama_model *model, const struct fm_llama_model_options *options,
                          const char *path);

/* Bytes that the KV memories of all models may take together: three quarters of all devices' memory; 0: not known. */
double fm_context_usable_memory(void);

/* What llama.cpp is to make. `path` is the model's file. Needs model->weights, ->embeds and ->thread_count. */
struct llama_context_params fm_context_params(const struct fm_llama_model *model,
                                              const struct fm_llama_model_options *options, const char *path);

/*
 * Of model->context_params, how many tokens the KV memory has room for in the beginning: FM_CONTEXT_FIRST, until more
 * are needed (kv_memory.h). All on a GPU, whose layers were counted so; and where llama.cpp chooses other numbers for a
 * longer memory (LongRoPE).
 */
uint32_t fm_context_first(const struct fm_llama_model *model);

/* FM_UNAVAILABLE where the settings contradict each other, or the memory is too small for them: names the setting. */
FM_MUST_USE enum fm_code fm_context_check(const struct fm_llama_model *model,
                                          const struct fm_llama_model_options *options, const char *path,
                                          struct fm_error *error);

#endif
