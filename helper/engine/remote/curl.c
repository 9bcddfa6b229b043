/* Loads libcurl by dlopen, and gives it memory that is wiped whenever it is freed or moved. */
#include "engine/remote/curl.h"
#include "engine/remote/key.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory ---- */

/* Bytes before each allocation. They hold its size, and keep the memory after them aligned. */
#define HEAD _Alignof(max_align_t)
_Static_assert(HEAD >= sizeof(size_t), "the size fits");

static void *allocate_memory(size_t size) {
    char *head = size < SIZE_MAX - HEAD ? malloc(HEAD + size) : NULL;
    if (!head) {
        return NULL;
    }
    memcpy(head, &size, sizeof size);
    return head + HEAD;
}

static size_t size_of(const void *memory) {
    size_t size;
    memcpy(&size, (const char *)memory - HEAD, sizeof size);
    return size;
}

static void wipe_and_free(void *memory) {
    if (memory) {
        fm_wipe(memory, size_of(memory));
        free((char *)memory - HEAD);
    }
}

static void *reallocate(void *memory, size_t size) {
    void *moved = allocate_memory(size);
    if (memory && moved) {
        size_t old = size_of(memory);
        memcpy(moved, memory, old < size ? old : size);
        wipe_and_free(memory);
    }
    return moved;
}

static char *duplicate(const char *text) {
    size_t size = strlen(text) + 1;
    char *copy = allocate_memory(size);
    if (copy) {
        memcpy(copy, text, size);
    }
    return copy;
}

static void *allocate_zeroed(size_t count, size_t size) {
    void *memory = size == 0 || count <= SIZE_MAX / size ? allocate_memory(count * size) : NULL;
    if (memory) {
        memset(memory, 0, count * size);
    }
    return memory;
}

/* ---- the library ---- */

/*
 * Names of the library: the variant with OpenSSL first; Debian's variant with GnuTLS has the same interface. The last
 * two are macOS's.
 */
static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.4.dylib",
                                    "/usr/lib/libcurl.4.dylib"};

static enum fm_code unavailable(struct fm_error *error, const char *why) {
    enum fm_code code =
        fm_fail(error, FM_UNAVAILABLE, "the remote engine needs libcurl %s or later: %s", FM_CURL_OLDEST_NAME, why);
    snprintf(error->reason_code, sizeof error->reason_code, "HELPER_UNHEALTHY");
    return code;
}

/*
 * ISO C has no conversion from an object pointer to a function pointer. POSIX requires that both have the same
 * representation.
 */
static bool find_function(struct fm_curl *curl, const char *name, void *function) {
    void *found = dlsym(curl->library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

static bool find_all(struct fm_curl *curl) {
    const struct {
        const char *name;
        void *function;
    } rows[] = {
        {"curl_global_init_mem", &curl->global_init_mem},
        {"curl_version_info", &curl->version_info},
        {"curl_easy_init", &curl->easy_init},
        {"curl_easy_cleanup", &curl->easy_cleanup},
        {"curl_easy_setopt", &curl->easy_setopt},
        {"curl_easy_getinfo", &curl->easy_getinfo},
        {"curl_easy_strerror", &curl->easy_strerror},
        {"curl_slist_append", &curl->slist_append},
        {"curl_slist_free_all", &curl->slist_free_all},
        {"curl_multi_init", &curl->multi_init},
        {"curl_multi_cleanup", &curl->multi_cleanup},
        {"curl_multi_setopt", &curl->multi_setopt},
        {"curl_multi_add_handle", &curl->multi_add_handle},
        {"curl_multi_remove_handle", &curl->multi_remove_handle},
        {"curl_multi_perform", &curl->multi_perform},
        {"curl_multi_info_read", &curl->multi_info_read},
        {"curl_multi_poll", &curl->multi_poll},
        {"curl_multi_wakeup", &curl->multi_wakeup},
    };
    bool all = true;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        all &= find_function(curl, rows[i].name, rows[i].function);
    }
    return all;
}

enum fm_code fm_curl_load(struct fm_curl *curl, struct fm_error *error) {
    *curl = (struct fm_curl){.library = NULL};
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !curl->library; i++) {
        curl->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    }
    if (!curl->library) {
        return unavailable(error, "it is not installed (Debian's package is libcurl4)");
    }
    bool all = find_all(curl);
    const struct fm_curl_version *version = curl->version_info ? curl->version_info(0) : NULL;
    if (!all || !version || version->number < FM_CURL_OLDEST) {
        return unavailable(error, version ? version->version : "this one can't be used");
    }
    if (curl->global_init_mem(FM_CURL_GLOBAL_ALL, allocate_memory, wipe_and_free, reallocate, duplicate,
                              allocate_zeroed) != FM_CURLE_OK) {
        return unavailable(error, "it can't be initialised");
    }
    return FM_OK;
}
