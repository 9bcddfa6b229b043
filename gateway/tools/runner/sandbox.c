/*
 * The sandbox of a command: no new privileges, Landlock for files and seccomp for what Landlock does not see. A part that the
 * kernel lacks is an error, never a weaker sandbox.
 */
#include "tools/runner/sandbox.h"
#include "base/platform_confine.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define READS      (FM_LANDLOCK_EXECUTE | FM_LANDLOCK_READ_FILE | FM_LANDLOCK_READ_DIR)
#define HIDDEN_MAX ((size_t)1 << 24) /* bytes of paths */

/* ---- hidden paths ---- */

/* Returns the path with its links resolved. If its end does not exist, only the part that exists is resolved. */
static char *resolve_links(const char *path) {
    char *real = realpath(path, NULL);
    const char *slash = strrchr(path, '/');
    if (real || !slash || slash == path) {
        return real ? real : strdup(path);
    }
    char *above = strndup(path, (size_t)(slash - path));
    char *folder = above ? resolve_links(above) : NULL;
    if (!folder || asprintf(&real, "%s%s", strcmp(folder, "/") == 0 ? "" : folder, slash) < 0) {
        real = NULL;
    }
    free(above);
    free(folder);
    return real;
}

/*
 * Returns the path with the links of its folder resolved, but not its last name. If the last name is a link, the link
 * itself must be protected from being replaced.
 */
static char *resolve_name(const char *path) {
    const char *slash = strrchr(path, '/');
    char *above = slash && slash != path ? strndup(path, (size_t)(slash - path)) : NULL;
    char *folder = above ? resolve_links(above) : NULL;
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

static void hide(struct fm_buf *hidden, const char *path) {
    if (path && strcmp(path, "/") != 0) {
        fm_buf_append(hidden, path, strlen(path) + 1);
    }
}

/*
 * Returns the paths in a job's list, with links resolved as they are now, and /dev, because disks, microphones and
 * keyboards are files there. The few devices that programs need are granted one by one. Each path ends with a NUL.
 * False when out of memory.
 */
static bool find_hidden(char *const *named, struct fm_buf *hidden) {
    bool whole = true;
    fm_buf_init(hidden, HIDDEN_MAX);
    hide(hidden, "/dev");
    for (; *named && whole; named++) {
        char *name = resolve_name(*named);
        char *real = resolve_links(*named);
        whole = name && real;
        hide(hidden, name);
        hide(hidden, real);
        free(name);
        free(real);
    }
    return whole && !hidden->failed;
}

/*
 * Returns a hidden path that is in the folder, or that the folder is in. The right to write in the folder would be a
 * right to write in that path. NULL: no hidden path is.
 */
static const char *conflict(const struct fm_buf *hidden, int folder) {
    char path[PATH_MAX];
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    ssize_t len = readlink(link, path, sizeof path - 1);
    path[len > 0 ? len : 0] = '\0';
    size_t size = strcmp(path, "/") == 0 ? 0 : strlen(path);
    for (size_t at = 0; at < hidden->len; at += strlen(hidden->data + at) + 1) {
        const char *entry = hidden->data + at;
        size_t other = strlen(entry);
        if ((strncmp(entry, path, size) == 0 && (entry[size] == '/' || entry[size] == '\0')) ||
            (strncmp(path, entry, other) == 0 && path[other] == '/')) {
            return entry;
        }
    }
    return NULL;
}

/* ---- Landlock ---- */

static bool grant_all(const struct gw_job *job, const struct fm_buf *hidden, int ruleset, int folder, uint64_t writes) {
    static const char *const devices[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"};
    bool granted = fm_landlock_grant_path(ruleset, "/", 0, FM_LANDLOCK_READ_DIR); /* every folder can be listed */
    fm_landlock_grant_beside(ruleset, hidden, READS);
    for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++) {
        fm_landlock_grant_path(ruleset, devices[i], 0, READS | FM_LANDLOCK_WRITE);
    }
    /* Chromium's own sandbox maps users in /proc/PID; root could change more there. */
    if (job->pipes && getuid() != 0) {
        fm_landlock_grant_path(ruleset, "/proc", 0, READS | FM_LANDLOCK_WRITE);
    }
    if (job->folder_writable) {
        granted = granted && fm_landlock_grant(ruleset, folder, READS | writes);
    }
    if (job->private_folder) {
        granted = granted && fm_landlock_grant_path(ruleset, job->private_folder, O_NOFOLLOW, READS | writes);
    }
    return granted;
}

static bool close_files(const struct gw_job *job, int folder, long abi, char *problem, size_t size) {
    struct fm_buf hidden;
    struct fm_landlock_handled handled = {.scopes = abi >= FM_LANDLOCK_ABI_SCOPES ? FM_LANDLOCK_SCOPES : 0};
    uint64_t writes = FM_LANDLOCK_ALL_WRITE | FM_LANDLOCK_REFER;
    writes |= abi >= FM_LANDLOCK_ABI_TRUNCATE ? FM_LANDLOCK_TRUNCATE : 0;
    handled.files = READS | writes;
    bool closed = false;
    int ruleset = -1;
    if (!find_hidden(job->hidden, &hidden)) {
        snprintf(problem, size, "no memory is left");
        goto done;
    }
    const char *entry = job->folder_writable ? conflict(&hidden, folder) : NULL;
    if (entry) {
        snprintf(problem, size,
                 "the working folder and %s, which tools.sandbox hides, lie in each other; choose another "
                 "working folder",
                 entry);
        goto done;
    }
    ruleset = fm_landlock_create(&handled);
    closed = ruleset >= 0 && grant_all(job, &hidden, ruleset, folder, writes) && fm_landlock_enter(ruleset);
    if (!closed) {
        snprintf(problem, size, "Landlock refuses the rules of tools.sandbox: %s", strerror(errno));
    }
done:
    if (ruleset >= 0) {
        close(ruleset);
    }
    fm_buf_free(&hidden);
    return closed;
}

/* ---- seccomp ---- */

#define TYPE_OF_SOCKET 0xfu /* the rest are flags: SOCK_TYPE_MASK of the kernel */

#ifdef FM_SECCOMP
/*
 * A pair of stream sockets, which programs use as pipes, stays a pair, and is allowed. Other pairs can send or connect
 * to any process that has a named socket: pairs of datagram sockets (also as SOCK_RAW, unix(7)) and pairs of other
 * families.
 */
static void deny_sockets(struct fm_filter *filter) {
    fm_filter_answer_if(filter, BPF_JEQ, SYS_socket, FM_FAIL(EPERM));
    fm_filter_only_for(filter, SYS_socketpair, 9);
    fm_filter_load(filter, FM_ARGUMENT(0));
    fm_filter_add(filter, BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, 1, 0);
    fm_filter_answer(filter, FM_FAIL(EPERM));
    fm_filter_load(filter, FM_ARGUMENT(1));
    fm_filter_add(filter, BPF_ALU | BPF_AND | BPF_K, TYPE_OF_SOCKET, 0, 0);
    fm_filter_add(filter, BPF_JMP | BPF_JEQ | BPF_K, SOCK_STREAM, 2, 0);
    fm_filter_add(filter, BPF_JMP | BPF_JEQ | BPF_K, SOCK_SEQPACKET, 1, 0);
    fm_filter_answer(filter, FM_FAIL(EPERM));
    fm_filter_answer(filter, SECCOMP_RET_ALLOW);
}

/*
 * Denies that the call `number` empties a file that it opens only for reading. O_TRUNC would do that without the right
 * to write.
 */
static void deny_truncation(struct fm_filter *filter, int number, unsigned argument) {
    fm_filter_only_for(filter, number, 5);
    fm_filter_load(filter, FM_ARGUMENT(argument));
    fm_filter_add(filter, BPF_ALU | BPF_AND | BPF_K, O_TRUNC | O_ACCMODE, 0, 0);
    fm_filter_answer_if(filter, BPF_JEQ, O_TRUNC | O_RDONLY, FM_FAIL(EACCES));
    fm_filter_answer(filter, SECCOMP_RET_ALLOW);
}

/*
 * io_uring opens files and sockets without the system calls that a filter sees. The kernel's keys belong to the session
 * and the user, so they must be hidden like the hidden files.
 */
static bool close_calls(bool sockets_denied, bool truncation_seen) {
    static const int denied[] = {FM_NR_IO_URING_SETUP, SYS_add_key, SYS_request_key, SYS_keyctl};
    static struct fm_filter filter;
    fm_filter_begin(&filter);
    fm_filter_deny(&filter, denied, sizeof denied / sizeof denied[0]);
    if (sockets_denied) {
        deny_sockets(&filter);
    }
    if (!truncation_seen) {
        fm_filter_answer_if(&filter, BPF_JEQ, SYS_truncate, FM_FAIL(EACCES));
        /* The flags of openat2 are in memory, where a filter can't read them. */
        fm_filter_answer_if(&filter, BPF_JEQ, FM_NR_OPENAT2, FM_FAIL(ENOSYS));
#ifdef SYS_open
        deny_truncation(&filter, SYS_open, 1);
#endif
        deny_truncation(&filter, SYS_openat, 2);
    }
    fm_filter_answer(&filter, SECCOMP_RET_ALLOW);
    return fm_filter_enter(&filter);
}
#else
static bool close_calls(bool sockets_denied, bool truncation_seen) {
    (void)sockets_denied;
    (void)truncation_seen;
    errno = ENOSYS;
    return false; /* the filter has not been tested on this architecture */
}
#endif

bool gw_sandbox_close(const struct gw_job *job, int folder, char *problem, size_t size) {
    if (job->sandbox == GW_JOB_OFF) {
        return true;
    }
    const char *mode = job->sandbox == GW_JOB_STRICT ? "strict" : "write";
    long abi = fm_landlock_abi();
    if (abi < FM_LANDLOCK_ABI_REFER) {
        snprintf(
            problem, size,
            "tools.sandbox is \"%s\", and this kernel has no Landlock for it (Linux 5.19 or later, with "
            "landlock among its security modules). Nothing was run. Set tools.sandbox to \"off\" to run without it",
            mode);
        return false;
    }
    if (!fm_drop_capabilities() || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        snprintf(problem, size, "tools.sandbox is \"%s\", and privileges can't be given up: %s", mode, strerror(errno));
        return false;
    }
    if (!close_files(job, folder, abi, problem, size)) {
        return false;
    }
    if (!close_calls(job->sandbox == GW_JOB_STRICT, abi >= FM_LANDLOCK_ABI_TRUNCATE)) {
        snprintf(problem, size, "tools.sandbox is \"%s\", and this kernel has no seccomp for it: %s", mode,
                 strerror(errno));
        return false;
    }
    return true;
}
