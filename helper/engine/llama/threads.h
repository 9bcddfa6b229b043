/* The threads that compute a model. Engine thread only; only the start and the end block. */
#ifndef FM_ENGINE_LLAMA_THREADS_H
#define FM_ENGINE_LLAMA_THREADS_H

#include "engine/llama/thread_count.h"

#include <ggml.h>
#include <llama.h>

struct fm_threads {
    struct llama_context *context; /* borrowed */
    struct ggml_threadpool *pool;  /* NULL: llama.cpp starts threads for each batch */
    struct fm_thread_count count;
    bool all;        /* `all` of the batch that is being computed: see fm_threads_begin */
    int64_t wall_us; /* when the batch began */
    int64_t cpu_us;  /* the processor time of the process when the batch began */
};

/* The default number of threads: one for each core that this process may use. */
int fm_threads_default(void);

/* Starts `most` threads for `context`. If that fails, llama.cpp starts threads for each batch. */
void fm_threads_start(struct fm_threads *threads, struct llama_context *context, int most);

/* Makes the threads compute `context` from now on, instead of their first context. */
void fm_threads_move(struct fm_threads *threads, struct llama_context *context);

/*
 * Makes the threads also compute `context`, between the batches of their own context. `context` must be freed before
 * the threads stop.
 */
void fm_threads_share(const struct fm_threads *threads, struct llama_context *context);

/*
 * Call it before each batch of the context of fm_threads_share: as many threads take part as in the last batch of their
 * own context.
 */
void fm_threads_lend(const struct fm_threads *threads, struct llama_context *context);

/* Stops the threads, after their context is freed. Harmless if they were never started. */
void fm_threads_stop(struct fm_threads *threads);

/*
 * Call it before each batch. `all`: all threads compute, however busy the machine is, and the batch does not count as a
 * measurement of that. Use `all` for answers that must be the same to the bit as in another process, because the last
 * bits depend on the number of threads; and for a GPU, for which threads only wait.
 */
void fm_threads_begin(struct fm_threads *threads, bool all);

/* Call it after a batch of `tokens` tokens; 0: the batch was given up. */
void fm_threads_end(struct fm_threads *threads, int64_t tokens);

/* The result of fm_thread_count_is_settled. */
bool fm_threads_settled(const struct fm_threads *threads);

/*
 * Call it during a batch. True: the batch would be done sooner if it is given up, and begun again after fm_threads_end.
 */
bool fm_threads_lost(const struct fm_threads *threads);

#endif
