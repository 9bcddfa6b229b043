/*
 * Fails allocations of a whole process, its libraries included: a library for LD_PRELOAD (glibc).
 *
 *     FM_FAIL_AT=N      the Nth allocation fails
 *     FM_FAIL_FROM=N    the Nth and all later ones fail
 *     FM_FAIL_COUNT=FD  at the process's orderly end, the number of allocations is written to this descriptor
 *
 * It counts malloc, calloc, realloc, aligned_alloc, posix_memalign, and so strdup and what else is built on them.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_ulong allocations;
static unsigned long fail_at;
static unsigned long fail_from;
static int count_fd = -1;

/* dlsym has no function pointers in ISO C. */
static void find(void *function, const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    memcpy(function, &found, sizeof found);
}

static unsigned long number_of(const char *variable) {
    const char *text = getenv(variable);
    return text ? strtoul(text, NULL, 10) : 0;
}

__attribute__((constructor)) static void read_environment(void) {
    fail_at = number_of("FM_FAIL_AT");
    fail_from = number_of("FM_FAIL_FROM");
    count_fd = getenv("FM_FAIL_COUNT") ? (int)number_of("FM_FAIL_COUNT") : -1;
    atomic_store(&allocations, 0);
}

__attribute__((destructor)) static void report(void) {
    if (count_fd >= 0) {
        dprintf(count_fd, "%lu", atomic_load(&allocations));
    }
    fail_at = fail_from = 0; /* what comes later is not ours: a leak checker, other destructors */
}

/* Of the model that allocates nothing on the first use. */
static _Thread_local bool exempt __attribute__((tls_model("initial-exec")));

static bool fails(void) {
    if (exempt) {
        return false;
    }
    unsigned long number = atomic_fetch_add(&allocations, 1) + 1;
    if (number != fail_at && (!fail_from || number < fail_from)) {
        return false;
    }
    errno = ENOMEM;
    return true;
}

void *malloc(size_t size) {
    static void *(*real)(size_t);
    if (!real) {
        find(&real, "malloc");
    }
    return fails() ? NULL : real(size);
}

void *calloc(size_t count, size_t size) {
    static void *(*real)(size_t, size_t);
    if (!real) {
        find(&real, "calloc");
    }
    return fails() ? NULL : real(count, size);
}

void *realloc(void *block, size_t size) {
    static void *(*real)(void *, size_t);
    if (!real) {
        find(&real, "realloc");
    }
    return fails() ? NULL : real(block, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    static void *(*real)(size_t, size_t);
    if (!real) {
        find(&real, "aligned_alloc");
    }
    return fails() ? NULL : real(alignment, size);
}

int posix_memalign(void **block, size_t alignment, size_t size) {
    static int (*real)(void **, size_t, size_t);
    if (!real) {
        find(&real, "posix_memalign");
    }
    return fails() ? ENOMEM : real(block, alignment, size);
}

/* Only a sanitizer's runtime calls this here, at the start of a thread, and it aborts without memory. */
int pthread_getattr_np(pthread_t thread, pthread_attr_t *attributes) {
    static int (*real)(pthread_t, pthread_attr_t *);
    if (!real) {
        find(&real, "pthread_getattr_np");
    }
    exempt = true;
    int error = real(thread, attributes);
    exempt = false;
    return error;
}
