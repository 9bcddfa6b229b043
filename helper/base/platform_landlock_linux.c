/*
 * The sandbox's Landlock part: which files and ports an engine may reach (platform_confine.h: how Landlock denies).
 */
#ifdef __linux__

#include "base/buf.h"
#include "base/platform.h"
#include "base/platform_confine.h"
#include "base/platform_os.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READS (FM_LANDLOCK_READ_FILE | FM_LANDLOCK_READ_DIR)

#define DENIED_MAX ((size_t)1 << 18) /* bytes of paths: some thousand mounts */

static struct fm_landlock_handled what_is_handled(long abi, const struct fm_sandbox_needs *needs, bool may_write,
                                                  bool devices_denied) {
    bool few_ports = !needs->network || needs->client;
    struct fm_landlock_handled handled = {.files = FM_LANDLOCK_EXECUTE};
    if (!may_write) {
        handled.files |= FM_LANDLOCK_ALL_WRITE;
        handled.files |= abi >= FM_LANDLOCK_ABI_TRUNCATE ? FM_LANDLOCK_TRUNCATE : 0;
    }
    handled.files |= devices_denied ? READS : 0;
    handled.files |= abi >= FM_LANDLOCK_ABI_IOCTL ? FM_LANDLOCK_IOCTL_DEV : 0;
    handled.network = abi >= FM_LANDLOCK_ABI_NETWORK && few_ports ? FM_LANDLOCK_TCP : 0;
    handled.scopes = abi >= FM_LANDLOCK_ABI_SCOPES ? FM_LANDLOCK_SCOPES : 0;
    return handled;
}

/* ---- what can't be read: devices, and other processes ---- */

/* The exceptions below /dev and /proc, which stay readable. */
static const char *const allowed[] = {
    "/dev/null",     "/dev/urandom",  "/proc/self", /* maps is needed for stacks, the tasks for sanitizers */
    "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/sys/vm/overcommit_memory",
};

static const char *const denied_types[] = {"devpts", "devtmpfs", "proc"};

static bool is_denied_type(const char *type) {
    for (size_t i = 0; i < sizeof denied_types / sizeof denied_types[0]; i++) {
        size_t len = strlen(denied_types[i]);
        if (strncmp(type, denied_types[i], len) == 0 && type[len] == ' ') {
            return true;
        }
    }
    return false;
}

/* proc(5), mountinfo: white space and backslashes in a path are written as a backslash and three octal digits. */
static void append_path(struct fm_buf *paths, const char *path, size_t len) {
    for (size_t i = 0; i < len; i++) {
        char digits[4] = "";
        bool octal = path[i] == '\\' && i + 3 < len;
        memcpy(digits, octal ? path + i + 1 : "", octal ? 3 : 0);
        fm_buf_append_char(paths, octal ? (char)strtol(digits, NULL, 8) : path[i]);
        i += octal ? 3 : 0;
    }
    fm_buf_append_char(paths, '\0');
}

/*
 * Fills `paths` with the denied folders, each with a NUL after it. These are /dev, /proc, and other places where the
 * same file systems are mounted, for example for a chroot or a container. False when out of memory.
 */
static bool list_denied(struct fm_buf *paths) {
    char *line = NULL;
    size_t size = 0;
    append_path(paths, "/dev", 4);
    append_path(paths, "/proc", 5);
    FILE *mounts = fopen("/proc/self/mountinfo", "re");
    while (mounts && getline(&line, &size, mounts) > 0) {
        int begin = 0;
        int end = 0;
        const char *type = strstr(line, " - ");
        for (int field = 0; field < 4; field++) { /* id, parent, device, root: the mount point is the next */
            begin += (int)strcspn(line + begin, " ");
            begin += line[begin] == ' ';
        }
        end = begin + (int)strcspn(line + begin, " ");
        if (type && is_denied_type(type + 3)) {
            append_path(paths, line + begin, (size_t)(end - begin));
        }
    }
    free(line);
    if (mounts) {
        fclose(mounts);
    }
    return !paths->failed;
}

/*
 * Keeps the descriptors of /proc's files open: the kernel may drop an inode that is not open, and a new inode would not
 * have the rule.
 */
static void allow_exceptions(int ruleset) {
    for (size_t i = 0; i < sizeof allowed / sizeof allowed[0]; i++) {
        int fd = open(allowed[i], O_PATH | O_CLOEXEC);
        if (fd >= 0) {
            fm_landlock_grant(ruleset, fd, READS);
        }
        if (fd >= 0 && strncmp(allowed[i], "/proc/", 6) != 0) {
            close(fd);
        }
    }
}

/* ---- GPUs ---- */

/* Folders of device nodes, and the beginnings of the names of nodes for computing; only digits may follow. */
static const struct {
    const char *folder;
    const char *name;
    bool numbered;
} gpus[] = {
    {"/dev/dri", "renderD", true}, /* for all drivers but NVIDIA's own; nodes such as card0 are for screens */
    {"/dev", "nvidia", true},
    {"/dev", "nvidiactl", false},
    {"/dev", "nvidia-modeset", false},
};

static bool is_gpu(const char *entry, const char *name, bool numbered) {
    size_t len = strlen(name);
    const char *number = entry + len;
    return strncmp(entry, name, len) == 0 && (*number != '\0') == numbered &&
           number[strspn(number, "0123456789")] == '\0';
}

/* Opens a node without following links; a node that is no device is left out. */
static void allow_gpu(int ruleset, int folder, const char *name, uint64_t rights) {
    struct stat info;
    int fd = openat(folder, name, O_PATH | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0 && fstat(fd, &info) == 0 && S_ISCHR(info.st_mode)) {
        fm_landlock_grant(ruleset, fd, rights);
    }
    if (fd >= 0) {
        close(fd);
    }
}

/* Allows the GPUs' nodes that exist now. /dev/dri itself may be listed, because drivers look for their nodes in it. */
static void allow_gpus(int ruleset, const struct fm_landlock_handled *handled) {
    uint64_t rights = handled->files & (FM_LANDLOCK_READ_FILE | FM_LANDLOCK_WRITE | FM_LANDLOCK_IOCTL_DEV);
    for (size_t i = 0; i < sizeof gpus / sizeof gpus[0]; i++) {
        DIR *entries = opendir(gpus[i].folder);
        const struct dirent *entry;
        if (entries && i == 0) {
            fm_landlock_grant(ruleset, dirfd(entries), FM_LANDLOCK_READ_DIR);
        }
        while (entries && (entry = readdir(entries))) {
            if (is_gpu(entry->d_name, gpus[i].name, gpus[i].numbered)) {
                allow_gpu(ruleset, dirfd(entries), entry->d_name, rights);
            }
        }
        if (entries) {
            closedir(entries);
        }
    }
}

/* ---- clients ---- */

/*
 * Folders and files of programs, libraries, the resolution of names, and certificates. A path that does not exist is
 * left out.
 */
static const char *const system_paths[] = {
    "/etc",
    "/usr",
    "/lib",
    "/lib64",
    "/lib32",
    "/nix/store",
    "/gnu/store",
    "/run/nscd",
    "/run/resolvconf",
    "/run/systemd/resolve",
    "/var/lib/ca-certificates",
    "/run/NetworkManager",
    "/sys/devices/system/cpu",
};

static void allow_client(int ruleset, const struct fm_sandbox_client *client, bool network) {
    for (size_t i = 0; i < sizeof system_paths / sizeof system_paths[0]; i++) {
        fm_landlock_grant_path(ruleset, system_paths[i], 0, READS);
    }
    for (size_t i = 0; i < client->file_count; i++) {
        fm_landlock_grant_path(ruleset, client->files[i], 0, READS);
    }
    for (size_t i = 0; i < client->port_count && network; i++) {
        fm_landlock_grant_connect(ruleset, (uint64_t)client->ports[i]);
    }
    if (network) {
        fm_landlock_grant_connect(ruleset, 53); /* DNS */
    }
}

/* ---- the ruleset ---- */

int fm_os_landlock_enter(const struct fm_sandbox_needs *needs, bool may_write, struct fm_sandbox *in_force) {
    long abi = fm_landlock_abi();
    struct fm_buf denied;
    in_force->devices_denied = false;
    in_force->gpus_allowed = false;
    if (abi < 1) {
        return 0;
    }
    fm_buf_init(&denied, DENIED_MAX);
    bool listed = list_denied(&denied);
    struct fm_landlock_handled handled = what_is_handled(abi, needs, may_write, listed);
    int ruleset = fm_landlock_create(&handled);
    if (ruleset >= 0 && listed) {
        if (needs->client) {
            allow_client(ruleset, needs->client, handled.network != 0);
        } else {
            fm_landlock_grant_beside(ruleset, &denied, READS);
        }
        allow_exceptions(ruleset);
    }
    if (ruleset >= 0 && listed && needs->gpus) {
        allow_gpus(ruleset, &handled);
    }
    fm_buf_free(&denied);
    if (ruleset < 0) {
        return 0;
    }
    bool entered = fm_landlock_enter(ruleset);
    close(ruleset);
    in_force->devices_denied = entered && listed;
    in_force->gpus_allowed = in_force->devices_denied && needs->gpus;
    return entered ? (int)abi : 0;
}

#else
typedef int fm_platform_landlock_linux_is_empty;
#endif
