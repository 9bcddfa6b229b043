/*
 * fm_sandbox_enter on Linux: capabilities, no_new_privs, Landlock (platform_landlock_linux.c), seccomp. Landlock and
 * seccomp deny mostly the same things, so a kernel with only one of them still denies most.
 */
#ifdef __linux__

#include "base/platform.h"
#include "base/platform_confine.h"
#include "base/platform_os.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#ifdef FM_COVERAGE /* coverage counters are written to files at exit */
#define MAY_WRITE true
#else
#define MAY_WRITE false
#endif

/* ---- seccomp: which calls ---- */

#ifdef FM_SECCOMP

/* System calls that are newer than some headers. They have the same numbers on every architecture. */
enum {
    NR_PIDFD_SEND_SIGNAL = 424,
    NR_IO_URING_ENTER = 426,
    NR_IO_URING_REGISTER,
    NR_OPEN_TREE,
    NR_MOVE_MOUNT,
    NR_FSOPEN,
    NR_FSCONFIG,
    NR_FSMOUNT,
    NR_FSPICK,
    NR_CLONE3 = 435,
    NR_PIDFD_GETFD = 438,
    NR_PROCESS_MADVISE = 440,
    NR_MOUNT_SETATTR = 442,
    NR_QUOTACTL_FD = 443,
    NR_PROCESS_MRELEASE = 448,
    NR_FCHMODAT2 = 452,
    NR_LSM_SET_SELF_ATTR = 460,
    NR_SETXATTRAT = 463,
    NR_REMOVEXATTRAT = 466,
    NR_OPEN_TREE_ATTR = 467,
    NR_FILE_SETATTR = 469,
    NR_LAST = 469, /* the last call of Linux 6.17; later calls have not been reviewed, and get ENOSYS */
};

/* Calls that reach into other processes, the kernel or the machine. */
static const int denied[] = {
    /* programs and processes */
    SYS_execve,
    SYS_execveat,
    SYS_setpgid,
    SYS_setsid,
    SYS_personality,
#ifdef __x86_64__
    SYS_fork,
    SYS_vfork,
    SYS_uselib,
#endif
#ifndef FM_SANITIZE /* LeakSanitizer stops the threads with this call */
    SYS_ptrace,
#endif
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kcmp,
    SYS_migrate_pages,
    SYS_move_pages,
    NR_PIDFD_GETFD,
    NR_PROCESS_MADVISE,
    NR_PROCESS_MRELEASE,
    SYS_tkill,
    NR_PIDFD_SEND_SIGNAL,
    SYS_setpriority,
    SYS_ioprio_set,
    SYS_shmget,
    SYS_shmat,
    SYS_shmctl,
    SYS_semget,
    SYS_semop,
    SYS_semtimedop,
    SYS_semctl,
    SYS_msgget,
    SYS_msgsnd,
    SYS_msgrcv,
    SYS_msgctl,
    SYS_mq_open,
    SYS_mq_unlink,
    /* privileges */
    SYS_setuid,
    SYS_setgid,
    SYS_setreuid,
    SYS_setregid,
    SYS_setgroups,
    SYS_setresuid,
    SYS_setresgid,
    SYS_setfsuid,
    SYS_setfsgid,
    SYS_capset,
    SYS_setrlimit,
    NR_LSM_SET_SELF_ATTR,
    /* parts of the kernel in which many vulnerabilities were found */
    FM_NR_IO_URING_SETUP,
    NR_IO_URING_ENTER,
    NR_IO_URING_REGISTER,
    SYS_io_setup,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    SYS_fanotify_init,
    SYS_open_by_handle_at,
    SYS_lookup_dcookie,
    /* mounts and namespaces */
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_unshare,
    SYS_setns,
    NR_OPEN_TREE,
    NR_OPEN_TREE_ATTR,
    NR_MOVE_MOUNT,
    NR_FSOPEN,
    NR_FSCONFIG,
    NR_FSMOUNT,
    NR_FSPICK,
    NR_MOUNT_SETATTR,
    /* the machine */
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_kexec_file_load,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_acct,
    SYS_quotactl,
    NR_QUOTACTL_FD,
    SYS_nfsservctl,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_adjtimex,
    SYS_clock_adjtime,
    SYS_syslog,
    SYS_vhangup,
#ifdef __x86_64__
    SYS_iopl,
    SYS_ioperm,
    SYS_modify_ldt,
    SYS__sysctl,
#endif
};

/* Calls that change files. Opening one is filtered below. */
static const int denied_writes[] = {
#ifdef __x86_64__
    SYS_creat,       SYS_mkdir,        SYS_rmdir,        SYS_unlink,       SYS_rename,
    SYS_link,        SYS_symlink,      SYS_mknod,        SYS_chmod,        SYS_chown,
    SYS_lchown,      SYS_utime,        SYS_utimes,       SYS_futimesat,
#endif
    SYS_mkdirat,     SYS_unlinkat,     SYS_renameat,     SYS_renameat2,    SYS_linkat,
    SYS_symlinkat,   SYS_mknodat,      SYS_fchmod,       SYS_fchmodat,     NR_FCHMODAT2,
    SYS_fchown,      SYS_fchownat,     SYS_utimensat,    SYS_truncate,     SYS_ftruncate,
    SYS_fallocate,   SYS_setxattr,     SYS_lsetxattr,    SYS_fsetxattr,    NR_SETXATTRAT,
    SYS_removexattr, SYS_lremovexattr, SYS_fremovexattr, NR_REMOVEXATTRAT, NR_FILE_SETATTR,
};

static const int denied_network[] = {
    SYS_socket,   SYS_socketpair, SYS_connect,    SYS_bind,       SYS_listen,      SYS_accept,
    SYS_accept4,  SYS_sendto,     SYS_sendmsg,    SYS_sendmmsg,   SYS_recvfrom,    SYS_recvmsg,
    SYS_recvmmsg, SYS_shutdown,   SYS_setsockopt, SYS_getsockopt, SYS_getsockname, SYS_getpeername,
};

/*
 * A client must not become a server. It has to bind sockets of netlink, so bind itself is allowed, and Landlock forbids
 * it for TCP.
 */
static const int denied_client[] = {SYS_listen, SYS_accept, SYS_accept4};

/* All other ioctls are denied: on a terminal or a device they could type into the user's shell, or drive the device. */
static const uint32_t allowed_ioctls[] = {TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIOCLEX, FIONCLEX, 0x802c542a};

/*
 * The kinds of ioctls of GPUs (bits 8 to 15 of a request): DRM's, and those of NVIDIA's nvidiactl and nvidia-modeset.
 * Other devices use some of these kinds too, so they are allowed only if Landlock denies opening any other device.
 */
static const uint32_t gpu_ioctls[] = {'d' << 8, 'F' << 8, 'm' << 8};

/*
 * These commands send signals to other processes when a descriptor is ready, or make processes that open a file wait.
 * For F_SETFL there is a separate rule.
 */
static const uint32_t denied_fcntls[] = {F_SETOWN, F_SETOWN_EX, F_SETSIG, F_SETLEASE};

/* The engine must not undo the setting by which it ends with its parent. */
static const uint32_t denied_prctls[] = {PR_SET_PDEATHSIG};

#define NAMESPACES                                                                                                     \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)

/* ---- seccomp: the filter ---- */

#define ALLOW SECCOMP_RET_ALLOW

/* Returns `listed` if the low 32 bits of the argument (the kernel uses no more) are one of the values, else `other`. */
static void by_value(struct fm_filter *filter, int number, unsigned argument, const uint32_t *values, size_t count,
                     uint32_t listed, uint32_t other) {
    fm_filter_only_for(filter, number, 2 * count + 2);
    fm_filter_load(filter, FM_ARGUMENT(argument));
    for (size_t i = 0; i < count; i++) {
        fm_filter_answer_if(filter, BPF_JEQ, values[i], listed);
    }
    fm_filter_answer(filter, other);
}

/*
 * Denies O_ASYNC: on a terminal it sends SIGIO, which ends most programs, to the foreground processes at the next key.
 */
static void no_signals_from_files(struct fm_filter *filter) {
    fm_filter_only_for(filter, SYS_fcntl, 2 * COUNT(denied_fcntls) + 6);
    fm_filter_load(filter, FM_ARGUMENT(1));
    for (size_t i = 0; i < COUNT(denied_fcntls); i++) {
        fm_filter_answer_if(filter, BPF_JEQ, denied_fcntls[i], FM_FAIL(EPERM));
    }
    fm_filter_add(filter, BPF_JMP | BPF_K | BPF_JEQ, F_SETFL, 0, 3);
    fm_filter_load(filter, FM_ARGUMENT(2));
    fm_filter_answer_if(filter, BPF_JSET, O_ASYNC, FM_FAIL(EPERM));
    fm_filter_answer(filter, ALLOW);
}

/* Denies all values but a few. */
static void few_ioctls(struct fm_filter *filter, bool gpus) {
    size_t kinds = gpus ? COUNT(gpu_ioctls) : 0;
    fm_filter_only_for(filter, SYS_ioctl, 2 * (COUNT(allowed_ioctls) + kinds) + 3);
    fm_filter_load(filter, FM_ARGUMENT(1));
    for (size_t i = 0; i < COUNT(allowed_ioctls); i++) {
        fm_filter_answer_if(filter, BPF_JEQ, allowed_ioctls[i], ALLOW);
    }
    fm_filter_add(filter, BPF_ALU | BPF_AND | BPF_K, 0xff00, 0, 0);
    for (size_t i = 0; i < kinds; i++) {
        fm_filter_answer_if(filter, BPF_JEQ, gpu_ioctls[i], ALLOW);
    }
    fm_filter_answer(filter, FM_FAIL(EPERM));
}

/* Denies the flags. */
static void no_flags(struct fm_filter *filter, int number, unsigned argument, uint32_t flags) {
    fm_filter_only_for(filter, number, 4);
    fm_filter_load(filter, FM_ARGUMENT(argument));
    fm_filter_answer_if(filter, BPF_JSET, flags, FM_FAIL(EPERM));
    fm_filter_answer(filter, ALLOW);
}

#ifdef FM_SANITIZE /* LeakSanitizer stops the threads from a separate process */
#define NEW_PROCESS ALLOW
#else
#define NEW_PROCESS FM_FAIL(EPERM)
#endif

static void threads_only(struct fm_filter *filter) {
    fm_filter_only_for(filter, SYS_clone, 6);
    fm_filter_load(filter, FM_ARGUMENT(0));
    fm_filter_answer_if(filter, BPF_JSET, NAMESPACES, FM_FAIL(EPERM));
    fm_filter_answer_if(filter, BPF_JSET, CLONE_THREAD, ALLOW);
    fm_filter_answer(filter, NEW_PROCESS);
}

/* Limits may be read but not set: to read, the C library calls prlimit64 without a new value. */
static void limits_stay(struct fm_filter *filter) {
    fm_filter_only_for(filter, SYS_prlimit64, 6);
    fm_filter_load(filter, FM_ARGUMENT(2));
    fm_filter_add(filter, BPF_JMP | BPF_K | BPF_JEQ, 0, 0, 3);
    fm_filter_load(filter, FM_ARGUMENT_HIGH(2));
    fm_filter_answer_if(filter, BPF_JEQ, 0, ALLOW);
    fm_filter_answer(filter, FM_FAIL(EPERM));
}

/*
 * Denies opening for writing. O_TMPFILE needs O_WRONLY or O_RDWR, so it is covered. GPUs are opened with O_RDWR, so
 * where GPUs are allowed, only Landlock prevents that files are opened for writing.
 */
static void build_writes(struct fm_filter *filter, bool gpus) {
    uint32_t flags = O_WRONLY | O_CREAT | O_TRUNC | (gpus ? O_TMPFILE & ~(uint32_t)O_DIRECTORY : (uint32_t)O_RDWR);
    fm_filter_deny(filter, denied_writes, COUNT(denied_writes));
#ifdef __x86_64__
    no_flags(filter, SYS_open, 1, flags);
#endif
    no_flags(filter, SYS_openat, 2, flags);
}

static void build_filter(struct fm_filter *filter, const struct fm_sandbox_needs *needs, bool gpus) {
    const uint32_t self[] = {(uint32_t)getpid()};
    fm_filter_begin(filter);
    fm_filter_answer_if(filter, BPF_JGT, NR_LAST, FM_FAIL(ENOSYS));
    /*
     * The flags of these calls are in memory, which a filter can't read. With ENOSYS, programs use openat and clone
     * instead.
     */
    fm_filter_answer_if(filter, BPF_JEQ, FM_NR_OPENAT2, FM_FAIL(ENOSYS));
    fm_filter_answer_if(filter, BPF_JEQ, NR_CLONE3, FM_FAIL(ENOSYS));
    fm_filter_deny(filter, denied, COUNT(denied));
    if (!MAY_WRITE) {
        build_writes(filter, gpus);
    }
    if (!needs->network) {
        fm_filter_deny(filter, denied_network, COUNT(denied_network));
    } else if (needs->client) {
        fm_filter_deny(filter, denied_client, COUNT(denied_client));
    }
    by_value(filter, SYS_kill, 0, self, 1, ALLOW, FM_FAIL(EPERM));
    by_value(filter, SYS_tgkill, 0, self, 1, ALLOW, FM_FAIL(EPERM)); /* abort() */
    by_value(filter, SYS_rt_sigqueueinfo, 0, self, 1, ALLOW, FM_FAIL(EPERM));
    by_value(filter, SYS_rt_tgsigqueueinfo, 0, self, 1, ALLOW, FM_FAIL(EPERM));
    few_ioctls(filter, gpus);
    no_signals_from_files(filter);
    by_value(filter, SYS_prctl, 0, denied_prctls, COUNT(denied_prctls), FM_FAIL(EPERM), ALLOW);
    limits_stay(filter);
    threads_only(filter);
    fm_filter_answer(filter, ALLOW);
}

static bool enter_seccomp(const struct fm_sandbox_needs *needs, bool gpus) {
    static struct fm_filter filter;
    build_filter(&filter, needs, gpus);
    return fm_filter_enter(&filter);
}

#else

/* The filter has not been tested on this architecture. */
static bool enter_seccomp(const struct fm_sandbox_needs *needs, bool gpus) {
    (void)needs;
    (void)gpus;
    return false;
}

#endif

void fm_sandbox_enter(const struct fm_sandbox_needs *needs, struct fm_sandbox *in_force) {
    in_force->no_capabilities = fm_drop_capabilities(); /* must come before seccomp denies this call */
    in_force->no_new_privs = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
    in_force->landlock = fm_os_landlock_enter(needs, MAY_WRITE, in_force);
    in_force->seccomp = enter_seccomp(needs, in_force->gpus_allowed);
    in_force->network_denied = in_force->seccomp && !needs->network;
}

#else
typedef int fm_platform_sandbox_linux_is_empty;
#endif
