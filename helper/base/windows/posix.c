/* The functions of posix.h. */
#include "base/windows/posix.h"

#include <stdlib.h>
#include <string.h>

void *memmem(const void *text, size_t len, const void *wanted, size_t wanted_len) {
    const char *at = text;
    const char *end = at + len;
    if (wanted_len == 0) {
        return (void *)at;
    }
    while ((size_t)(end - at) >= wanted_len &&
           (at = memchr(at, *(const char *)wanted, (size_t)(end - at) - wanted_len + 1))) {
        if (memcmp(at, wanted, wanted_len) == 0) {
            return (void *)at;
        }
        at++;
    }
    return NULL;
}

char *strndup(const char *text, size_t len) {
    size_t used = strnlen(text, len);
    char *copy = malloc(used + 1);
    if (copy) {
        memcpy(copy, text, used);
        copy[used] = '\0';
    }
    return copy;
}

int setenv(const char *name, const char *value, int overwrite) {
    (void)overwrite;
    return _putenv_s(name, value) == 0 ? 0 : -1;
}
