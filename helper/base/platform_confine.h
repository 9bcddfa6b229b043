/*
 * How a process confines itself permanently: capabilities, and on Linux Landlock and seccomp. Landlock decides by file,
 * whatever the system call; seccomp decides by system call, whatever the file. Two files use this:
 * platform_sandbox_linux.c (engines) and fm-gateway's tools/runner/sandbox.c (commands).
 */
#ifndef FM_BASE_PLATFORM_CONFINE_H
#define FM_BASE_PLATFORM_CONFINE_H

#include <stdbool.h>

/*
 * Gives up every capability of the calling thread for good. Call it in a child before exec, or before the first thread.
 * True: the thread has none left. False on systems that have no capabilities. Async-signal-safe.
 */
bool fm_drop_capabilities(void);

#ifdef __linux__

#include "base/buf.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Landlock (Documentation/userspace-api/landlock.rst) ---- */

/*
 * A right that a ruleset handles is denied wherever no rule grants it. We define the numbers ourselves, because headers
 * may be older than the kernel.
 */
enum {
    FM_LANDLOCK_EXECUTE = 1 << 0,
    FM_LANDLOCK_WRITE = 1 << 1,
    FM_LANDLOCK_READ_FILE = 1 << 2,
    FM_LANDLOCK_READ_DIR = 1 << 3,
    FM_LANDLOCK_ALL_WRITE = FM_LANDLOCK_WRITE | 0x1ff0, /* write_file, remove_dir to make_sym */
    FM_LANDLOCK_REFER = 1 << 13,
    FM_LANDLOCK_TRUNCATE = 1 << 14,
    FM_LANDLOCK_IOCTL_DEV = 1 << 15,
    FM_LANDLOCK_CONNECT = 2,
    FM_LANDLOCK_TCP = 3,    /* bind, connect */
    FM_LANDLOCK_SCOPES = 3, /* abstract UNIX sockets, signals */
};

/* The first versions of Landlock's interface that have these rights. */
enum {
    FM_LANDLOCK_ABI_REFER = 2,
    FM_LANDLOCK_ABI_TRUNCATE,
    FM_LANDLOCK_ABI_NETWORK,
    FM_LANDLOCK_ABI_IOCTL,
    FM_LANDLOCK_ABI_SCOPES,
};

/* What a ruleset handles: rights of the kinds above. For an older kernel, kinds that it does not know must be 0. */
struct fm_landlock_handled {
    uint64_t files;
    uint64_t network;
    uint64_t scopes;
};

/* The version of this kernel's interface; below 1: the kernel has no Landlock. Never blocks. */
long fm_landlock_abi(void);

/* A new ruleset, which the caller closes; -1 with errno. Never blocks. */
int fm_landlock_create(const struct fm_landlock_handled *handled);

/*
 * Grants `rights` on what the descriptor `fd` refers to, and on what is below it; if it is no folder, only the rights
 * that files have are granted. A link gets no rights: its target has its own rule, or no rights. False with errno:
 * nothing is granted. Never blocks.
 */
bool fm_landlock_grant(int ruleset, int fd, uint64_t rights);

/* Grants `rights` on a path; `flags` is 0 or O_NOFOLLOW. May block on the file system. */
bool fm_landlock_grant_path(int ruleset, const char *path, int flags, uint64_t rights);

/* Lets TCP connect to a port. */
bool fm_landlock_grant_connect(int ruleset, uint64_t port);

/*
 * Grants `rights` on all that exists now except `denied`: absolute paths without links and without a slash at the end,
 * each with a NUL after it. Landlock can only grant. So each folder above a denied path gets no rule itself, but all of
 * its other entries get one. What appears there later is not granted. A folder that can't be listed stays denied. May
 * block on the file system.
 */
void fm_landlock_grant_beside(int ruleset, const struct fm_buf *denied, uint64_t rights);

/* Puts the ruleset in force, permanently, for the calling thread and all that it starts. False with errno. */
bool fm_landlock_enter(int ruleset);

/* ---- seccomp (seccomp(2)) ---- */

#if defined(__x86_64__) || defined(__aarch64__)
#define FM_SECCOMP 1 /* filters have been tested only on these architectures */
#endif

#define FM_FILTER_MAX           1024u
/* Offsets of the low and the high half of a call's argument: both architectures are little-endian. */
#define FM_ARGUMENT(index)      ((uint32_t)(offsetof(struct seccomp_data, args) + 8u * (index)))
#define FM_ARGUMENT_HIGH(index) (FM_ARGUMENT(index) + 4u)
/* The action that makes a call fail with that errno. */
#define FM_FAIL(number)         (SECCOMP_RET_ERRNO | (uint32_t)(number))

/* System calls that are newer than some headers. They have the same numbers on every architecture. */
enum {
    FM_NR_IO_URING_SETUP = 425,
    FM_NR_OPENAT2 = 437,
};

/* A program that decides about a system call. */
struct fm_filter {
    struct sock_filter code[FM_FILTER_MAX];
    size_t len; /* above FM_FILTER_MAX: the filter did not fit */
};

#ifdef FM_SECCOMP

/* Begins a filter: calls of another architecture end the process. Loads the number of the call. */
void fm_filter_begin(struct fm_filter *filter);

/* Adds an instruction (linux/bpf_common.h). */
void fm_filter_add(struct fm_filter *filter, uint16_t code, uint32_t k, uint8_t if_true, uint8_t if_false);

/* Loads 32 bits of struct seccomp_data. */
void fm_filter_load(struct fm_filter *filter, size_t offset);

/* Ends with `action`. */
void fm_filter_answer(struct fm_filter *filter, uint32_t action);

/* Ends with `action` if the comparison (BPF_JEQ, BPF_JSET...) of the loaded value with `value` is true. */
void fm_filter_answer_if(struct fm_filter *filter, uint16_t comparison, uint32_t value, uint32_t action);

/* Makes the system calls `numbers` fail with EPERM. */
void fm_filter_deny(struct fm_filter *filter, const int *numbers, size_t count);

/* Makes the next `len` instructions run only for the call `number`; they decide about it. */
void fm_filter_only_for(struct fm_filter *filter, int number, size_t len);

/*
 * Puts the filter in force, permanently, for the calling thread and all that it starts. False with errno, or if the
 * filter did not fit.
 */
bool fm_filter_enter(const struct fm_filter *filter);

#endif
#endif
#endif
