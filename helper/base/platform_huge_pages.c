/*
 * Pages of mapped files, and huge ones (platform.h): on Linux transparent huge pages,
 * Documentation/admin-guide/mm/transhuge.rst of the kernel. The bytes at an address never change: one system call
 * replaces the file's pages by the copy.
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
#define SIZE_MAX_B ((size_t)32 << 20) /* larger pages (512 MiB with base pages of 64 KiB) are not worth the wait */

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

/*
 * True, with the addresses, if `line` of /proc/self/maps is a read-only mapping of a part of `path`. The form of a line
 * (proc(5)) is "FROM-TO RIGHTS OFFSET DEVICE INODE PATH", with addresses in base 16 and more spaces before the path.
 */
static bool is_mapping(const char *line, const char *path, uintptr_t *from, uintptr_t *to) {
    char *rest;
    *from = (uintptr_t)strtoull(line, &rest, 16);
    *to = *rest == '-' ? (uintptr_t)strtoull(rest + 1, &rest, 16) : 0;
    const char *name = strchr(rest, '/');
    return strncmp(rest, " r--", 4) == 0 && name && strcmp(name, path) == 0;
}

/* Calls `take` for each part of the file at `path` that this process has mapped for reading, until it returns false. */
static void each_mapping(const char *path, bool (*take)(void *context, uintptr_t from, uintptr_t to), void *context) {
    char *real = realpath(path, NULL);
    FILE *maps = real ? fopen("/proc/self/maps", "re") : NULL;
    char *line = NULL;
    size_t room = 0;
    uintptr_t from;
    uintptr_t to;
    bool more = maps;
    while (more && getline(&line, &room, maps) > 0) {
        line[strcspn(line, "\n")] = '\0';
        more = !is_mapping(line, real, &from, &to) || take(context, from, to);
    }
    if (maps) {
        fclose(maps);
    }
    free(line);
    free(real);
}

static bool drop_pages(void *context, uintptr_t from, uintptr_t to) {
    (void)context;
    madvise((void *)from, (size_t)(to - from), MADV_DONTNEED); /* nothing is lost: the file has the bytes */
    return true;
}

void fm_mapped_file_drop(const char *path) {
    each_mapping(path, drop_pages, NULL);
}

static bool add_range(void *context, uintptr_t from, uintptr_t to) {
    struct fm_huge_pages *pages = context;
    from = (from + pages->size - 1) / pages->size * pages->size;
    if (from + pages->size <= to) {
        pages->ranges[pages->count].from = from;
        pages->ranges[pages->count++].to = to / pages->size * pages->size;
    }
    return pages->count < FM_HUGE_RANGES_MAX;
}

void fm_huge_pages_find(struct fm_huge_pages *pages, const char *path) {
    pages->size = huge_size();
    if (pages->size > 0 && pages->count < FM_HUGE_RANGES_MAX) {
        each_mapping(path, add_range, pages);
    }
}

/*
 * Whether this process has read half of these bytes or more. Documentation/admin-guide/mm/pagemap.rst of the kernel:
 * each page has 8 bytes, whose highest bit is set if the page is present. True if it is not known.
 */
static bool is_used(uintptr_t at, size_t size) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t count = size / page;
    uint64_t *entries = calloc(count, sizeof *entries);
    int fd = entries ? open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC) : -1;
    const size_t len = count * sizeof *entries;
    bool known = fd >= 0 && pread(fd, entries, len, (off_t)(at / page * sizeof *entries)) == (ssize_t)len;
    size_t present = 0;
    for (size_t i = 0; known && i < count; i++) {
        present += entries[i] >> 63;
    }
    if (fd >= 0) {
        close(fd);
    }
    free(entries);
    return !known || present >= count / 2;
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
        uintptr_t at = pages->ranges[last].from;
        if (at >= pages->ranges[last].to) {
            pages->count--;
            continue;
        }
        pages->ranges[last].from += pages->size;
        if (is_used(at, pages->size)) {
            bool moved = move(at, pages->size);
            pages->count = moved ? pages->count : 0;
            return moved;
        }
    }
    return false;
}

#else

#include "base/platform.h"

void fm_mapped_file_drop(const char *path) {
    (void)path;
}

void fm_huge_pages_find(struct fm_huge_pages *pages, const char *path) {
    (void)pages;
    (void)path;
}

bool fm_huge_pages_next(struct fm_huge_pages *pages) {
    (void)pages;
    return false;
}

#endif
