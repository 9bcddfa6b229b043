/* Makes our own allocations fail; for tests with fm_wrap_allocations (CMakeLists.txt), which defines WRAPPED. */
#ifndef FM_TESTS_ALLOCATIONS_H
#define FM_TESTS_ALLOCATIONS_H

#include <stdbool.h>
#include <stdlib.h>

/* the number of allocations until one fails (later ones succeed); negative: none fails */
static int allocations_left = -1;

static bool refuse(void) {
    return allocations_left >= 0 && allocations_left-- == 0;
}

void *__real_realloc(void *block, size_t size);
void *__real_calloc(size_t count, size_t size);
char *__real_strdup(const char *text);
void *__wrap_realloc(void *block, size_t size);
void *__wrap_calloc(size_t count, size_t size);
char *__wrap_strdup(const char *text);

void *__wrap_realloc(void *block, size_t size) {
    return refuse() ? NULL : __real_realloc(block, size);
}

void *__wrap_calloc(size_t count, size_t size) {
    return refuse() ? NULL : __real_calloc(count, size);
}

char *__wrap_strdup(const char *text) {
    return refuse() ? NULL : __real_strdup(text);
}

#endif
