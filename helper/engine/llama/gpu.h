/*
 * The GPU, by the Vulkan library of the same release of ggml, which lies in its own folder: found, judged, and
 * told of. Engine thread only, unless it says otherwise.
 *
 * A GPU that fails takes the process with it: what a driver leaves behind is not worth a guess. The front starts the
 * engine again without one, and gives it what it had not begun to answer.
 */
#ifndef FM_ENGINE_LLAMA_GPU_H
#define FM_ENGINE_LLAMA_GPU_H

#include "protocol/gpu.h"

#include <ggml-backend.h>
#include <llama.h>

/*
 * Keeps drivers from what an engine may not do anyway, such as a cache in a file, where the front wants a GPU to be
 * used. Changes the environment: before the first thread.
 */
void fm_llama_gpu_prepare(void);

/*
 * Whether the model is to be loaded with a GPU: the front wants it, the library in its folder is of our release, and
 * has found one. `report->device` names it then; else `report->detail` says why there is none, and the log does too;
 * both are "" where the front does not want one. Loads the library, and with it the system's drivers. May take seconds.
 */
FM_MUST_USE bool fm_llama_gpu_find(struct fm_gpu *report);

/*
 * Sets in `params` how much of the model in `path` the GPU takes with a context of `context`: as many layers as the
 * front wants, or as fit. What `params` points to then lives as long as the process. False: nothing fits, and
 * `report->detail` says so.
 */
FM_MUST_USE bool fm_llama_gpu_fit(const char *path, const struct llama_context_params *context,
                                  struct llama_model_params *params, struct fm_gpu *report);

/* Has `params` use the CPU alone, whatever libraries are loaded. */
void fm_llama_gpu_leave_out(struct llama_model_params *params);

#endif
