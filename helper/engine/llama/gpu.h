/*
 * The GPU, used through the Vulkan library of the same release of ggml, which is in a separate folder: finding it,
 * checking it, and reporting it. Engine thread only, unless it says otherwise.
 *
 * If a GPU fails, the process ends, because the state that a driver leaves is unknown. The front starts the engine
 * again without a GPU, and sends it the jobs that it had not begun to answer.
 */
#ifndef FM_ENGINE_LLAMA_GPU_H
#define FM_ENGINE_LLAMA_GPU_H

#include "protocol/gpu.h"

#include <ggml-backend.h>
#include <llama.h>

/*
 * If the front wants a GPU, prevents drivers from doing things that the sandbox forbids, such as a cache in a file.
 * Changes the environment, so call it before the first thread.
 */
void fm_llama_gpu_prepare(void);

/*
 * Whether to load the model with a GPU: the front wants a GPU, the library in its folder belongs to our release, and
 * the library has found a GPU. `report->device` then names the GPU; otherwise `report->detail` and the log say why
 * there is none. Both are "" if the front does not want a GPU. Loads the library, and with it the system's drivers. May
 * take seconds.
 */
FM_MUST_USE bool fm_llama_gpu_find(struct fm_gpu *report);

/*
 * Sets in `params` how much of the model in `path` the GPU takes with a context of `context`: as many layers as the
 * front wants, or as fit. What `params` points to then lives as long as the process. False: nothing fits, and
 * `report->detail` says so.
 */
FM_MUST_USE bool fm_llama_gpu_fit(const char *path, const struct llama_context_params *context,
                                  struct llama_model_params *params, struct fm_gpu *report);

/* Makes `params` use only the CPU, whatever libraries are loaded. */
void fm_llama_gpu_leave_out(struct llama_model_params *params);

#endif
