/* For a system on which no GPU can be used: the model is computed by the CPU. */
#include "engine/llama/gpu.h"
#include "base/log.h"
#include "engine/kit/kit.h"

#include <stdio.h>

void fm_llama_gpu_prepare(void) {}

bool fm_llama_gpu_find(struct fm_gpu *report) {
    struct fm_gpu_wish wish;
    fm_kit_gpu_wish(&wish);
    *report = (struct fm_gpu){.layers = 0};
    if (wish.folder) {
        snprintf(report->detail, sizeof report->detail, "the engine can't use a GPU on this system yet");
        fm_log(FM_LOG_WARN, "no GPU is used: %s", report->detail);
    }
    return false;
}

bool fm_llama_gpu_fit(const char *path, const struct llama_context_params *context, struct llama_model_params *params,
                      struct fm_gpu *report) {
    (void)path, (void)context, (void)params, (void)report;
    return false;
}

void fm_llama_gpu_leave_out(struct llama_model_params *params) {
    static ggml_backend_dev_t none[] = {NULL};
    params->devices = none;
    params->n_gpu_layers = 0;
}
