/* How a process confines itself on Linux. */
#ifdef __linux__

#include "base/platform_confine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- capabilities ---- */

#define ROOT_IS_NOBODY (SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE)

bool fm_drop_capabilities(void) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {0};
    for (unsigned long number = 0; prctl(PR_CAPBSET_READ, number, 0, 0, 0) >= 0; number++) {
        /* no exec can give the capability back; a process that may not drop it has none */
        prctl(PR_CAPBSET_DROP, number, 0, 0, 0);
    }
    prctl(PR_SET_SECUREBITS, ROOT_IS_NOBODY, 0, 0, 0);
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    syscall(SYS_capset, &header, sets);
    uint32_t left = syscall(SYS_capget, &header, sets) == 0 ? 0 : 1;
    for (size_t i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
        left |= sets[i].permitted | sets[i].effective | sets[i].inheritable;
    }
    return left == 0;
}

/* ---- Landlock ---- */

#define NR_CREATE_RULESET 444
#define NR_ADD_RULE       445
#define NR_RESTRICT_SELF  446
#define ASK_VERSION       1u
#define PATH_BENEATH      1
#define NET_PORT          2

/* The rights that Landlock allows for anything but a folder. */
#define ON_FILES                                                                                                       \
    (FM_LANDLOCK_EXECUTE | FM_LANDLOCK_READ_FILE | FM_LANDLOCK_WRITE | FM_LANDLOCK_TRUNCATE | FM_LANDLOCK_IOCTL_DEV)

struct path_rule {
    uint64_t rights;
    int32_t fd;
} __attribute__((packed));

struct port_rule {
    uint64_t rights;
    uint64_t port;
};

long fm_landlock_abi(void) {
    return syscall(NR_CREATE_RULESET, NULL, (size_t)0, ASK_VERSION);
}

int fm_landlock_create(const struct fm_landlock_handled *handled) {
    return (int)syscall(NR_CREATE_RULESET, handled, sizeof *handled, 0u);
}

bool fm_landlock_grant(int ruleset, int fd, uint64_t rights) {
    struct stat info;
    if (fstat(fd, &info) != 0) {
        return false;
    }
    struct path_rule rule = {.rights = S_ISDIR(info.st_mode) ? rights : rights & ON_FILES, .fd = fd};
    return S_ISLNK(info.st_mode) || syscall(NR_ADD_RULE, ruleset, PATH_BENEATH, &rule, 0u) == 0;
}

bool fm_landlock_grant_path(int ruleset, const char *path, int flags, uint64_t rights) {
    int fd = open(path, O_PATH | O_CLOEXEC | flags);
    bool granted = fd >= 0 && fm_landlock_grant(ruleset, fd, rights);
    if (fd >= 0) {
        close(fd);
    }
    return granted;
}

bool fm_landlock_grant_connect(int ruleset, uint64_t port) {
    struct port_rule rule = {.rights = FM_LANDLOCK_CONNECT, .port = port};
    return syscall(NR_ADD_RULE, ruleset, NET_PORT, &rule, 0u) == 0;
}

enum fate { GRANTED, DENIED, IN_PART };

/* `path` has no slash at its end; "" is the root. */
static enum fate fate_of(const struct fm_buf *denied, const char *path) {
    enum fate fate = GRANTED;
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

/* Grants the entries of `folder`, except the denied ones; "" is the root. */
static void grant_in(int ruleset, const struct fm_buf *denied, const char *folder, uint64_t rights) {
    DIR *entries = opendir(*folder ? folder : "/");
    const struct dirent *entry;
    while (entries && (entry = readdir(entries))) {
        char path[PATH_MAX];
        int len = snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 || len >= (int)sizeof path) {
            continue;
        }
        enum fate fate = fate_of(denied, path);
        if (fate == IN_PART) {
            grant_in(ruleset, denied, path, rights);
        } else if (fate == GRANTED) {
            fm_landlock_grant_path(ruleset, path, O_NOFOLLOW, rights);
        }
    }
    if (entries) {
        closedir(entries);
    }
}

void fm_landlock_grant_beside(int ruleset, const struct fm_buf *denied, uint64_t rights) {
    grant_in(ruleset, denied, "", rights);
}

bool fm_landlock_enter(int ruleset) {
    return syscall(NR_RESTRICT_SELF, ruleset, 0u) == 0;
}

/* ---- seccomp ---- */

#ifdef FM_SECCOMP

#ifdef __x86_64__
#define OUR_ARCH AUDIT_ARCH_X86_64
#else
#define OUR_ARCH AUDIT_ARCH_AARCH64
#endif
#define X32_BIT 0x40000000u

void fm_filter_add(struct fm_filter *filter, uint16_t code, uint32_t k, uint8_t if_true, uint8_t if_false) {
    if (filter->len < FM_FILTER_MAX) {
        filter->code[filter->len] = (struct sock_filter)BPF_JUMP(code, k, if_true, if_false);
    }
    filter->len++;
}

void fm_filter_load(struct fm_filter *filter, size_t offset) {
    fm_filter_add(filter, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

void fm_filter_answer(struct fm_filter *filter, uint32_t action) {
    fm_filter_add(filter, BPF_RET | BPF_K, action, 0, 0);
}

void fm_filter_answer_if(struct fm_filter *filter, uint16_t comparison, uint32_t value, uint32_t action) {
    fm_filter_add(filter, BPF_JMP | BPF_K | comparison, value, 0, 1);
    fm_filter_answer(filter, action);
}

void fm_filter_begin(struct fm_filter *filter) {
    filter->len = 0;
    fm_filter_load(filter, offsetof(struct seccomp_data, arch));
    fm_filter_add(filter, BPF_JMP | BPF_K | BPF_JEQ, OUR_ARCH, 1, 0);
    fm_filter_answer(filter, SECCOMP_RET_KILL_PROCESS);
    fm_filter_load(filter, offsetof(struct seccomp_data, nr));
#ifdef __x86_64__
    fm_filter_answer_if(filter, BPF_JSET, X32_BIT, SECCOMP_RET_KILL_PROCESS);
#endif
}

void fm_filter_deny(struct fm_filter *filter, const int *numbers, size_t count) {
    for (size_t i = 0; i < count; i++) {
        fm_filter_answer_if(filter, BPF_JEQ, (uint32_t)numbers[i], FM_FAIL(EPERM));
    }
}

void fm_filter_only_for(struct fm_filter *filter, int number, size_t len) {
    fm_filter_add(filter, BPF_JMP | BPF_K | BPF_JEQ, (uint32_t)number, 0, (uint8_t)len);
}

bool fm_filter_enter(const struct fm_filter *filter) {
    const struct sock_fprog program = {.len = (unsigned short)filter->len, .filter = (struct sock_filter *)filter->code};
    return filter->len <= FM_FILTER_MAX && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

#endif

#else
typedef int fm_platform_confine_linux_is_empty;
#endif
