/* Builds the environment of an engine's process from our own. */
#include "front/engines/environment.h"
#include "base/file.h"
#include "base/platform.h"
#include "base/secret.h"
#include "base/variables.h"

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
    "VK_ICD_FILENAMES", /* which GPU to use, and with which driver */
#ifdef FM_SANITIZE
    "ASAN_OPTIONS",
    "UBSAN_OPTIONS",
    "TSAN_OPTIONS",
    "LSAN_OPTIONS",
#endif
};

/* Variables that only the front sets. */
static const char *const ours[] = {"FM_ENGINE_GPU", "FM_ENGINE_GPU_DIR", "FM_ENGINE_CONFIG", "FM_ENGINE_CONFIG_DIR"};

/*
 * glibc's manual, "Memory Allocation Tunables": large blocks lie in huge pages if the kernel gives huge pages to
 * programs that ask for them. A model's weights are read for every token, and with small pages that took a tenth
 * longer. Other C libraries ignore this variable.
 */
static char huge_pages[] = "GLIBC_TUNABLES=glibc.malloc.hugetlb=1";

static bool is_allowed(const char *entry) {
    return !fm_variable_is_in(ours, sizeof ours / sizeof ours[0], entry) &&
           fm_variable_is_in(allowed, sizeof allowed / sizeof allowed[0], entry);
}

/* Adds "NAME=VALUE". False when out of memory. */
static bool add_variable(struct fm_environment *env, const char *name, const char *value) {
    size_t name_len = strlen(name);
    size_t value_len = strlen(value);
    char *entry = fm_secret_new(name_len + 1 + value_len);
    if (!entry) {
        return false;
    }
    memcpy(entry, name, name_len);
    entry[name_len] = '=';
    memcpy(entry + name_len + 1, value, value_len);
    env->own[env->own_count++] = entry;
    return true;
}

/* Adds an absolute path, because an engine may work in another folder than this process. */
static bool add_path(struct fm_environment *env, const char *name, const char *path) {
    char *resolved = fm_file_resolve(path);
    bool ok = add_variable(env, name, resolved ? resolved : path); /* the file is gone: the engine will report that */
    free(resolved);
    return ok;
}

static bool add_config(struct fm_environment *env, const struct fm_config *config) {
    bool ok = add_variable(env, ours[2], config->text) && add_variable(env, ours[3], config->dir);
    for (size_t i = 0; i < config->key_count && ok; i++) {
        ok = add_variable(env, config->keys[i].name, config->keys[i].value);
    }
    return ok;
}

bool fm_environment_make(struct fm_environment *env, const char *gpu, const char *gpu_dir,
                         const struct fm_config *config) {
    char **whole = fm_process_environment();
    size_t count = 0;
    *env = (struct fm_environment){0};
    while (whole[count]) {
        count++;
    }
    env->entries = malloc((count + sizeof env->own / sizeof env->own[0] + 2) * sizeof *env->entries);
    bool ok = env->entries && (!gpu_dir || (add_variable(env, ours[0], gpu) && add_path(env, ours[1], gpu_dir))) &&
              (!config->text || add_config(env, config));
    if (!ok) {
        return false;
    }
    count = 0;
    for (char **entry = whole; *entry; entry++) {
        if (is_allowed(*entry)) {
            env->entries[count++] = *entry;
        }
    }
    for (size_t i = 0; i < env->own_count; i++) {
        env->entries[count++] = env->own[i];
    }
    env->entries[count++] = huge_pages;
    env->entries[count] = NULL;
    return true;
}

void fm_environment_free(struct fm_environment *env) {
    for (size_t i = 0; i < env->own_count; i++) {
        fm_secret_free(env->own[i]);
    }
    free(env->entries);
    *env = (struct fm_environment){0};
}
