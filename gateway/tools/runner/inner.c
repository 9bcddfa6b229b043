/*
 * The first process around a command. Whatever happens, no descendant outlives it. In a PID namespace the kernel kills
 * them with it; elsewhere it is their subreaper and waits for them.
 */
#include "tools/runner/inner.h"
#include "tools/runner/command.h"
#include "tools/runner/processes.h"
#include "tools/runner/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#define PID_MAX_LEAST 301 /* RESERVED_PIDS + 1 in the kernel's kernel/pid.c */

static _Noreturn void report(int socket, enum gw_report_kind kind, int status, const char *text) {
    struct gw_report message = {.kind = kind, .status = status};
    snprintf(message.text, sizeof message.text, "%s", text);
    send(socket, &message, sizeof message, MSG_NOSIGNAL);
    _exit(0);
}

static bool write_file(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0) {
        close(fd);
    }
    return written;
}

/* user_namespaces(7): a process without rights may map only one user and one group, and must deny setgroups. */
static bool map_user(uid_t user, gid_t group) {
    char line[64];
    write_file("/proc/self/setgroups", "deny"); /* older kernels have no such file */
    snprintf(line, sizeof line, "%u %u 1", user, user);
    bool mapped = write_file("/proc/self/uid_map", line);
    snprintf(line, sizeof line, "%u %u 1", group, group);
    return mapped && write_file("/proc/self/gid_map", line);
}

/*
 * Since Linux 6.14 each PID namespace has its own limit (Documentation/admin-guide/sysctl/kernel.rst); before that, a
 * write would change the machine's. The kernel refuses a limit below PID_MAX_LEAST, and then there would be no limit.
 */
static void limit_namespace(int64_t processes) {
    struct utsname name;
    char line[32];
    char *minor = NULL;
    long major = uname(&name) == 0 ? strtol(name.release, &minor, 10) : 0;
    if (major > 6 || (major == 6 && minor && strtol(minor + 1, NULL, 10) >= 14)) {
        snprintf(line, sizeof line, "%lld", (long long)(processes > PID_MAX_LEAST ? processes : PID_MAX_LEAST));
        write_file("/proc/sys/kernel/pid_max", line);
    }
}

/* New mounts are seen only in this namespace. In a chroot "/" may be no mount point, but /proc is one. */
static bool keep_mounts(void) {
    return mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 ||
           (errno == EINVAL && mount("none", "/proc", NULL, MS_PRIVATE, NULL) == 0);
}

/*
 * The descriptor of the folder belongs to the previous mount namespace. Opening the folder's path again would fail in a
 * chroot, where that path does not begin at our root. The working folder is the same folder in this namespace, so it is
 * opened as ".".
 */
static bool take_folder(void) {
    int fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    bool taken = fd >= 0 && dup3(fd, GW_RUN_FOLDER, O_CLOEXEC) >= 0;
    if (fd >= 0) {
        close(fd);
    }
    return taken;
}

/* Enters the namespace. Without its own /proc, a process in it would not find itself there. */
static bool enter(const struct gw_job *job, int flags, uid_t user, gid_t group) {
    if (!(flags & CLONE_NEWPID)) {
        return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0;
    }
    if ((flags & CLONE_NEWUSER && !map_user(user, group)) || !keep_mounts() ||
        !take_folder() || mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) != 0) {
        return false;
    }
    limit_namespace(job->processes);
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* if the parent died before this, the end of the stream shows it */
    return true;
}

/* Waits for a byte; at the end of the stream, returns GW_ASK_KILL. */
static char next_ask(int socket) {
    char ask = GW_ASK_KILL;
    ssize_t got;
    do {
        got = recv(socket, &ask, 1, 0);
    } while (got < 0 && errno == EINTR);
    return got == 1 ? ask : GW_ASK_KILL;
}

/* Reaps the children that have ended. True if the command is among them, with its status. */
static bool reap(pid_t command, int *status) {
    bool ended = false;
    int one;
    pid_t pid;
    while ((pid = waitpid(-1, &one, WNOHANG)) > 0) {
        if (pid == command) {
            *status = one;
            ended = true;
        }
    }
    return ended;
}

static int await_command(pid_t command, bool own_namespace, int socket, int children) {
    struct pollfd waited[] = {{.fd = socket, .events = POLLIN}, {.fd = children, .events = POLLIN}};
    struct signalfd_siginfo info;
    int status = 0;
    while (!reap(command, &status)) {
        poll(waited, 2, -1);
        if (waited[1].revents && read(children, &info, sizeof info) < 0 && errno != EAGAIN) {
            break;
        }
        char ask = waited[0].revents ? next_ask(socket) : GW_ASK_START;
        if (ask == GW_ASK_TERMINATE) {
            gw_processes_signal(own_namespace, SIGTERM);
        } else if (ask == GW_ASK_KILL) {
            waited[0].fd = -1;
            gw_processes_signal(own_namespace, SIGKILL);
        }
    }
    return status;
}

_Noreturn void gw_inner_run(const struct gw_job *job, int flags, int socket) {
    bool own_namespace = (flags & CLONE_NEWPID) != 0;
    char problem[sizeof((struct gw_report *)0)->text] = "";
    const struct gw_report ready = {.kind = GW_REPORT_READY};
    uid_t user = getuid();
    gid_t group = getgid();
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    int children = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (children < 0 || !enter(job, flags, user, group)) {
        report(socket, GW_REPORT_NO_NAMESPACE, 0, "");
    }
    send(socket, &ready, sizeof ready, MSG_NOSIGNAL);
    if (next_ask(socket) != GW_ASK_START) {
        _exit(0);
    }
    pid_t command = gw_command_start(job, problem, sizeof problem);
    if (command < 0) {
        gw_processes_end(own_namespace);
        report(socket, GW_REPORT_FAILED, 0, problem);
    }
    int status = await_command(command, own_namespace, socket, children);
    gw_processes_end(own_namespace);
    report(socket, GW_REPORT_ENDED, status, "");
}
