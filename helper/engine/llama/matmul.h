/*
 * Products with weights in the format Q4_1 by kernels of our own (q4_1.h), because ggml's take one column at a time.
 * The results are the same to the bit; prompts and several parallel sequences are computed faster.
 *
 * For llama.cpp this is a ggml backend of the type that takes operations from the CPU's backend and works in its
 * memory, like ggml's own for BLAS. It passes its operations to a CPU backend of its own, with these products instead
 * of ggml's. So it computes with ggml's threads, and calls the abort callback where ggml does. No weights are copied,
 * and no symbol of llama.cpp is replaced. A model without such weights is computed as before.
 *
 * Engine thread only.
 */
#ifndef FM_ENGINE_LLAMA_MATMUL_H
#define FM_ENGINE_LLAMA_MATMUL_H

#include <ggml-cpu.h>
#include <llama.h>
#include <stdbool.h>

/*
 * Adds this backend to ggml's backends, for as long as the process lives. Call it after ggml's CPU backend is loaded
 * and before the first model is. False: this build has no kernels, or ggml was loaded in a variant for processors that
 * lack what the kernels need; everything else works without it.
 */
bool fm_matmul_register(void);

/* Calls llama_init_from_model. NULL if it fails. */
struct llama_context *fm_matmul_context(struct llama_model *model, struct llama_context_params params);

/*
 * From now on each context computes with `threads`, which llama_attach_threadpool has given it. NULL: no threads are
 * attached. The threads must outlive the contexts.
 */
void fm_matmul_use_threads(struct ggml_threadpool *threads);

#endif
