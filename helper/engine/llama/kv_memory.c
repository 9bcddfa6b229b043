/* Growing the KV memory: kv_memory.h. */
#include "engine/llama/kv_memory.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/llama/matmul.h"

#include <stdlib.h>

#define STEP 4 /* two steps from FM_CONTEXT_FIRST to the default of most models */

/* Copies all cells and their owners. False: there is no memory for the copy, or `to` does not accept it. */
static bool copy_cells(struct llama_context *from, struct llama_context *to) {
    size_t bytes = llama_state_get_size(from);
    unsigned char *state = malloc(bytes);
    bool copied =
        state && llama_state_get_data(from, state, bytes) == bytes && llama_state_set_data(to, state, bytes) == bytes;
    free(state);
    return copied;
}

/* The next size: STEP times the present one, or what is needed, but at most the full size. */
static uint32_t next_size(const struct fm_llama_model *model, size_t needed) {
    uint32_t whole = model->context_params.n_ctx;
    size_t size = (size_t)llama_n_ctx(model->context) * STEP;
    size = size > needed ? size : needed;
    return size < whole ? (uint32_t)size : whole;
}

bool fm_kv_grow(struct fm_llama_model *model, size_t needed) {
    int64_t start_us = fm_now_us();
    struct llama_context_params params = model->context_params;
    params.n_ctx = next_size(model, needed);
    if (llama_n_ctx(model->context) >= params.n_ctx) {
        return false;
    }
    struct llama_context *larger = fm_matmul_context(model->weights, params);
    if (!larger || !copy_cells(model->context, larger)) {
        fm_log(FM_LOG_WARN, "no memory for %u tokens of context: %u stay", params.n_ctx, llama_n_ctx(model->context));
        llama_free(larger);
        return false;
    }
    llama_free(model->context);
    model->context = larger;
    fm_threads_move(&model->threads, larger);
    fm_llama_model_watch(model, model->stop, model->stop_argument);
    fm_log(FM_LOG_DEBUG, "the KV memory has room for %u tokens now, after %lld us", llama_n_ctx(larger),
           (long long)(fm_now_us() - start_us));
    return true;
}
