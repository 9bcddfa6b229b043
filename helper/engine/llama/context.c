/* How long a model's context should be, and whether the memory can hold it: context.h. */
#include "engine/llama/context.h"
#include "base/platform.h"
#include "engine/llama/gguf_file.h"

#include <ggml-backend.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONTEXT_LENGTH_MAX 8192 /* the longest default context: memory grows with the length */

/*
 * The longest default context if a text is computed in one piece: memory grows with the square of the length, and an
 * abort has to wait longer.
 */
#define CONTEXT_WHOLE_MAX 2048

#define SEQUENCES_KEPT 8 /* conversations that stay in the KV memory, besides those of jobs */

/*
 * Conversations in the KV memory, with those of jobs, if a sliding window takes memory for each sequence, used or not.
 */
#define SEQUENCES_WINDOWED 12

/*
 * By default the KV memory has room for a whole context of each slot, but for at most one context and this many bytes
 * besides, which the slots and kept conversations share. A sequence that finds no room waits until another one ends.
 */
#define SHARED_BYTES (64 * MIB)

/*
 * Tokens. llama.cpp rounds the memory up to a multiple of this number, but its batches are at most as long as the
 * requested context.
 */
#define MEMORY_STEP 256

/*
 * How many times the weights a default context may take; up to a GiB is always allowed. Real models stay below 3 times,
 * even with weights of few bits.
 */
#define CONTEXT_PER_WEIGHTS 16
#define CONTEXT_SMALL       (1024.0 * MIB)
#define MIB                 (1024.0 * 1024.0)

/* "ARCHITECTURE.name", where the file's metadata has it. */
static void meta_key(const struct llama_model *weights, const char *name, char *key, size_t size) {
    char architecture[64];
    if (llama_model_meta_val_str(weights, "general.architecture", architecture, sizeof architecture) < 0) {
        architecture[0] = '\0';
    }
    snprintf(key, size, "%s.%s", architecture, name);
}

/* A number of the file's metadata; `otherwise` when there is none, or an array. */
static int64_t meta_number(const struct llama_model *weights, const char *name, int64_t otherwise) {
    char key[128];
    char value[32];
    meta_key(weights, name, key, sizeof key);
    return llama_model_meta_val_str(weights, key, value, sizeof value) > 0 ? strtoll(value, NULL, 10) : otherwise;
}

enum llama_pooling_type fm_context_pooling(const struct llama_model *weights) {
    return (enum llama_pooling_type)meta_number(weights, "pooling_type", LLAMA_POOLING_TYPE_NONE);
}

static bool is_causal(const struct llama_model *weights) {
    char key[128];
    char value[8];
    meta_key(weights, "attention.causal", key, sizeof key);
    return llama_model_meta_val_str(weights, key, value, sizeof value) < 0 || strcmp(value, "false") != 0;
}

bool fm_context_needs_whole_text(const struct fm_llama_model *model) {
    return model->embeds &&
           (fm_context_pooling(model->weights) != LLAMA_POOLING_TYPE_LAST || !is_causal(model->weights));
}

uint32_t fm_context_length(const struct fm_llama_model *model, const struct fm_llama_model_options *options) {
    int64_t trained = llama_model_n_ctx_train(model->weights);
    int64_t limit = fm_context_needs_whole_text(model) ? CONTEXT_WHOLE_MAX : CONTEXT_LENGTH_MAX;
    bool asked = options->context_length > 0;
    limit = asked ? options->context_length : limit;
    /* the model may have no further positions */
    bool capped = trained > 0 && trained < limit && (!asked || model->embeds);
    return (uint32_t)(capped ? trained : limit);
}

/* Heads with keys and values, of all layers together. llama.h only reports those of the first layer. */
static double all_kv_heads(const struct llama_model *weights, const char *path) {
    static const char name[] = "attention.head_count_kv";
    char key[128];
    meta_key(weights, name, key, sizeof key);
    int64_t sum = meta_number(weights, name, -1) < 0 ? fm_gguf_sum(path, key) : 0;
    int64_t interval = fm_context_has_states(weights) ? meta_number(weights, "full_attention_interval", 1) : 1;
    double layers = llama_model_n_layer(weights) / (interval > 0 ? interval : 1);
    return sum > 0 ? (double)sum : llama_model_n_head_kv(weights) * layers;
}

/*
 * Bytes of the KV memory for one token in all layers, with 2 bytes for each number. A double, because the numbers in a
 * file may be too large for int64_t.
 */
static double token_bytes(const struct llama_model *weights, const char *path) {
    int64_t heads = llama_model_n_head(weights);
    int64_t width = llama_model_n_embd(weights) / (heads > 0 ? heads : 1);
    int64_t key = meta_number(weights, "attention.key_length", width);
    int64_t value = meta_number(weights, "attention.value_length", width);
    return 2 * ((double)key + (double)value) * all_kv_heads(weights, path);
}

bool fm_context_has_states(const struct llama_model *weights) {
    return llama_model_is_recurrent(weights) || llama_model_is_hybrid(weights);
}

bool fm_context_keeps_all_tokens(const struct llama_model *weights) {
    return llama_model_n_swa(weights) <= 0 && !fm_context_has_states(weights);
}

uint32_t fm_context_slots(const struct fm_llama_model *model, const struct fm_llama_model_options *options) {
    uint32_t slots = fm_context_has_states(model->weights) ? FM_CONTEXT_SLOTS / 2 : FM_CONTEXT_SLOTS;
    slots = options->repeatable || model->embeds ? 1 : slots;
    return options->slots > 0 && !model->embeds ? (uint32_t)options->slots : slots;
}

/* The number of sequences that the KV memory needs for jobs and kept conversations, without the spare sequence. */
static uint32_t sequences(const struct fm_llama_model *model, uint32_t slots) {
    bool windowed = llama_model_n_swa(model->weights) > 0;
    uint32_t all = windowed ? SEQUENCES_WINDOWED : slots + SEQUENCES_KEPT;
    return fm_context_has_states(model->weights) || all < slots ? slots : all;
}

/* Bytes of all devices, including the CPU, for which the limit of this process's cgroup counts. */
static int64_t total_memory(void) {
    int64_t limit = fm_memory_limit();
    int64_t sum = 0;
    for (size_t i = 0; i < ggml_backend_dev_count(); i++) {
        ggml_backend_dev_t device = ggml_backend_dev_get(i);
        size_t available;
        size_t bytes = 0;
        ggml_backend_dev_memory(device, &available, &bytes);
        int64_t total = (int64_t)bytes;
        bool limited = ggml_backend_dev_type(device) == GGML_BACKEND_DEVICE_TYPE_CPU && limit > 0 && limit < total;
        sum += limited ? limit : total;
    }
    return sum;
}

double fm_context_usable_memory(void) {
    return (double)total_memory() / 4 * 3;
}

/* Tokens for which the KV memory should have room. */
static uint32_t memory_length(const struct fm_llama_model *model, const struct fm_llama_model_options *options,
                              const char *path) {
    uint32_t context = fm_context_length(model, options);
    if (model->embeds) {
        return context;
    }
    double bytes = token_bytes(model->weights, path);
    double others = (double)context * (double)(fm_context_slots(model, options) - 1);
    double left = fm_context_usable_memory() - bytes * context;
    left = left < SHARED_BYTES ? left : SHARED_BYTES;
    left = left > 0 && bytes > 0 ? left / bytes : 0;
    left = left < others ? left : others;
    uint32_t length = context + (uint32_t)(left < (double)FM_MODEL_CONTEXT_MAX ? left : FM_MODEL_CONTEXT_MAX);
    length = options->kv_tokens > 0 ? (uint32_t)options->kv_tokens : length;
    return length < MEMORY_STEP ? MEMORY_STEP : length; /* so that a batch can have a token of each slot */
}

int64_t fm_context_memory(const struct fm_llama_model *model, const struct fm_llama_model_options *options,
                          const char *path) {
    return (int64_t)(token_bytes(model->weights, path) * memory_length(model, options, path));
}

/* The most tokens that fit in `usable` bytes, in the steps of the memory. */
static uint32_t tokens_in(double usable, double bytes) {
    double tokens = usable / bytes;
    uint32_t most = tokens < (double)FM_MODEL_CONTEXT_MAX ? (uint32_t)tokens : FM_MODEL_CONTEXT_MAX;
    return most - most % MEMORY_STEP;
}

/* The setting that decides the length of the memory, or else the file. */
static const char *decides(const struct fm_llama_model_options *options, const char *path) {
    return options->kv_tokens > 0        ? "FM_ENGINE_LLAMA_KV_TOKENS"
           : options->context_length > 0 ? FM_CONTEXT_SETTING
                                         : path;
}

/*
 * A context that does not fit is refused before llama.cpp writes to all of its memory: that would take a minute, and
 * then the kernel would kill some process. A default context that is far too large for such a model is refused too: a
 * file of 2 MiB can claim heads that take gigabytes.
 */
enum fm_code fm_context_check(const struct fm_llama_model *model, const struct fm_llama_model_options *options,
                              const char *path, struct fm_error *error) {
    uint32_t context = fm_context_length(model, options);
    uint32_t length = memory_length(model, options, path);
    double bytes = token_bytes(model->weights, path);
    double usable = fm_context_usable_memory();
    double weights = (double)llama_model_size(model->weights);
    const char *what = decides(options, path);
    if (!model->embeds && options->kv_tokens > 0 && options->kv_tokens < context) {
        return fm_fail(
            error, FM_UNAVAILABLE,
            "FM_ENGINE_LLAMA_KV_TOKENS is %lld, less than one context of %u tokens: set it to that at least, or "
            FM_CONTEXT_SETTING " to less: %s",
            (long long)options->kv_tokens, context, path);
    }
    if (bytes * length > usable && usable > 0 && fm_context_keeps_all_tokens(model->weights)) {
        return fm_fail(error, FM_UNAVAILABLE,
                       "%s: %u tokens of this model's context need %.0f MiB, above the %.0f MiB that are three "
                       "quarters of the memory; %s%u would fit%s%s",
                       what, length, bytes * length / MIB, usable / MIB, what != path ? "" : FM_CONTEXT_SETTING " ",
                       tokens_in(usable, bytes), what != path ? ": " : "", what != path ? path : "");
    }
    double needed = bytes * context;
    if (options->context_length == 0 && needed > CONTEXT_SMALL && needed > CONTEXT_PER_WEIGHTS * weights) {
        return fm_fail(error, FM_UNAVAILABLE,
                       "%s: %u tokens of this model's context need %.0f MiB, out of proportion to its weights of %.0f "
                       "MiB; " FM_CONTEXT_SETTING " sets a shorter one",
                       path, context, needed / MIB, weights / MIB);
    }
    return FM_OK;
}

struct llama_context_params fm_context_params(const struct fm_llama_model *model,
                                              const struct fm_llama_model_options *options, const char *path) {
    struct llama_context_params params = llama_context_default_params();
    params.n_ctx = memory_length(model, options, path);
    params.n_batch = FM_MODEL_BATCH;
    params.n_seq_max = sequences(model, fm_context_slots(model, options)) + 1; /* model->spare */
    params.kv_unified = true;
    if (model->embeds) {
        params.n_batch = fm_context_needs_whole_text(model) ? params.n_ctx : FM_MODEL_CHUNK;
        params.n_seq_max = 1;
    }
    params.n_ubatch = params.n_batch;
    params.embeddings = model->embeds;
    params.n_threads = model->thread_count;
    params.n_threads_batch = model->thread_count;
    params.no_perf = true;
    return params;
}

uint32_t fm_context_first(const struct fm_llama_model *model) {
    uint32_t whole = model->context_params.n_ctx;
    bool grows = !model->embeds && fm_context_keeps_all_tokens(model->weights) && !model->uses_gpu && !model->vision &&
                 meta_number(model->weights, "rope.scaling.original_context_length", 0) == 0;
    return grows && whole >= 2 * FM_CONTEXT_FIRST ? FM_CONTEXT_FIRST : whole;
}
