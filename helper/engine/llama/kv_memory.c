/* Under kv_memory.h. */
#include "engine/llama/kv_memory.h"
#include "base/clock.h"
#include "base/log.h"

#include <stdlib.h>

/* All cells, with whose they are. False: there is no memory for the copy, or `to` does not take it. */
static bool copy_cells(struct llama_context *from, struct llama_context *to) {
    size_t bytes = llama_state_get_size(from);
    unsigned char *state = malloc(bytes);
    bool copied =
        state && llama_state_get_data(from, state, bytes) == bytes && llama_state_set_data(to, state, bytes) == bytes;
    free(state);
    return copied;
}

bool fm_kv_grow(struct fm_llama_model *model) {
    int64_t start_us = fm_now_us();
    if (llama_n_ctx(model->context) >= model->context_params.n_ctx) {
        return false;
    }
    struct llama_context *whole = llama_init_from_model(model->weights, model->context_params);
    if (!whole || !copy_cells(model->context, whole)) {
        fm_log(FM_LOG_WARN, "no memory for %u tokens of context: %u stay", model->context_params.n_ctx,
               llama_n_ctx(model->context));
        llama_free(whole);
        return false;
    }
    llama_free(model->context);
    model->context = whole;
    fm_threads_move(&model->threads, whole);
    fm_llama_model_watch(model, model->stop, model->stop_argument);
    fm_log(FM_LOG_DEBUG, "the KV memory has room for %u tokens now, after %lld us", llama_n_ctx(whole),
           (long long)(fm_now_us() - start_us));
    return true;
}
