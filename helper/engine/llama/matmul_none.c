/* matmul.h for systems without kernels: all except Linux on x86_64. */
#include "engine/llama/matmul.h"

bool fm_matmul_register(void) {
    return false;
}

struct llama_context *fm_matmul_context(struct llama_model *model, struct llama_context_params params) {
    return llama_init_from_model(model, params);
}

void fm_matmul_use_threads(struct ggml_threadpool *threads) {
    (void)threads;
}
