/*
 * The sandbox of a command: no new privileges, Landlock for files (Documentation/userspace-api/landlock.rst; our own
 * numbers, as headers may be older than the kernel) and seccomp for what Landlock does not see. Landlock can only
 * grant: to hide a folder, the rules grant everything beside it, and beside each folder above it, as it is at this
 * moment; so nothing that appears there later is granted. A part that the kernel lacks is an error, never a weaker
 * sandbox.
 */
#include "tools/runner/sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NR_CREATE_RULESET 444
#define NR_ADD_RULE       445
#define NR_RESTRICT_SELF  446
#define ASK_VERSION       1u
#define PATH_BENEATH      1

#define EXECUTE   (1u << 0)
#define READ_FILE (1u << 2)
#define READ_DIR  (1u << 3)
#define READS     (EXECUTE | READ_FILE | READ_DIR)
#define WRITES    ((1u << 1) | 0x1ff0u) /* write_file, remove_dir to make_sym */
#define REFER     (1u << 13)
#define TRUNCATE  (1u << 14)
#define ON_FILES  (EXECUTE | READ_FILE | (1u << 1) | TRUNCATE)
#define SCOPES    3u /* abstract UNIX sockets, signals */

enum { ABI_REFER = 2, ABI_TRUNCATE, ABI_SCOPES = 6 };

struct ruleset_attributes {
    uint64_t files;
    uint64_t network;
    uint64_t scopes;
};

struct path_rule {
    uint64_t rights;
    int32_t fd;
} __attribute__((packed));

struct ruleset {
    int fd;
    uint64_t writes;     /* those that this kernel knows */
    char *const *hidden; /* absolute and without links, NULL-terminated */
};

/* ---- what is hidden ---- */

/* Where the path leads, as far as it exists: the last links of what does not are those of its folder. */
static char *resolve(const char *path) {
    char *real = realpath(path, NULL);
    const char *slash = strrchr(path, '/');
    if (real || !slash || slash == path) {
        return real ? real : strdup(path);
    }
    char *above = strndup(path, (size_t)(slash - path));
    char *folder = above ? resolve(above) : NULL;
    if (!folder || asprintf(&real, "%s%s", strcmp(folder, "/") == 0 ? "" : folder, slash) < 0) {
        real = NULL;
    }
    free(above);
    free(folder);
    return real;
}

/* The name itself, without links before it: a link of that name must not be replaced. */
static char *resolve_name(const char *path) {
    const char *slash = strrchr(path, '/');
    char *above = slash && slash != path ? strndup(path, (size_t)(slash - path)) : NULL;
    char *folder = above ? resolve(above) : NULL;
    char *name = NULL;
    if (!above) {
        name = strdup(path);
    } else if (!folder || asprintf(&name, "%s%s", strcmp(folder, "/") == 0 ? "" : folder, slash) < 0) {
        name = NULL;
    }
    free(above);
    free(folder);
    return name;
}

/*
 * The list of a job as it is on the disk now, and /dev: a disk, a microphone or a keyboard is a file there, and the few
 * that programs need are granted one by one. It lives as long as the process. NULL: no memory.
 */
static char **find_hidden(char *const *named) {
    size_t count = 0;
    while (named[count]) {
        count++;
    }
    char **result = calloc(2 * count + 2, sizeof *result);
    size_t taken = 0;
    bool whole = result && (result[taken++] = strdup("/dev"));
    for (size_t i = 0; whole && i < count; i++) {
        char *name = resolve_name(named[i]);
        char *real = resolve(named[i]);
        whole = name && real;
        for (char **one = (char *[]){name, real, NULL}; whole && *one; one++) {
            if (strcmp(*one, "/") != 0) {
                result[taken++] = *one;
            }
        }
    }
    return whole ? result : NULL;
}

/* ---- Landlock ---- */

/* Grants rights below what `fd` is; on what is no folder, those that files have. */
static bool grant(const struct ruleset *rules, int fd, uint64_t rights) {
    struct stat info;
    if (fstat(fd, &info) != 0) {
        return false;
    }
    struct path_rule rule = {.rights = S_ISDIR(info.st_mode) ? rights : rights & ON_FILES, .fd = fd};
    return syscall(NR_ADD_RULE, rules->fd, PATH_BENEATH, &rule, 0u) == 0;
}

static bool grant_path(const struct ruleset *rules, const char *path, uint64_t rights, int flags) {
    int fd = open(path, O_PATH | O_CLOEXEC | flags);
    bool granted = fd >= 0 && grant(rules, fd, rights);
    if (fd >= 0) {
        close(fd);
    }
    return granted;
}

enum fate { SHOWN, HIDDEN, IN_PART };

/* `path` has no slash at its end; "" is the root. */
static enum fate fate_of(const struct ruleset *rules, const char *path) {
    enum fate fate = SHOWN;
    size_t len = strlen(path);
    for (size_t i = 0; rules->hidden[i]; i++) {
        const char *entry = rules->hidden[i];
        if (strcmp(entry, path) == 0) {
            return HIDDEN;
        }
        fate = strncmp(entry, path, len) == 0 && entry[len] == '/' ? IN_PART : fate;
    }
    return fate;
}

/*
 * Grants reading of all that is in `folder` but for the hidden. Of a folder that has hidden ones below it, the names
 * can be listed; a right to list is about all below.
 */
static void show_beside(const struct ruleset *rules, const char *folder) {
    DIR *entries = opendir(*folder ? folder : "/");
    const struct dirent *entry;
    while (entries && (entry = readdir(entries))) {
        char path[PATH_MAX];
        int len = snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 || len >= (int)sizeof path) {
            continue;
        }
        enum fate fate = fate_of(rules, path);
        if (fate == IN_PART) {
            show_beside(rules, path);
        } else if (fate == SHOWN) {
            grant_path(rules, path, READS, O_NOFOLLOW); /* what a link leads to has a rule of its own, or none */
        }
    }
    if (entries) {
        closedir(entries);
    }
}

/* The folder must not hold hidden ones, nor lie in one: a right to write in it would be one to write there. */
static const char *conflict(const struct ruleset *rules, int folder) {
    static char path[PATH_MAX];
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    ssize_t len = readlink(link, path, sizeof path - 1);
    path[len > 0 ? len : 0] = '\0';
    size_t size = strcmp(path, "/") == 0 ? 0 : strlen(path);
    for (size_t i = 0; rules->hidden[i]; i++) {
        const char *entry = rules->hidden[i];
        size_t other = strlen(entry);
        if ((strncmp(entry, path, size) == 0 && (entry[size] == '/' || entry[size] == '\0')) ||
            (strncmp(path, entry, other) == 0 && path[other] == '/')) {
            return entry;
        }
    }
    return NULL;
}

static bool close_files(const struct gw_job *job, int folder, long abi, char *problem, size_t size) {
    struct ruleset rules = {.hidden = find_hidden(job->hidden), .writes = WRITES};
    if (!rules.hidden) {
        snprintf(problem, size, "no memory is left");
        return false;
    }
    rules.writes |= (abi >= ABI_REFER ? REFER : 0) | (abi >= ABI_TRUNCATE ? TRUNCATE : 0);
    struct ruleset_attributes attributes = {.files = READS | rules.writes, .scopes = abi >= ABI_SCOPES ? SCOPES : 0};
    const char *hidden = job->folder_writable ? conflict(&rules, folder) : NULL;
    if (hidden) {
        snprintf(problem, size,
                 "the working folder and %s, which tools.sandbox hides, lie in each other; choose another "
                 "working folder",
                 hidden);
        return false;
    }
    rules.fd = (int)syscall(NR_CREATE_RULESET, &attributes, sizeof attributes, 0u);
    bool granted = rules.fd >= 0 && grant_path(&rules, "/", READ_DIR, 0);
    show_beside(&rules, "");
    static const char *const devices[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"};
    for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++) {
        grant_path(&rules, devices[i], READS | (1u << 1), 0);
    }
    if (job->pipes &&
        getuid() != 0) { /* Chromium's own sandbox maps users in /proc/PID; root could change more there */
        grant_path(&rules, "/proc", READS | (1u << 1), 0);
    }
    if (job->folder_writable) {
        granted = granted && grant(&rules, folder, READS | rules.writes);
    }
    if (job->private_folder) {
        granted = granted && grant_path(&rules, job->private_folder, READS | rules.writes, O_NOFOLLOW);
    }
    bool closed = granted && syscall(NR_RESTRICT_SELF, rules.fd, 0u) == 0;
    if (!closed) {
        snprintf(problem, size, "Landlock refuses the rules of tools.sandbox: %s", strerror(errno));
    }
    close(rules.fd);
    return closed;
}

/* ---- seccomp ---- */

#if defined(__x86_64__)
#define OUR_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OUR_ARCH AUDIT_ARCH_AARCH64
#endif

#define NR_IO_URING_SETUP    425
#define NR_OPENAT2           437
#define TYPE_OF_SOCKET       0xfu /* the rest are flags: SOCK_TYPE_MASK of the kernel */
#define FAIL(number)         (SECCOMP_RET_ERRNO | (uint32_t)(number))
#define LOAD(offset)         BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(offset))
#define ANSWER(action)       BPF_STMT(BPF_RET | BPF_K, action)
/* The call `number` gets the answer. */
#define DENY(number, action) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(number), 0, 1), ANSWER(action)
#define ARGUMENT(index)      (offsetof(struct seccomp_data, args) + 8u * (index))
/* The call `number` with O_TRUNC among the flags that its argument holds is denied. */
#define DENY_TRUNCATION(number, index)                                                                                 \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(number), 0, 5), LOAD(ARGUMENT(index)),                              \
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, O_TRUNC | O_ACCMODE),                                                      \
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, O_TRUNC | O_RDONLY, 0, 1), ANSWER(FAIL(EACCES)), ANSWER(SECCOMP_RET_ALLOW)

#ifdef OUR_ARCH
static bool load_filter(const struct sock_filter *code, size_t count) {
    const struct sock_fprog program = {.len = (unsigned short)count, .filter = (struct sock_filter *)code};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

/*
 * A pair of stream sockets, which programs use as pipes, stays a pair. Others can be sent to, or connected to, whoever
 * has a name: those of datagrams (also as SOCK_RAW, unix(7)) and those of other families.
 */
#define DENY_PAIRS                                                                                                     \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socketpair, 0, 8), LOAD(ARGUMENT(0)),                                      \
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, 0, 4), LOAD(ARGUMENT(1)),                                         \
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, TYPE_OF_SOCKET), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SOCK_STREAM, 2, 0),   \
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SOCK_SEQPACKET, 1, 0), ANSWER(FAIL(EPERM)), ANSWER(SECCOMP_RET_ALLOW)

#define START                                                                                                          \
    LOAD(offsetof(struct seccomp_data, arch)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OUR_ARCH, 1, 0),                    \
        ANSWER(SECCOMP_RET_KILL_PROCESS), LOAD(offsetof(struct seccomp_data, nr)),                                     \
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000u, 0, 1), ANSWER(SECCOMP_RET_KILL_PROCESS),                      \
        DENY(NR_IO_URING_SETUP, FAIL(EPERM))
#define KERNEL_KEYS DENY(SYS_add_key, FAIL(EPERM)), DENY(SYS_request_key, FAIL(EPERM)), DENY(SYS_keyctl, FAIL(EPERM))

/*
 * io_uring opens files and sockets without the system calls that a filter sees. The kernel's keys are those of the
 * session and the user, as the files are that are hidden.
 */
static bool close_calls(bool sockets_denied, bool truncation_seen) {
    static const struct sock_filter basic[] = {START, KERNEL_KEYS, ANSWER(SECCOMP_RET_ALLOW)};
    static const struct sock_filter sockets[] = {START, DENY(SYS_socket, FAIL(EPERM)), DENY_PAIRS,
                                                 ANSWER(SECCOMP_RET_ALLOW)};
    static const struct sock_filter truncation[] = {
        START,
        DENY(SYS_truncate, FAIL(EACCES)),
        DENY(NR_OPENAT2, FAIL(ENOSYS)), /* its flags are in memory, where a filter can't look */
#ifdef SYS_open
        DENY_TRUNCATION(SYS_open, 1),
#endif
        DENY_TRUNCATION(SYS_openat, 2),
        ANSWER(SECCOMP_RET_ALLOW),
    };
    return load_filter(basic, sizeof basic / sizeof basic[0]) &&
           (!sockets_denied || load_filter(sockets, sizeof sockets / sizeof sockets[0])) &&
           (truncation_seen || load_filter(truncation, sizeof truncation / sizeof truncation[0]));
}
#else
static bool close_calls(bool sockets_denied, bool truncation_seen) {
    (void)sockets_denied;
    (void)truncation_seen;
    errno = ENOSYS;
    return false; /* the filter has not been tried on this architecture */
}
#endif

/* Root, too, then has no more rights than the owner of its files. */
static bool drop_capabilities(void) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {0};
    for (unsigned long number = 0; prctl(PR_CAPBSET_READ, number, 0, 0, 0) >= 0; number++) {
        prctl(PR_CAPBSET_DROP, number, 0, 0, 0);
    }
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    return syscall(SYS_capset, &header, sets) == 0;
}

bool gw_sandbox_close(const struct gw_job *job, int folder, char *problem, size_t size) {
    if (job->sandbox == GW_JOB_OFF) {
        return true;
    }
    const char *mode = job->sandbox == GW_JOB_STRICT ? "strict" : "write";
    long abi = syscall(NR_CREATE_RULESET, NULL, (size_t)0, ASK_VERSION);
    if (abi < ABI_REFER) {
        snprintf(
            problem, size,
            "tools.sandbox is \"%s\", and this kernel has no Landlock for it (Linux 5.19 or later, with "
            "landlock among its security modules). Nothing was run. Set tools.sandbox to \"off\" to run without it",
            mode);
        return false;
    }
    if (!drop_capabilities() || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        snprintf(problem, size, "tools.sandbox is \"%s\", and privileges can't be given up: %s", mode, strerror(errno));
        return false;
    }
    if (!close_files(job, folder, abi, problem, size)) {
        return false;
    }
    if (!close_calls(job->sandbox == GW_JOB_STRICT, abi >= ABI_TRUNCATE)) {
        snprintf(problem, size, "tools.sandbox is \"%s\", and this kernel has no seccomp for it: %s", mode,
                 strerror(errno));
        return false;
    }
    return true;
}
