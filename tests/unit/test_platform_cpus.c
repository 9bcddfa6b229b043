/*
 * How many processors this process may use, according to files about quotas and cores. The test writes the files in the
 * kernel's form.
 */
#include "base/platform.h"
#include "base/platform_os.h"
#include "wire.h"

#include <ftw.h>
#include <limits.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[PATH_MAX / 4];

static int make_folder(void **state) {
    (void)state;
    const char *tmp = getenv("TMPDIR");
    snprintf(root, sizeof root, "%.200s/fm-cpus-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *walk) {
    (void)info, (void)type, (void)walk;
    return remove(path);
}

static int remove_folder(void **state) {
    (void)state;
    return nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Writes a file below the folder, and makes the folders on its way. */
static void put(const char *name, const char *text) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = '\0';
        mkdir(path, 0700);
    }
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    fclose(file);
}

struct quota_row {
    const char *max; /* cpu.max of the group; NULL: the file does not exist */
    int expected;
};

static void quotas_of_version_2(void **state) {
    (void)state;
    static const struct quota_row rows[] = {
        {"max 100000\n", 0},
        {"100000 100000\n", 1},
        {"200000 100000\n", 2},
        {"200001 100000\n", 3}, /* rounded up */
        {"1000 100000\n", 1},
        {"150000 50000\n", 3},
        {"9223372036854775807 1\n", INT_MAX},
        /* text that no kernel writes is not a limit */
        {"", 0},
        {"200000", 0},
        {"200000 0\n", 0},
        {"-1 100000\n", 0},
        {"0 100000\n", 0},
        {"200000 -1\n", 0},
        {"nonsense\n", 0},
        {"200000 nonsense\n", 0},
    };
    assert_int_equal(fm_os_quota(root, "0::/a/b\n"), 0);
    for (size_t i = 0; i < COUNT(rows); i++) {
        put("a/b/cpu.max", rows[i].max);
        if (fm_os_quota(root, "0::/a/b\n") != rows[i].expected) {
            fail_msg("\"%s\": %d", rows[i].max, fm_os_quota(root, "0::/a/b\n"));
        }
    }
}

static void the_narrowest_group_counts(void **state) {
    (void)state;
    put("a/b/cpu.max", "400000 100000\n");
    /* the limit of a higher group; the group itself has none */
    assert_int_equal(fm_os_quota(root, "0::/a/b/c/d\n"), 4);
    put("a/cpu.max", "200000 100000\n");
    assert_int_equal(fm_os_quota(root, "0::/a/b/c\n"), 2);
    assert_int_equal(fm_os_quota(root, "0::/elsewhere\n"), 0);
    put("cpu.max", "300000 100000\n"); /* in a container, its group is the root of the mount */
    assert_int_equal(fm_os_quota(root, "0::/elsewhere\n"), 3);
    assert_int_equal(fm_os_quota(root, "0::/\n"), 3);
    assert_int_equal(fm_os_quota(root, "0::/a/b"), 2);
}

static void quotas_of_version_1(void **state) {
    (void)state;
    static const char membership[] = "12:pids:/x\n5:cpu,cpuacct:/docker/1\n1:name=systemd:/x\n0::/y\n";
    put("cpu/docker/1/cpu.cfs_period_us", "100000\n");
    put("cpu/docker/1/cpu.cfs_quota_us", "-1\n");
    assert_int_equal(fm_os_quota(root, membership), 0);
    put("cpu/docker/1/cpu.cfs_quota_us", "250000\n");
    assert_int_equal(fm_os_quota(root, membership), 3);
    assert_int_equal(fm_os_quota(root, "5:cpuset:/docker/1\n"), 0);
    assert_int_equal(fm_os_quota(root, "5:cpuacct:/docker/1\n"), 0);
    assert_int_equal(fm_os_quota(root, "5:cpuacct,cpu:/docker/1\n"), 3);
    assert_int_equal(fm_os_quota(root, "5:cpu:/docker/2\n"), 0);
    put("cpu/cpu.cfs_period_us", "100000\n");
    put("cpu/cpu.cfs_quota_us", "100000\n");
    assert_int_equal(fm_os_quota(root, "5:cpu:/docker/2\n"), 1); /* a container sees its group only at the root */
    assert_int_equal(fm_os_quota(root, membership), 1);
}

static void other_mounts(void **state) {
    (void)state;
    put("unified/g/cpu.max", "500000 100000\n");
    assert_int_equal(fm_os_quota(root, "0::/g\n"), 5);
    put("cpu,cpuacct/g/cpu.cfs_quota_us", "400000\n");
    put("cpu,cpuacct/g/cpu.cfs_period_us", "100000\n");
    assert_int_equal(fm_os_quota(root, "3:cpu,cpuacct:/g\n0::/g\n"), 4);
}

static void memory(void **state) {
    (void)state;
    put("a/b/memory.max", "max\n");
    assert_int_equal(fm_os_memory_limit(root, "0::/a/b\n"), 0);
    put("a/memory.max", "8589934592\n");
    assert_int_equal(fm_os_memory_limit(root, "0::/a/b\n"), 8589934592);
    put("memory/docker/1/memory.limit_in_bytes", "4294967296\n");
    assert_int_equal(fm_os_memory_limit(root, "4:memory:/docker/1\n"), 4294967296);
    assert_int_equal(fm_os_memory_limit(root, "4:cpu:/docker/1\n"), 0);
    put("memory/memory.limit_in_bytes", "9223372036854771712\n"); /* the value of version 1 for no limit */
    assert_int_equal(fm_os_memory_limit(root, "4:memory:/docker/1\n"), 4294967296);
    assert_true(fm_memory_limit() > 0);
}

static void what_is_no_membership(void **state) {
    (void)state;
    static const char *const rows[] = {
        "", "\n", ":", "::", "0", "0:", "0::", "5:c", "5:cpu", "5:cpu:", "5:,,:/g", "a:b:c\n\n:::::\n"};
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(fm_os_quota(root, rows[i]), 0);
    }
    static char longest[3 * PATH_MAX] = "0::/";
    memset(longest + 4, 'x', sizeof longest - 5);
    assert_int_equal(fm_os_quota(root, longest), 0);
}

static void cores(void **state) {
    (void)state;
    static const struct {
        const char *allowed; /* bits for eight processors */
        int expected;
    } rows[] = {
        {"11111111", 5}, {"10000000", 1}, {"11000000", 2}, {"10001000", 1}, {"00001000", 1},
        {"01000100", 1}, {"00110000", 1}, {"00010000", 1}, {"00000011", 2}, {"00000000", 0},
    };
    /* 0 and 4, 1 and 5, 2 and 3 are cores; the files say nothing about 6 and 7 */
    put("cpu0/topology/thread_siblings_list", "0,4\n");
    put("cpu4/topology/thread_siblings_list", "0,4\n");
    put("cpu1/topology/thread_siblings_list", "1,5\n");
    put("cpu5/topology/thread_siblings_list", "1,5\n");
    put("cpu2/topology/thread_siblings_list", "2-3\n");
    put("cpu3/topology/thread_siblings_list", "2-3\n");
    put("cpu7/topology/thread_siblings_list", "");
    for (size_t i = 0; i < COUNT(rows); i++) {
        bool allowed[8];
        for (size_t cpu = 0; cpu < COUNT(allowed); cpu++) {
            allowed[cpu] = rows[i].allowed[cpu] == '1';
        }
        if (fm_os_cores(root, allowed, COUNT(allowed)) != rows[i].expected) {
            fail_msg("%s: %d", rows[i].allowed, fm_os_cores(root, allowed, COUNT(allowed)));
        }
    }
}

static void affinity(void **state) {
    (void)state;
    cpu_set_t before;
    cpu_set_t one;
    struct fm_processors all;
    struct fm_processors narrow;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    fm_processors(&all);
    assert_true(all.cores >= 1 && all.cores <= all.count && all.count <= CPU_COUNT(&before));
    CPU_ZERO(&one);
    for (int cpu = 0; CPU_COUNT(&one) == 0; cpu++) {
        if (CPU_ISSET(cpu, &before)) {
            CPU_SET(cpu, &one);
        }
    }
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    fm_processors(&narrow);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    assert_int_equal(narrow.count, 1);
    assert_int_equal(narrow.cores, 1);
}

int main(void) {
#define IN_A_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(quotas_of_version_2),
        IN_A_FOLDER(the_narrowest_group_counts),
        IN_A_FOLDER(quotas_of_version_1),
        IN_A_FOLDER(other_mounts),
        IN_A_FOLDER(what_is_no_membership),
        IN_A_FOLDER(cores),
        IN_A_FOLDER(memory),
        cmocka_unit_test(affinity),
    };
    return cmocka_run_group_tests_name("platform_cpus", tests, NULL, NULL);
}
