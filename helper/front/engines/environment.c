/* Makes the environment of an engine's process out of our own. */
#include "front/engines/environment.h"
#include "base/file.h"
#include "base/platform.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What an engine may see of our environment: names, or prefixes that end with '_'. */
static const char *const allowed[] = {
    "PATH",
    "HOME",
    "TMPDIR",
    "LANG",
    "LC_ALL",
    "TZ",
    "FM_ENGINE_",
    "GGML_VK_VISIBLE_DEVICES",
    "VK_DRIVER_FILES",
    "VK_ICD_FILENAMES", /* which GPU, by which driver */
#ifdef FM_SANITIZE
    "ASAN_OPTIONS",
    "UBSAN_OPTIONS",
    "TSAN_OPTIONS",
    "LSAN_OPTIONS",
#endif
};

/* What the front alone says. */
static const char *const ours[] = {"FM_ENGINE_GPU", "FM_ENGINE_GPU_DIR"};

/* glibc's manual, "Memory Allocation Tunables": large blocks lie in huge pages where the kernel gives them to those
 * that ask. A model's weights are read for every token: in small pages that took a tenth longer. Other C libraries skip
 * it. */
static char huge_pages[] = "GLIBC_TUNABLES=glibc.malloc.hugetlb=1";

static bool is_allowed(const char *entry) {
    size_t name_len = strcspn(entry, "=");
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++) {
        if (name_len == strlen(ours[i]) && strncmp(entry, ours[i], name_len) == 0) {
            return false;
        }
    }
    for (size_t i = 0; i < sizeof allowed / sizeof allowed[0]; i++) {
        size_t len = strlen(allowed[i]);
        bool prefix = allowed[i][len - 1] == '_';
        if (strncmp(entry, allowed[i], len) == 0 && (prefix || name_len == len)) {
            return true;
        }
    }
    return false;
}

/* "NAME=VALUE", the caller's to free; NULL when out of memory. */
static char *make_entry(const char *name, const char *value) {
    size_t size = strlen(name) + strlen(value) + 2;
    char *entry = malloc(size);
    if (entry) {
        snprintf(entry, size, "%s=%s", name, value);
    }
    return entry;
}

/* An engine may work in another folder than this process. */
static char *make_path_entry(const char *name, const char *path) {
    char *resolved = fm_file_resolve(path);
    char *entry = make_entry(name, resolved ? resolved : path); /* it is gone: the engine will say so */
    free(resolved);
    return entry;
}

bool fm_environment_make(struct fm_environment *env, const char *gpu, const char *gpu_dir) {
    const size_t own = sizeof env->own / sizeof env->own[0];
    char **whole = fm_process_environment();
    size_t count = 0;
    *env = (struct fm_environment){0};
    while (whole[count]) {
        count++;
    }
    env->entries = malloc((count + own + 2) * sizeof *env->entries);
    if (gpu_dir) {
        env->own[0] = make_entry(ours[0], gpu);
        env->own[1] = make_path_entry(ours[1], gpu_dir);
    }
    if (!env->entries || (gpu_dir && (!env->own[0] || !env->own[1]))) {
        return false;
    }
    count = 0;
    for (char **entry = whole; *entry; entry++) {
        if (is_allowed(*entry)) {
            env->entries[count++] = *entry;
        }
    }
    for (size_t i = 0; i < own && gpu_dir; i++) {
        env->entries[count++] = env->own[i];
    }
    env->entries[count++] = huge_pages;
    env->entries[count] = NULL;
    return true;
}

void fm_environment_free(struct fm_environment *env) {
    free(env->own[0]);
    free(env->own[1]);
    free(env->entries);
    *env = (struct fm_environment){0};
}
