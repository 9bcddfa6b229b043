/* The threads that compute a model. Engine thread only; nothing here blocks but the start and the end. */
#ifndef FM_ENGINE_LLAMA_THREADS_H
#define FM_ENGINE_LLAMA_THREADS_H

#include "engine/llama/thread_count.h"

#include <ggml.h>
#include <llama.h>

struct fm_threads {
    struct llama_context *context; /* borrowed */
    struct ggml_threadpool *pool;  /* NULL: llama.cpp starts threads for each batch */
    struct fm_thread_count count;
    bool all;        /* of the batch that is being computed: see fm_threads_begin */
    int64_t wall_us; /* when it began, */
    int64_t cpu_us;  /* and what the process had of the processors until then */
};

/* How many there are by default: one a core that this process may use. */
int fm_threads_default(void);

/* Starts `most` threads for `context`, which llama.cpp starts for each batch where that fails. */
void fm_threads_start(struct fm_threads *threads, struct llama_context *context, int most);

/* They compute `context` from now on, instead of the one that they began with. */
void fm_threads_move(struct fm_threads *threads, struct llama_context *context);

/* `context` is to be computed by the same threads, between the batches of the first; it is freed before they stop. */
void fm_threads_share(const struct fm_threads *threads, struct llama_context *context);

/* Before each batch of that context: as many take part as in the last of the first. */
void fm_threads_lend(const struct fm_threads *threads, struct llama_context *context);

/* Also where they were never started. After the context is freed. */
void fm_threads_stop(struct fm_threads *threads);

/*
 * Before each batch. `all`: all threads compute, however busy the machine is, and the batch says nothing about that.
 * For the same bits as in another process, the last of which depend on the number of threads; and for a GPU, for which
 * threads wait.
 */
void fm_threads_begin(struct fm_threads *threads, bool all);

/* After a batch of `tokens`; 0: it was given up. */
void fm_threads_end(struct fm_threads *threads, int64_t tokens);

/* fm_thread_count_is_settled. */
bool fm_threads_settled(const struct fm_threads *threads);

/* Amid a batch: it is done sooner if it is given up, and begun again after fm_threads_end. */
bool fm_threads_lost(const struct fm_threads *threads);

#endif
