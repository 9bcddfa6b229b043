/*
 * Memory for secrets: separate pages, which are left out of core dumps if the system can do that (Linux). The first
 * bytes of a block are its size.
 */
#include "base/secret.h"

#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#include <windows.h>
#else
#include <sys/mman.h>
#endif

/* The compiler must not remove this call, although the bytes are not read afterwards. */
static void wipe(void *bytes, size_t len) {
    volatile char *at = bytes;
    while (len-- > 0) {
        *at++ = 0;
    }
}

static void *pages_new(size_t size) {
#ifdef _WIN32
    return VirtualAlloc(NULL, size, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
#else
    void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) {
        return NULL;
    }
#ifdef MADV_DONTDUMP
    (void)madvise(pages, size, MADV_DONTDUMP);
#endif
    return pages;
#endif
}

static void pages_free(void *pages, size_t size) {
#ifdef _WIN32
    (void)size;
    VirtualFree(pages, 0, MEM_RELEASE);
#else
    munmap(pages, size);
#endif
}

char *fm_secret_new(size_t len) {
    size_t size = sizeof size + len + 1;
    char *block = pages_new(size); /* new pages are zeros */
    if (!block) {
        return NULL;
    }
    memcpy(block, &size, sizeof size);
    return block + sizeof size;
}

char *fm_secret_copy(const char *text, size_t len) {
    char *secret = fm_secret_new(len);
    if (secret) {
        memcpy(secret, text, len);
    }
    return secret;
}

static void remove_variable(const char *name) {
#ifdef _WIN32
    (void)_putenv_s(name, "");
#else
    unsetenv(name);
#endif
}

char *fm_secret_take(const char *name) {
    char *value = getenv(name);
    char *secret = value ? fm_secret_copy(value, strlen(value)) : NULL;
    if (secret) {
        wipe(value, strlen(value)); /* what /proc/PID/environ shows is this memory */
        remove_variable(name);
    }
    return secret;
}

void fm_secret_free(char *secret) {
    size_t size;
    if (!secret) {
        return;
    }
    memcpy(&size, secret - sizeof size, sizeof size);
    wipe(secret, size - sizeof size);
    pages_free(secret - sizeof size, size);
}
