/* ggml's threads, under threads.h. */
#include "engine/llama/threads.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/platform.h"
#include "engine/llama/bridge.h"
#include "engine/llama/matmul.h"

#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <string.h>

/*
 * How long ggml's threads spin for the next graph before they sleep, in units of 131,072 pause instructions: longer
 * than what happens between two tokens (sampling, a frame), and the CPU is idle less than 0.1 s after a job. Threads
 * that sleep at once cost a small model a fifth of its speed.
 */
#define THREAD_POLL 10

int fm_threads_default(void) {
    struct fm_processors usable;
    fm_processors(&usable);
    int threads = fm_math_cores();
    threads = usable.cores < threads ? usable.cores : threads;
    return threads < GGML_MAX_N_THREADS ? threads : GGML_MAX_N_THREADS;
}

/* A function of the CPU backend's library, which is not linked. */
static void *cpu_function(const char *name) {
    ggml_backend_dev_t device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    return device ? ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(device), name) : NULL;
}

void fm_threads_share(const struct fm_threads *threads, struct llama_context *context) {
    if (threads->pool) {
        llama_attach_threadpool(context, threads->pool, threads->pool);
    }
}

/* Threads that outlive a batch: started for each, they cost a small model a tenth of its speed. */
void fm_threads_start(struct fm_threads *threads, struct llama_context *context, int most) {
    struct ggml_threadpool *(*new_pool)(struct ggml_threadpool_params *);
    void *function = cpu_function("ggml_threadpool_new");
    *threads = (struct fm_threads){.context = context};
    fm_thread_count_init(&threads->count, most);
    if (!function || most < 2) {
        return;
    }
    memcpy(&new_pool, &function, sizeof new_pool); /* ISO C has no cast from an object pointer */
    struct ggml_threadpool_params params = ggml_threadpool_params_default(most);
    params.poll = THREAD_POLL;
    threads->pool = new_pool(&params);
    fm_matmul_use_threads(threads->pool);
    fm_threads_share(threads, context);
}

void fm_threads_move(struct fm_threads *threads, struct llama_context *context) {
    threads->context = context;
    fm_threads_share(threads, context);
}

void fm_threads_lend(const struct fm_threads *threads, struct llama_context *context) {
    llama_set_n_threads(context, threads->count.now, threads->count.now);
}

void fm_threads_stop(struct fm_threads *threads) {
    void (*free_pool)(struct ggml_threadpool *);
    void *function = cpu_function("ggml_threadpool_free");
    if (threads->pool && function) {
        memcpy(&free_pool, &function, sizeof free_pool);
        fm_matmul_use_threads(NULL);
        free_pool(threads->pool);
    }
    *threads = (struct fm_threads){0};
}

void fm_threads_begin(struct fm_threads *threads, bool all) {
    int count = all ? threads->count.most : threads->count.now;
    llama_set_n_threads(threads->context, count, count);
    threads->all = all;
    threads->wall_us = fm_now_us();
    threads->cpu_us = fm_cpu_time_us();
}

void fm_threads_end(struct fm_threads *threads, int64_t tokens) {
    if (threads->all) {
        return;
    }
    int before = threads->count.now;
    int64_t now = fm_now_us();
    const struct fm_computed computed = {
        .tokens = tokens, .wall_us = now - threads->wall_us, .cpu_us = fm_cpu_time_us() - threads->cpu_us};
    fm_thread_count_note(&threads->count, now / 1000, &computed);
    if (threads->count.now != before) {
        fm_log(FM_LOG_DEBUG, "%d of %d threads compute from now on", threads->count.now, threads->count.most);
    }
}

bool fm_threads_settled(const struct fm_threads *threads) {
    return fm_thread_count_is_settled(&threads->count, fm_now_ms());
}

bool fm_threads_lost(const struct fm_threads *threads) {
    return !threads->all &&
           fm_thread_count_is_lost(&threads->count, fm_now_us() - threads->wall_us, fm_cpu_time_us() - threads->cpu_us);
}
