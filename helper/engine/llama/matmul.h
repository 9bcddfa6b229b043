/*
 * Products with weights in the format Q4_1 by kernels of our own (q4_1.h), where ggml's take one column at a time: the
 * results are the same to the bit, several sequences at once and prompts come sooner.
 *
 * To llama.cpp this is a ggml backend of the type that takes operations off the CPU's backend, and works in its memory,
 * as ggml's own for BLAS is. It hands what it is to compute to its own CPU backend, with these products in the
 * place of ggml's. So it computes with ggml's threads, and asks the abort callback where ggml does. No weights are
 * copied, no symbol of llama.cpp is replaced. A model that has no such weights is computed as without it.
 *
 * Engine thread only.
 */
#ifndef FM_ENGINE_LLAMA_MATMUL_H
#define FM_ENGINE_LLAMA_MATMUL_H

#include <ggml-cpu.h>
#include <llama.h>
#include <stdbool.h>

/*
 * From now on it is one of ggml's backends, for as long as the process lives. After ggml's CPU backend is loaded,
 * before the first model is. False: this is not a build for it, or ggml was loaded in a variant for processors that
 * have not what the kernels need; all else works without it.
 */
bool fm_matmul_register(void);

/* llama_init_from_model. NULL where that fails. */
struct llama_context *fm_matmul_context(struct llama_model *model, struct llama_context_params params);

/* Each context computes with these threads from now on: those that llama_attach_threadpool has given it. NULL: none are
 * attached. They outlive the contexts. */
void fm_matmul_use_threads(struct ggml_threadpool *threads);

#endif
