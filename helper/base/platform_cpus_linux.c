/*
 * fm_processors on Linux: the affinity (sched_getaffinity(2), which includes a cpuset), limited by the CPU quota of the
 * cgroups (cgroup-v2.rst, cpu.max; sched-bwc.rst, cpu.cfs_quota_us), and the cores of sysfs (cputopology.rst).
 * fm_memory_limit: the machine's memory, limited by the cgroups too (memory.max; memory.limit_in_bytes).
 */
#ifdef __linux__

#include "base/file.h"
#include "base/platform.h"
#include "base/platform_os.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CPUS_MAX 8192  /* NR_CPUS of the largest kernels */
#define TEXT_MAX 65536 /* bytes of /proc/self/cgroup, and of a file of sysfs */
#define BASE     10    /* the base of the numbers in all these files */
#define CGROUPS  "/sys/fs/cgroup"
#define TOPOLOGY "/sys/devices/system/cpu"

/* The contents of the file, NUL-terminated; NULL: it can't be read. */
static const char *read_text(const char *path, struct fm_buf *text) {
    struct fm_error ignored;
    fm_buf_reset(text);
    bool got = fm_file_read(path, text, &ignored) == FM_OK;
    fm_buf_append(text, "", 1);
    return got && !text->failed ? text->data : NULL;
}

/* ---- the limits of cgroups ---- */

/* What a controller of cgroups limits. */
struct controller {
    const char *name;
    /* Returns the limit of the group whose folder is `dir` (version 1 or 2), or `known` if that is less. */
    int64_t (*limit_at)(const char *dir, int64_t known, struct fm_buf *text);
};

/* Returns how many processors `quota` in each `period` allows, rounded up, or `known` if that is less; 0: no limit. */
static int64_t fewer(int64_t known, int64_t quota, int64_t period) {
    if (quota <= 0 || period <= 0) {
        return known;
    }
    int64_t paid = (quota - 1) / period + 1;
    return known == 0 || paid < known ? paid : known;
}

/* The number in the file DIR/NAME; 0 if there is none. */
static int64_t read_number(const char *dir, const char *name, struct fm_buf *text) {
    char path[PATH_MAX];
    int len = snprintf(path, sizeof path, "%s/%s", dir, name);
    const char *number = len < (int)sizeof path ? read_text(path, text) : NULL;
    return number ? strtoll(number, NULL, BASE) : 0;
}

/* "max" in cpu.max is not a number: no limit. */
static int64_t cpu_limit_at(const char *dir, int64_t known, struct fm_buf *text) {
    int64_t quota = read_number(dir, "cpu.max", text);
    const char *space = quota > 0 ? strchr(text->data, ' ') : NULL;
    known = fewer(known, quota, space ? strtoll(space, NULL, BASE) : 0);
    quota = read_number(dir, "cpu.cfs_quota_us", text);
    return quota > 0 ? fewer(known, quota, read_number(dir, "cpu.cfs_period_us", text)) : known;
}

/* Returns bytes. "max" in memory.max is no limit either; version 1 has a number beyond all memory instead. */
static int64_t memory_limit_at(const char *dir, int64_t known, struct fm_buf *text) {
    known = fewer(known, read_number(dir, "memory.max", text), 1);
    return fewer(known, read_number(dir, "memory.limit_in_bytes", text), 1);
}

static const struct controller cpu_controller = {"cpu", cpu_limit_at};
static const struct controller memory_controller = {"memory", memory_limit_at};

/*
 * Returns the least limit of `group` and all its parents. In a container their folders may be missing: then the mount
 * itself is the group.
 */
static int64_t limit_of(const struct controller *controller, const char *mount, const char *group, size_t len,
                        int64_t known, struct fm_buf *text) {
    char dir[PATH_MAX];
    char *slash;
    if (snprintf(dir, sizeof dir, "%s%.*s", mount, (int)len, group) >= (int)sizeof dir) {
        return known;
    }
    known = controller->limit_at(dir, known, text);
    while ((slash = strrchr(dir + strlen(mount), '/'))) {
        *slash = '\0';
        known = controller->limit_at(dir, known, text);
    }
    return known;
}

/* Whether `name` is in `controllers`, a list with commas. */
static bool has(const char *controllers, size_t len, const char *name) {
    for (const char *at = controllers; at < controllers + len; at += strcspn(at, ",:") + 1) {
        if (strcspn(at, ",:") == strlen(name) && strncmp(at, name, strlen(name)) == 0) {
            return true;
        }
    }
    return false;
}

/* Returns the limit of a line of the membership: HIERARCHY:CONTROLLERS:GROUP. In version 2, CONTROLLERS is empty. */
static int64_t limit_of_line(const struct controller *controller, const char *root, const char *line, size_t len,
                             int64_t known, struct fm_buf *text) {
    char mount[PATH_MAX];
    const char *controllers = memchr(line, ':', len);
    size_t rest = controllers ? len - (size_t)(controllers + 1 - line) : 0;
    const char *group = controllers ? memchr(controllers + 1, ':', rest) : NULL;
    if (!group) {
        return known;
    }
    controllers++;
    size_t named = (size_t)(group++ - controllers);
    size_t group_len = (size_t)(line + len - group);
    if (named == 0) {
        known = limit_of(controller, root, group, group_len, known, text);
        snprintf(mount, sizeof mount, "%s/unified", root); /* version 2 mounted beside version 1 */
        return limit_of(controller, mount, group, group_len, known, text);
    }
    if (!has(controllers, named, controller->name)) {
        return known;
    }
    snprintf(mount, sizeof mount, "%s/%s", root, controller->name);
    known = limit_of(controller, mount, group, group_len, known, text);
    snprintf(mount, sizeof mount, "%s/%.*s", root, (int)named, controllers); /* the folder, if it has no link */
    return limit_of(controller, mount, group, group_len, known, text);
}

static int64_t limit_in(const struct controller *controller, const char *root, const char *membership) {
    struct fm_buf text;
    int64_t known = 0;
    fm_buf_init(&text, TEXT_MAX);
    for (const char *line = membership; *line;) {
        size_t len = strcspn(line, "\n");
        known = limit_of_line(controller, root, line, len, known, &text);
        line += len + (line[len] == '\n');
    }
    fm_buf_free(&text);
    return known;
}

int fm_os_quota(const char *root, const char *membership) {
    int64_t quota = limit_in(&cpu_controller, root, membership);
    return quota < INT_MAX ? (int)quota : INT_MAX;
}

int64_t fm_os_memory_limit(const char *root, const char *membership) {
    return limit_in(&memory_controller, root, membership);
}

/* ---- cores ---- */

/* `list` ("0,4" or "0-1") names the hyper-threads of one core. True when one of them is allowed and below `cpu`. */
static bool has_lower(const char *list, const bool *allowed, size_t cpu) {
    char *end;
    for (const char *at = list; *at >= '0' && *at <= '9'; at = *end == ',' ? end + 1 : end) {
        unsigned long first = strtoul(at, &end, BASE);
        unsigned long last = *end == '-' ? strtoul(end + 1, &end, BASE) : first;
        for (unsigned long i = first; i <= last && i < cpu; i++) {
            if (allowed[i]) {
                return true;
            }
        }
    }
    return false;
}

int fm_os_cores(const char *topology, const bool *allowed, size_t count) {
    struct fm_buf text;
    int cores = 0;
    fm_buf_init(&text, TEXT_MAX);
    for (size_t cpu = 0; cpu < count; cpu++) {
        char path[PATH_MAX];
        if (allowed[cpu]) {
            snprintf(path, sizeof path, "%s/cpu%zu/topology/thread_siblings_list", topology, cpu);
            const char *list = read_text(path, &text);
            cores += !list || !has_lower(list, allowed, cpu);
        }
    }
    fm_buf_free(&text);
    return cores;
}

/* ---- this process ---- */

/* Fills `allowed` and returns the number of processors in it; 0 when the kernel does not say. */
static int read_affinity(bool *allowed) {
    cpu_set_t sets[CPUS_MAX / CPU_SETSIZE];
    int count = 0;
    memset(sets, 0, sizeof sets);
    bool known = sched_getaffinity(0, sizeof sets, sets) == 0;
    for (size_t cpu = 0; cpu < CPUS_MAX; cpu++) {
        allowed[cpu] = known && CPU_ISSET_S(cpu, sizeof sets, sets);
        count += allowed[cpu];
    }
    return count;
}

static int smaller(int count, int limit) {
    return limit > 0 && limit < count ? limit : count;
}

void fm_processors(struct fm_processors *processors) {
    bool allowed[CPUS_MAX];
    struct fm_buf text;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    int count = read_affinity(allowed);
    int cores = fm_os_cores(TOPOLOGY, allowed, CPUS_MAX);
    count = count > 0 ? count : online > 0 ? (int)online : 1;
    cores = cores > 0 ? cores : count;
    fm_buf_init(&text, TEXT_MAX);
    const char *membership = read_text("/proc/self/cgroup", &text);
    int quota = membership ? fm_os_quota(CGROUPS, membership) : 0;
    fm_buf_free(&text);
    *processors = (struct fm_processors){.count = smaller(count, quota), .cores = smaller(cores, quota)};
}

int64_t fm_memory_limit(void) {
    struct fm_buf text;
    int64_t machine = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    fm_buf_init(&text, TEXT_MAX);
    const char *membership = read_text("/proc/self/cgroup", &text);
    int64_t limit = membership ? fm_os_memory_limit(CGROUPS, membership) : 0;
    fm_buf_free(&text);
    return limit > 0 && limit < machine ? limit : machine;
}

#else
typedef int fm_platform_cpus_linux_is_empty;
#endif
