/*
 * What happens between fork and exec. The order matters, because each step needs rights or descriptors that the next
 * one takes away. First the limits are set, then the sandbox is closed, then the descriptors are arranged.
 */
#include "tools/runner/command.h"
#include "tools/runner/processes.h"
#include "tools/runner/sandbox.h"
#include "tools/runner/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NR_CLOSE_RANGE 436   /* newer than some headers; Linux 5.9 */
#define BADNESS        "500" /* if memory runs out, the kernel ends a command before the gateway (proc(5)) */

static void reset_signals(void) {
    sigset_t none;
    for (int number = 1; number < NSIG; number++) {
        signal(number, SIG_DFL);
    }
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Closes all descriptors except 0 to 2, the pipes of a job that has some, and `problem`, which exec closes. */
static bool arrange_descriptors(const struct gw_job *job, int problem) {
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    bool arranged = null >= 0 && dup2(null, 0) == 0;
    if (job->pipes) {
        arranged = arranged && dup2(GW_RUN_PIPE_IN, 3) == 3 && dup2(GW_RUN_PIPE_OUT, 4) == 4;
    }
    for (int fd = job->pipes ? 5 : 3; fd < GW_RUN_FREE; fd++) {
        close(fd);
    }
    syscall(NR_CLOSE_RANGE, (unsigned)GW_RUN_FREE, (unsigned)problem - 1, 0u);
    syscall(NR_CLOSE_RANGE, (unsigned)problem + 1, ~0u, 0u);
    return arranged;
}

/*
 * RLIMIT_NPROC counts all threads of the user, unless there is a user namespace, and has no effect for root. For root a
 * PID namespace has its own limit (inner.c).
 */
static void set_limits(const struct gw_job *job) {
    struct rlimit core = {0};
    struct rlimit processes;
    setrlimit(RLIMIT_CORE, &core);
    if (getrlimit(RLIMIT_NPROC, &processes) == 0) {
        rlim_t wanted = (rlim_t)(job->processes + gw_processes_of_user());
        processes.rlim_cur = wanted < processes.rlim_max ? wanted : processes.rlim_max;
        processes.rlim_max = processes.rlim_cur;
        setrlimit(RLIMIT_NPROC, &processes);
    }
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        if (write(fd, BADNESS, strlen(BADNESS)) < 0) {
            errno = 0; /* the value may be higher already */
        }
        close(fd);
    }
}

static void become(const struct gw_job *job, int problem) {
    char text[400] = "";
    setsid();
    reset_signals();
    set_limits(job);
    if (gw_sandbox_close(job, GW_RUN_FOLDER, text, sizeof text) && arrange_descriptors(job, problem)) {
        execvpe(job->argv[0], job->argv, job->env);
        snprintf(text, sizeof text, "%s can't be run: %s", job->argv[0], strerror(errno));
    } else if (!*text) {
        snprintf(text, sizeof text, "the descriptors can't be arranged: %s", strerror(errno));
    }
    if (write(problem, text, strlen(text)) < 0) {
        _exit(126);
    }
    _exit(127);
}

pid_t gw_command_start(const struct gw_job *job, char *problem, size_t size) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        snprintf(problem, size, "no pipe: %s", strerror(errno));
        return -1;
    }
    int write_end = fcntl(ends[1], F_DUPFD_CLOEXEC, GW_RUN_FREE + 1);
    close(ends[1]);
    pid_t pid = write_end < 0 ? -1 : fork();
    if (pid == 0) {
        become(job, write_end);
    }
    int failure = errno;
    close(write_end);
    size_t got = 0;
    ssize_t step = 1;
    while (pid > 0 && step > 0 && got < size - 1) {
        step = read(ends[0], problem + got, size - 1 - got);
        got += step > 0 ? (size_t)step : 0;
    }
    close(ends[0]);
    problem[got] = '\0';
    if (pid < 0) {
        snprintf(problem, size, "no process can be started: %s", strerror(failure));
    }
    return got > 0 ? -1 : pid;
}
