/*
 * A library for LD_PRELOAD (glibc) that makes calls of a process and its libraries fail.
 *
 *     FM_FAIL_WHAT=alloc   malloc, calloc, realloc, aligned_alloc, posix_memalign; strdup and others use them
 *     FM_FAIL_WHAT=thread  pthread_create: EAGAIN
 *     FM_FAIL_WHAT=read    read: EIO
 *     FM_FAIL_WHAT=write   write: EPIPE
 *     FM_FAIL_AT=N         the Nth such call fails
 *     FM_FAIL_FROM=N       the Nth and all later ones fail
 *     FM_FAIL_COUNT=FD     at an orderly end, the number of such calls is written to this descriptor
 *     FM_FAIL_SHORT=1      read takes and write gives few bytes at a time, and every third call is interrupted (EINTR)
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

enum what { NOTHING, ALLOC, THREAD, READ, WRITE };

static enum what failing;
static atomic_ulong calls;
static unsigned long fail_at;
static unsigned long fail_from;
static int count_fd = -1;
static bool short_io;
static atomic_ulong io_calls;

/* ISO C can't convert dlsym's result to a function pointer. */
static void find(void *function, const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    memcpy(function, &found, sizeof found);
}

static unsigned long number_of(const char *variable) {
    const char *text = getenv(variable);
    return text ? strtoul(text, NULL, 10) : 0;
}

/*
 * Turns the leak check of engines off. The leak check runs in a separate process, which waits forever if the engine is
 * killed meanwhile. An engine may be killed when it ends, and leaks of engines are not tested here.
 */
static void spare_children_the_leak_check(void) {
    setenv("ASAN_OPTIONS", "verify_asan_link_order=0:detect_leaks=0", 1);
}

__attribute__((constructor)) static void read_environment(void) {
    spare_children_the_leak_check();
    static const char *const names[] = {"", "alloc", "thread", "read", "write"};
    const char *what = getenv("FM_FAIL_WHAT");
    for (size_t i = ALLOC; what && i <= WRITE; i++) {
        failing = strcmp(what, names[i]) == 0 ? (enum what)i : failing;
    }
    short_io = number_of("FM_FAIL_SHORT") != 0;
    fail_at = number_of("FM_FAIL_AT");
    fail_from = number_of("FM_FAIL_FROM");
    count_fd = getenv("FM_FAIL_COUNT") ? (int)number_of("FM_FAIL_COUNT") : -1;
    atomic_store(&calls, 0);
}

__attribute__((destructor)) static void report(void) {
    if (count_fd >= 0) {
        dprintf(count_fd, "%lu", atomic_load(&calls));
    }
    fail_at = fail_from = 0; /* later calls are not ours: a leak checker, other destructors */
}

/* This TLS model allocates nothing on the first use. */
static _Thread_local bool exempt __attribute__((tls_model("initial-exec")));

static bool fails(enum what what, int error) {
    if (exempt || what != failing) {
        return false;
    }
    unsigned long number = atomic_fetch_add(&calls, 1) + 1;
    if (number != fail_at && (!fail_from || number < fail_from)) {
        return false;
    }
    errno = error;
    return true;
}

/* ---- memory ---- */

void *malloc(size_t size) {
    static void *(*real)(size_t);
    if (!real) {
        find(&real, "malloc");
    }
    return fails(ALLOC, ENOMEM) ? NULL : real(size);
}

void *calloc(size_t count, size_t size) {
    static void *(*real)(size_t, size_t);
    if (!real) {
        find(&real, "calloc");
    }
    return fails(ALLOC, ENOMEM) ? NULL : real(count, size);
}

void *realloc(void *block, size_t size) {
    static void *(*real)(void *, size_t);
    if (!real) {
        find(&real, "realloc");
    }
    return fails(ALLOC, ENOMEM) ? NULL : real(block, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    static void *(*real)(size_t, size_t);
    if (!real) {
        find(&real, "aligned_alloc");
    }
    return fails(ALLOC, ENOMEM) ? NULL : real(alignment, size);
}

int posix_memalign(void **block, size_t alignment, size_t size) {
    static int (*real)(void **, size_t, size_t);
    if (!real) {
        find(&real, "posix_memalign");
    }
    return fails(ALLOC, ENOMEM) ? ENOMEM : real(block, alignment, size);
}

/* Never fails: only a sanitizer's runtime calls this function here, when a thread starts, and the runtime aborts
 * without memory. */
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

/* ---- threads ---- */

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument) {
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (!real) {
        find(&real, "pthread_create");
    }
    return fails(THREAD, EAGAIN) ? EAGAIN : real(thread, attributes, body, argument);
}

/* ---- descriptors ---- */

/* Returns how many of `len` bytes this call may move; 0: the call is interrupted. */
static size_t share(size_t len) {
    if (!short_io) {
        return len;
    }
    unsigned long number = atomic_fetch_add(&io_calls, 1);
    size_t most = number % 3 == 0 ? 1 : 7;
    if (number % 3 == 2) {
        errno = EINTR;
        return 0;
    }
    return len < most ? len : most;
}

ssize_t read(int fd, void *bytes, size_t len) {
    static ssize_t (*real)(int, void *, size_t);
    if (!real) {
        find(&real, "read");
    }
    size_t part = share(len);
    return fails(READ, EIO) || (len && !part) ? -1 : real(fd, bytes, part);
}

ssize_t write(int fd, const void *bytes, size_t len) {
    static ssize_t (*real)(int, const void *, size_t);
    if (!real) {
        find(&real, "write");
    }
    size_t part = share(len);
    return fails(WRITE, EPIPE) || (len && !part) ? -1 : real(fd, bytes, part);
}
