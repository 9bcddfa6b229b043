/* Finds the Vulkan library and its devices, and says why there are none. */
#include "engine/llama/gpu.h"
#include "base/log.h"
#include "engine/kit/kit.h"
#include "engine/llama/bridge.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Turns off caches of shaders, which would be files and the sandbox denies them, and the system's layers, which draw
 * over windows that do not exist here. Variables that the user has set stay.
 */
void fm_llama_gpu_prepare(void) {
    static const char *const settings[][2] = {
        {"MESA_SHADER_CACHE_DISABLE", "true"},
        {"__GL_SHADER_DISK_CACHE", "0"},
        {"VK_LOADER_LAYERS_DISABLE", "~implicit~"},
    };
    struct fm_gpu_wish wish;
    fm_kit_gpu_wish(&wish);
    for (size_t i = 0; i < sizeof settings / sizeof settings[0] && wish.folder; i++) {
        setenv(settings[i][0], settings[i][1], 0);
    }
}

/* ---- the library ---- */

static bool do_without(struct fm_gpu *report, const char *format, ...) FM_PRINTF(2, 3);

/* Always false. */
static bool do_without(struct fm_gpu *report, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(report->detail, sizeof report->detail, format, arguments);
    va_end(arguments);
    report->device[0] = '\0';
    fm_log(FM_LOG_WARN, "no GPU is used: %s", report->detail);
    return false;
}

#ifdef LM_ID_NEWLM
static const char *ask_library(void *library, const char *name) {
    const char *(*function)(void);
    void *symbol = dlsym(library, name);
    if (!symbol) {
        return "";
    }
    memcpy(&function, &symbol, sizeof function); /* ISO C has no cast from an object pointer */
    return function();
}
#endif

/*
 * Libraries of ggml only work together if they were built from the same commit. Beside the GPU's library lies the base
 * library with which it was built: that one is loaded separately from ours, asked for its version and commit, and
 * unloaded.
 */
static bool is_of_our_release(const char *folder, struct fm_gpu *report) {
#ifdef LM_ID_NEWLM
    char path[4096];
    snprintf(path, sizeof path, "%s/libggml-base.so", folder);
    void *library = dlmopen(LM_ID_NEWLM, path, RTLD_LAZY | RTLD_LOCAL);
    if (!library) {
        const char *reason = dlerror();
        return do_without(report, "%.200s", reason ? reason : path);
    }
    char release[64];
    snprintf(release, sizeof release, "%.20s (%.40s)", ask_library(library, "ggml_version"),
             ask_library(library, "ggml_commit"));
    dlclose(library);
    char ours[64];
    snprintf(ours, sizeof ours, "%.20s (%.40s)", ggml_version(), ggml_commit());
    return strcmp(release, ours) == 0 ||
           do_without(report, "%.100s has ggml %s, this engine has %s: install the release that belongs to it", folder,
                      release, ours);
#else
    return do_without(report, "this system can't tell whether the library in %.100s belongs to this engine", folder);
#endif
}

/* Loads the Vulkan library with dlopen first: only that says what is missing. */
static bool load_library(const char *folder, struct fm_gpu *report) {
    char path[4096];
    snprintf(path, sizeof path, "%s/libggml-vulkan.so", folder);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *reason = dlerror();
        bool loader = reason && strstr(reason, "libvulkan.so");
        return do_without(report, "%.160s%s", reason ? reason : path,
                          loader ? "; install the system's Vulkan loader (Debian: libvulkan1)" : "");
    }
    return ggml_backend_load(path) ||
           do_without(report, "Vulkan can't be used: there is no driver, or none that works");
}

/* ---- devices ---- */

static bool is_gpu(ggml_backend_dev_t device) {
    enum ggml_backend_dev_type type = ggml_backend_dev_type(device);
    return type == GGML_BACKEND_DEVICE_TYPE_GPU || type == GGML_BACKEND_DEVICE_TYPE_IGPU;
}

/* Lists the names of the devices that ggml has found. */
static void name_devices(struct fm_gpu *report) {
    size_t len = 0;
    for (size_t i = 0; i < ggml_backend_dev_count() && len < sizeof report->device; i++) {
        ggml_backend_dev_t device = ggml_backend_dev_get(i);
        if (is_gpu(device)) {
            len += (size_t)snprintf(report->device + len, sizeof report->device - len, "%s%.60s", len ? ", " : "",
                                    ggml_backend_dev_description(device));
        }
    }
}

bool fm_llama_gpu_find(struct fm_gpu *report) {
    struct fm_gpu_wish wish;
    fm_kit_gpu_wish(&wish);
    *report = (struct fm_gpu){.layers = 0};
    if (!wish.folder || !is_of_our_release(wish.folder, report) || !load_library(wish.folder, report)) {
        return false;
    }
    name_devices(report);
    return report->device[0] || do_without(report, "Vulkan has found none (devices that are CPUs are left out, unless "
                                                   "GGML_VK_VISIBLE_DEVICES names them)");
}

bool fm_llama_gpu_fit(const char *path, const struct llama_context_params *context, struct llama_model_params *params,
                      struct fm_gpu *report) {
    struct fm_gpu_wish wish;
    fm_kit_gpu_wish(&wish);
    params->n_gpu_layers = (int32_t)wish.layers;
    if (wish.layers >= 0) {
        return true;
    }
    struct fm_error error;
    if (fm_fit_layers(path, context, params, &error) != FM_OK) {
        return do_without(report, "%.200s", error.detail);
    }
    return params->n_gpu_layers != 0 ||
           do_without(report, "%s has no memory left for a layer of the model", report->device);
}

void fm_llama_gpu_leave_out(struct llama_model_params *params) {
    static ggml_backend_dev_t none[] = {NULL};
    params->devices = none;
    params->n_gpu_layers = 0;
}
