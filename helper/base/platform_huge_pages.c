/*
 * Huge pages (platform.h): on Linux transparent ones, Documentation/admin-guide/mm/transhuge.rst of the kernel. The
 * bytes at an address stay the same all the time: a copy takes the file's place in one system call.
 */
#ifdef __linux__

#include "base/platform.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SYSFS      "/sys/kernel/mm/transparent_hugepage/"
#define SIZE_MAX_B ((size_t)32 << 20) /* larger ones (512 MiB with base pages of 64 KiB) are not worth the wait */

static bool read_line(const char *path, char *line, int size) {
    FILE *file = fopen(path, "re");
    bool read = file && fgets(line, size, file);
    if (file) {
        fclose(file);
    }
    return read;
}

/* Bytes of a huge page; 0: the kernel gives none to this process. */
static size_t huge_size(void) {
    char line[128];
    if (!read_line(SYSFS "enabled", line, sizeof line) || strstr(line, "[never]") ||
        !read_line(SYSFS "hpage_pmd_size", line, sizeof line)) {
        return 0;
    }
    size_t size = strtoull(line, NULL, 10);
    return size <= SIZE_MAX_B ? size : 0;
}

/* Where `line` of /proc/self/maps is of a part of `path` that is only read. proc(5): "FROM-TO RIGHTS OFFSET DEVICE
 * INODE PATH", the numbers in base 16, with more spaces before the path. */
static bool is_mapping(const char *line, const char *path, uintptr_t *from, uintptr_t *to) {
    char *rest;
    *from = (uintptr_t)strtoull(line, &rest, 16);
    *to = *rest == '-' ? (uintptr_t)strtoull(rest + 1, &rest, 16) : 0;
    const char *name = strchr(rest, '/');
    return strncmp(rest, " r--", 4) == 0 && name && strcmp(name, path) == 0;
}

void fm_huge_pages_find(struct fm_huge_pages *pages, const char *path) {
    char *real = realpath(path, NULL);
    FILE *maps = real ? fopen("/proc/self/maps", "re") : NULL;
    char *line = NULL;
    size_t room = 0;
    uintptr_t from;
    uintptr_t to;
    pages->size = huge_size();
    while (maps && pages->size > 0 && getline(&line, &room, maps) > 0 && pages->count < FM_HUGE_RANGES_MAX) {
        line[strcspn(line, "\n")] = '\0';
        if (!is_mapping(line, real, &from, &to)) {
            continue;
        }
        from = (from + pages->size - 1) / pages->size * pages->size;
        if (from + pages->size <= to) {
            pages->ranges[pages->count].from = from;
            pages->ranges[pages->count++].to = to / pages->size * pages->size;
        }
    }
    if (maps) {
        fclose(maps);
    }
    free(line);
    free(real);
}

/* Memory for one huge page, at a multiple of its size; NULL: there is none. */
static void *new_page(size_t size) {
    char *room = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) {
        return NULL;
    }
    char *page = room + (size - (uintptr_t)room % size) % size;
    if (page > room) {
        munmap(room, (size_t)(page - room));
    }
    munmap(page + size, (size_t)(room + size - page));
    madvise(page, size, MADV_HUGEPAGE);
    return page;
}

static bool move(uintptr_t at, size_t size) {
    void *target = (void *)at;
    void *page = new_page(size);
    if (!page) {
        return false;
    }
    memcpy(page, target, size);
    bool moved = mprotect(page, size, PROT_READ) == 0 &&
                 mremap(page, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, target) == target;
    if (!moved) {
        munmap(page, size);
    }
    return moved;
}

bool fm_huge_pages_next(struct fm_huge_pages *pages) {
    while (pages->count > 0) {
        size_t last = pages->count - 1;
        if (pages->ranges[last].from < pages->ranges[last].to) {
            bool moved = move(pages->ranges[last].from, pages->size);
            pages->ranges[last].from += pages->size;
            pages->count = moved ? pages->count : 0;
            return moved;
        }
        pages->count--;
    }
    return false;
}

#else

#include "base/platform.h"

void fm_huge_pages_find(struct fm_huge_pages *pages, const char *path) {
    (void)pages;
    (void)path;
}

bool fm_huge_pages_next(struct fm_huge_pages *pages) {
    (void)pages;
    return false;
}

#endif
