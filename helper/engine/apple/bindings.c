/* Apple's library, loaded at run time: either every function of the table is there, or there is no library. */
#include "engine/apple/bindings.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define ROW(name, symbol, result, parameters) {symbol, offsetof(struct fm_apple_api, name)},

static const struct {
    const char *symbol;
    size_t offset; /* offset of the pointer in struct fm_apple_api */
} rows[] = {FM_APPLE_CALLS(ROW)};

static const char *find_functions(void *library, struct fm_apple_api *api) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        void *function = dlsym(library, rows[i].symbol);
        if (!function) {
            return rows[i].symbol;
        }
        memcpy((char *)api + rows[i].offset, &function, sizeof function); /* C can't cast data to a function pointer */
    }
    return NULL;
}

enum fm_code fm_apple_open(const char *path, struct fm_apple_api *api, struct fm_error *error) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char *missing = library ? find_functions(library, api) : NULL;
    if (library && !missing) {
        return FM_OK;
    }
    if (missing) {
        (void)fm_fail(error, FM_UNAVAILABLE, "the library of Apple's model has no %s; build release 0.2.1 of it: %s",
                      missing, path);
        dlclose(library);
    } else {
        const char *why = dlerror();
        (void)fm_fail(error, FM_UNAVAILABLE, "the library of Apple's model can't be loaded: %s", why ? why : path);
    }
    snprintf(error->reason_code, sizeof error->reason_code, "HELPER_UNHEALTHY");
    return FM_UNAVAILABLE;
}
