/*
 * The sandbox's Landlock part (Documentation/userspace-api/landlock.rst; our numbers, because headers may be older than
 * the kernel). A right that the ruleset handles is denied wherever no rule grants it. Landlock can only grant: to deny
 * a folder, the rules grant everything beside it, and beside each folder above it.
 */
#ifdef __linux__

#include "base/buf.h"
#include "base/platform.h"
#include "base/platform_os.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NR_LANDLOCK_CREATE_RULESET 444
#define NR_LANDLOCK_ADD_RULE       445
#define NR_LANDLOCK_RESTRICT_SELF  446
#define LANDLOCK_VERSION           1u
#define LANDLOCK_PATH_BENEATH      1
#define LANDLOCK_NET_PORT          2

#define LANDLOCK_EXECUTE   (1u << 0)
#define LANDLOCK_WRITE     (1u << 1)
#define LANDLOCK_READ_FILE (1u << 2)
#define LANDLOCK_READ_DIR  (1u << 3)
#define LANDLOCK_ALL_WRITE (LANDLOCK_WRITE | 0x1ff0u) /* write_file, remove_dir to make_sym */
#define LANDLOCK_TRUNCATE  (1u << 14)
#define LANDLOCK_IOCTL_DEV (1u << 15)
#define LANDLOCK_TCP       3u /* bind, connect */
#define LANDLOCK_CONNECT   2u
#define LANDLOCK_SCOPES    3u /* abstract UNIX sockets, signals */

enum { LANDLOCK_ABI_TRUNCATE = 3, LANDLOCK_ABI_NETWORK, LANDLOCK_ABI_IOCTL, LANDLOCK_ABI_SCOPE };

#define DENIED_MAX ((size_t)1 << 18) /* bytes of paths: some thousand mounts */

struct landlock_rules {
    uint64_t files;
    uint64_t network;
    uint64_t scopes;
};

struct landlock_path {
    uint64_t rights;
    int32_t fd;
} __attribute__((packed));

struct landlock_port {
    uint64_t rights;
    uint64_t port;
};

static struct landlock_rules landlock_rules(long abi, const struct fm_sandbox_needs *needs, bool may_write,
                                            bool devices_denied) {
    bool few_ports = !needs->network || needs->client;
    struct landlock_rules rules = {.files = LANDLOCK_EXECUTE};
    if (!may_write) {
        rules.files |= LANDLOCK_ALL_WRITE;
        rules.files |= abi >= LANDLOCK_ABI_TRUNCATE ? LANDLOCK_TRUNCATE : 0;
    }
    rules.files |= devices_denied ? LANDLOCK_READ_FILE | LANDLOCK_READ_DIR : 0;
    rules.files |= abi >= LANDLOCK_ABI_IOCTL ? LANDLOCK_IOCTL_DEV : 0;
    rules.network = abi >= LANDLOCK_ABI_NETWORK && few_ports ? LANDLOCK_TCP : 0;
    rules.scopes = abi >= LANDLOCK_ABI_SCOPE ? LANDLOCK_SCOPES : 0;
    return rules;
}

/* ---- what can't be read: devices, and other processes ---- */

/* The exceptions below /dev and /proc, which stay readable. */
static const char *const allowed[] = {
    "/dev/null",     "/dev/urandom",  "/proc/self", /* maps, for stacks; the tasks, for sanitizers */
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

/* proc(5), mountinfo: in a path, white space and backslashes are written as a backslash and three octal digits. */
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
 * Fills `paths` with the denied folders, each ending with a NUL: /dev, /proc, and other places where the same file
 * systems are mounted, as for a chroot or a container. False when out of memory.
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

enum fate { ALLOWED, DENIED, IN_PART };

/* The fate of `path`, which has no slash at its end. */
static enum fate fate_of(const struct fm_buf *denied, const char *path) {
    enum fate fate = ALLOWED;
    size_t len = strlen(path);
    for (size_t at = 0; at < denied->len; at += strlen(denied->data + at) + 1) {
        const char *entry = denied->data + at;
        if (strcmp(entry, path) == 0) {
            return DENIED;
        }
        fate = strncmp(entry, path, len) == 0 && entry[len] == '/' ? IN_PART : fate;
    }
    return fate;
}

/* Grants `rights`, all of which the ruleset handles. `fd`: what they are about. */
static void grant(int ruleset, int fd, uint64_t rights) {
    struct landlock_path rule = {.rights = rights, .fd = fd};
    syscall(NR_LANDLOCK_ADD_RULE, ruleset, LANDLOCK_PATH_BENEATH, &rule, 0u);
}

/* Returns the descriptor of the path that the rule is about, or -1; the caller closes it. */
static int allow(int ruleset, const char *path, int flags) {
    struct stat info;
    int fd = open(path, O_PATH | O_CLOEXEC | flags);
    if (fd < 0 || fstat(fd, &info) != 0) {
        return fd;
    }
    if (!S_ISLNK(info.st_mode)) { /* the target of a link has its own rule, or none */
        grant(ruleset, fd, LANDLOCK_READ_FILE | (S_ISDIR(info.st_mode) ? LANDLOCK_READ_DIR : 0u));
    }
    return fd;
}

static void allow_beside(int ruleset, const struct fm_buf *denied, const char *folder);

static void allow_entry(int ruleset, const struct fm_buf *denied, const char *path) {
    enum fate fate = fate_of(denied, path);
    int fd = fate == ALLOWED ? allow(ruleset, path, O_NOFOLLOW) : -1;
    if (fd >= 0) {
        close(fd);
    }
    if (fate == IN_PART) {
        allow_beside(ruleset, denied, path);
    }
}

/*
 * Grants all entries of `folder` ("" is the root) except the denied ones. A folder that can't be listed stays denied.
 */
static void allow_beside(int ruleset, const struct fm_buf *denied, const char *folder) {
    DIR *entries = opendir(*folder ? folder : "/");
    const struct dirent *entry;
    while (entries && (entry = readdir(entries))) {
        char path[PATH_MAX];
        int len = snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        bool self = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
        if (!self && len < (int)sizeof path) {
            allow_entry(ruleset, denied, path);
        }
    }
    if (entries) {
        closedir(entries);
    }
}

/*
 * These descriptors stay open: the kernel may drop a file of /proc that nobody has open, and a new one would not have
 * the rule.
 */
static void allow_exceptions(int ruleset) {
    for (size_t i = 0; i < sizeof allowed / sizeof allowed[0]; i++) {
        int fd = allow(ruleset, allowed[i], 0);
        if (fd >= 0 && strncmp(allowed[i], "/proc/", 6) != 0) {
            close(fd);
        }
    }
}

/* ---- GPUs ---- */

/* Folders of nodes, and how the names of those begin by which a program computes; digits follow, or nothing. */
static const struct {
    const char *folder;
    const char *name;
    bool numbered;
} gpus[] = {
    {"/dev/dri", "renderD", true}, /* all but NVIDIA's own driver; card0 and the like are for screens */
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

/* Opens without following links; a node that is no device is left out. */
static void allow_gpu(int ruleset, int folder, const char *name, uint64_t rights) {
    struct stat info;
    int fd = openat(folder, name, O_PATH | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0 && fstat(fd, &info) == 0 && S_ISCHR(info.st_mode)) {
        grant(ruleset, fd, rights);
    }
    if (fd >= 0) {
        close(fd);
    }
}

/* The nodes that are there now. /dev/dri itself may be listed: drivers look for their nodes in it. */
static void allow_gpus(int ruleset, const struct landlock_rules *rules) {
    uint64_t rights = rules->files & (LANDLOCK_READ_FILE | LANDLOCK_WRITE | LANDLOCK_IOCTL_DEV);
    for (size_t i = 0; i < sizeof gpus / sizeof gpus[0]; i++) {
        DIR *entries = opendir(gpus[i].folder);
        const struct dirent *entry;
        if (entries && i == 0) {
            grant(ruleset, dirfd(entries), LANDLOCK_READ_DIR);
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

/* Programs, libraries, how names are resolved, whom to trust. A path that is not there is left out. */
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

static void allow_path(int ruleset, const char *path) {
    int fd = path ? allow(ruleset, path, 0) : -1;
    if (fd >= 0) {
        close(fd);
    }
}

static void allow_client(int ruleset, const struct fm_sandbox_client *client, bool network) {
    struct landlock_port rule = {.rights = LANDLOCK_CONNECT, .port = 53};
    for (size_t i = 0; i < sizeof system_paths / sizeof system_paths[0]; i++) {
        allow_path(ruleset, system_paths[i]);
    }
    for (size_t i = 0; i < client->file_count; i++) {
        allow_path(ruleset, client->files[i]);
    }
    for (size_t i = 0; i <= client->port_count && network; i++) {
        syscall(NR_LANDLOCK_ADD_RULE, ruleset, LANDLOCK_NET_PORT, &rule, 0u);
        rule.port = i < client->port_count ? (uint64_t)client->ports[i] : rule.port;
    }
}

/* ---- the ruleset ---- */

int fm_os_landlock_enter(const struct fm_sandbox_needs *needs, bool may_write, struct fm_sandbox *in_force) {
    long abi = syscall(NR_LANDLOCK_CREATE_RULESET, NULL, (size_t)0, LANDLOCK_VERSION);
    struct fm_buf denied;
    in_force->devices_denied = false;
    in_force->gpus_allowed = false;
    if (abi < 1) {
        return 0;
    }
    fm_buf_init(&denied, DENIED_MAX);
    bool listed = list_denied(&denied);
    struct landlock_rules rules = landlock_rules(abi, needs, may_write, listed);
    /* An older kernel accepts fields that it does not know as long as they are 0. */
    long ruleset = syscall(NR_LANDLOCK_CREATE_RULESET, &rules, sizeof rules, 0u);
    if (ruleset >= 0 && listed) {
        if (needs->client) {
            allow_client((int)ruleset, needs->client, rules.network != 0);
        } else {
            allow_beside((int)ruleset, &denied, "");
        }
        allow_exceptions((int)ruleset);
    }
    if (ruleset >= 0 && listed && needs->gpus) {
        allow_gpus((int)ruleset, &rules);
    }
    fm_buf_free(&denied);
    if (ruleset < 0) {
        return 0;
    }
    bool entered = syscall(NR_LANDLOCK_RESTRICT_SELF, (int)ruleset, 0u) == 0;
    close((int)ruleset);
    in_force->devices_denied = entered && listed;
    in_force->gpus_allowed = in_force->devices_denied && needs->gpus;
    return entered ? (int)abi : 0;
}

#else
typedef int fm_platform_landlock_linux_is_empty;
#endif
