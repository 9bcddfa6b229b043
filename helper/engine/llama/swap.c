/* Moves conversations between the KV memory and ordinary memory: swap.h. */
#include "engine/llama/swap.h"
#include "base/clock.h"
#include "base/log.h"

#include <stdlib.h>

void fm_swap_drop(struct fm_cached *cached) {
    if (cached->state) {
        cached->cache->swapped -= cached->state_bytes;
        free(cached->state);
        cached->state = NULL;
        cached->count = 0;
        cached->exact = 0;
    }
}

/* The conversation outside with the least worth; NULL: none is worth less than `cached`. */
static struct fm_cached *find_worse(const struct fm_cached *cached) {
    int64_t now = fm_now_ms();
    struct fm_cached *worst = NULL;
    double least = fm_cached_worth(cached, now);
    for (size_t i = 0; i < cached->cache->count; i++) {
        struct fm_cached *other = &cached->cache->list[i];
        double worth = fm_cached_worth(other, now);
        if (other->state && worth < least) {
            worst = other;
            least = worth;
        }
    }
    return worst;
}

static bool make_room(struct fm_cached *cached, size_t bytes) {
    while (cached->cache->swapped + bytes > FM_SWAP_MAX) {
        struct fm_cached *worse = bytes <= FM_SWAP_MAX ? find_worse(cached) : NULL;
        if (!worse) {
            return false;
        }
        fm_swap_drop(worse);
    }
    return true;
}

bool fm_swap_out(struct fm_cached *cached) {
    const struct fm_llama_model *model = cached->cache->model;
    int64_t start_us = fm_now_us();
    if (cached->cache->states || cached->cache->window > 0 || cached->span_count > 0 || cached->state || cached->count == 0) {
        return false;
    }
    size_t bytes = llama_state_seq_get_size(model->context, cached->id);
    unsigned char *state = make_room(cached, bytes) ? malloc(bytes) : NULL;
    if (!state || llama_state_seq_get_data(model->context, state, bytes, cached->id) != bytes) {
        free(state);
        return false;
    }
    llama_memory_seq_rm(llama_get_memory(model->context), cached->id, -1, -1);
    cached->exact = 0; /* in other cells, the entries of the sequence are added up in another order */
    cached->shared = 0;
    cached->state = state;
    cached->state_bytes = bytes;
    cached->cache->swapped += bytes;
    fm_log(FM_LOG_DEBUG, "%zu tokens moved out of the KV memory in %lld us", cached->count,
           (long long)(fm_now_us() - start_us));
    return true;
}

bool fm_swap_in(struct fm_cached *to, struct fm_cached *from, size_t count) {
    const struct fm_llama_model *model = to->cache->model;
    llama_memory_t memory = llama_get_memory(model->context);
    int64_t start_us = fm_now_us();
    bool fits =
        llama_state_seq_set_data(model->context, from->state, from->state_bytes, model->spare) == from->state_bytes;
    if (fits) {
        llama_memory_seq_cp(memory, model->spare, to->id, 0, (llama_pos)count);
    }
    llama_memory_seq_rm(memory, model->spare, -1, -1);
    if (fits && to == from) {
        free(from->state);
        from->state = NULL;
        from->cache->swapped -= from->state_bytes;
    }
    fm_log(FM_LOG_DEBUG, "%zu tokens %s the KV memory in %lld us", count, fits ? "came back to" : "have no room in",
           (long long)(fm_now_us() - start_us));
    return fits;
}
