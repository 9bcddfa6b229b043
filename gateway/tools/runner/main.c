/*
 * fm-tool-run: runs one approved command, and ends only when no process of it is left. The gateway starts one for each
 * tool call (wire.h). It ends the command at the job's time limit, when the gateway says so, and when the gateway is
 * gone, even by kill -9: then the control socket ends.
 */
#include "base/buf.h"
#include "base/clock.h"
#include "protocol/json_writer.h"
#include "tools/runner/inner.h"
#include "tools/runner/processes.h"
#include "tools/runner/remove.h"
#include "tools/runner/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define INNER_LATE_MS 1000 /* then the inner process is killed, because the command may have stopped it */

struct runner {
    struct gw_job job;
    bool own_namespace;
    pid_t inner;
    int socket;
    const char *end; /* why the command ends */
    struct gw_report report;
    bool reported;
};

static bool read_digest(char digest[GW_RUN_DIGEST + 1]) {
    size_t have = 0;
    while (have < GW_RUN_DIGEST) {
        ssize_t got = read(GW_RUN_CONTROL, digest + have, GW_RUN_DIGEST - have);
        if (got <= 0 && !(got < 0 && errno == EINTR)) {
            return false;
        }
        have += got > 0 ? (size_t)got : 0;
    }
    digest[GW_RUN_DIGEST] = '\0';
    return true;
}

static int report_end(const struct runner *runner, const char *error) {
    struct fm_buf line;
    fm_buf_init(&line, 8192);
    struct fm_json_writer w = fm_json_writer_on(&line);
    int status = runner->report.status;
    fm_json_object_begin(&w);
    fm_json_key_bool(&w, "namespace", runner->own_namespace);
    fm_json_key_str(&w, "end", error ? "failed" : runner->end);
    if (error) {
        fm_json_key_str(&w, "error", error);
    } else if (WIFSIGNALED(status)) {
        fm_json_key_int(&w, "signal", WTERMSIG(status));
    } else {
        fm_json_key_int(&w, "status", WEXITSTATUS(status));
    }
    fm_json_object_end(&w);
    fm_buf_append_char(&line, '\n');
    ssize_t sent = send(GW_RUN_CONTROL, line.data, line.len, MSG_NOSIGNAL);
    fm_buf_free(&line);
    return sent < 0 || error ? 1 : 0;
}

/* Reads a message of the inner process. False: the inner process has ended. */
static bool read_report(struct runner *runner) {
    ssize_t got;
    do {
        got = recv(runner->socket, &runner->report, sizeof runner->report, 0);
    } while (got < 0 && errno == EINTR);
    return got == (ssize_t)sizeof runner->report;
}

/*
 * Starts the inner process with the namespaces `flags`, and waits until it is ready. False: these namespaces are not
 * available.
 */
static bool start_inner(struct runner *runner, int flags) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return false;
    }
    runner->socket = fcntl(ends[0], F_DUPFD_CLOEXEC, GW_RUN_FREE);
    int other = fcntl(ends[1], F_DUPFD_CLOEXEC, GW_RUN_FREE);
    close(ends[0]);
    close(ends[1]);
    /*
     * Works like fork(), but with namespaces. The new process needs no separate stack, because this one has one thread.
     */
    runner->inner = (pid_t)syscall(SYS_clone, (unsigned long)(flags | SIGCHLD), 0ul, 0ul, 0ul, 0ul);
    if (runner->inner == 0) {
        close(runner->socket);
        gw_inner_run(&runner->job, flags, other);
    }
    close(other);
    if (runner->inner > 0 && read_report(runner) && runner->report.kind == GW_REPORT_READY) {
        runner->own_namespace = (flags & CLONE_NEWPID) != 0;
        return true;
    }
    if (runner->inner > 0) {
        waitpid(runner->inner, NULL, 0);
    }
    close(runner->socket);
    return false;
}

static bool start_best(struct runner *runner) {
    return start_inner(runner, CLONE_NEWNS | CLONE_NEWPID) ||
           start_inner(runner, CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID) || start_inner(runner, 0);
}

static void ask_inner(const struct runner *runner, char what) {
    send(runner->socket, &what, 1, MSG_NOSIGNAL);
}

/*
 * Waits for bytes from the inner process or, with `control`, from the gateway, until the time `until`. False: the time
 * is up.
 */
static bool wait_for(const struct runner *runner, bool control, int64_t until, bool *control_ready) {
    struct pollfd waited[] = {{.fd = runner->socket, .events = POLLIN},
                              {.fd = control ? GW_RUN_CONTROL : -1, .events = POLLIN}};
    int64_t left = until - fm_now_ms();
    int ready = left > 0 ? poll(waited, 2, (int)left) : 0;
    *control_ready = ready > 0 && waited[1].revents && !waited[0].revents;
    return ready > 0 || (ready < 0 && errno == EINTR) || fm_now_ms() < until;
}

/* Waits only for the report of the inner process. False: no report came within `ms`. */
static bool await_report(struct runner *runner, int64_t ms) {
    struct pollfd waited = {.fd = runner->socket, .events = POLLIN};
    int64_t until = fm_now_ms() + ms;
    int64_t left;
    while ((left = until - fm_now_ms()) > 0) {
        if (poll(&waited, 1, (int)left) > 0) {
            runner->reported = read_report(runner);
            return true;
        }
    }
    return false;
}

static void run_command(struct runner *runner) {
    int64_t until = fm_now_ms() + runner->job.timeout_ms;
    bool asked_to_end = false;
    struct pollfd own = {.fd = runner->socket, .events = POLLIN};
    ask_inner(runner, GW_ASK_START);
    runner->end = "exit";
    while (!asked_to_end && poll(&own, 1, 0) == 0) {
        if (!wait_for(runner, true, until, &asked_to_end)) {
            runner->end = "timeout";
            break;
        }
    }
    if (asked_to_end) {
        runner->end = "aborted";
    }
    if (strcmp(runner->end, "exit") == 0) {
        runner->reported = read_report(runner);
        return;
    }
    ask_inner(runner, GW_ASK_TERMINATE);
    if (!await_report(runner, GW_RUN_GRACE_MS)) {
        ask_inner(runner, GW_ASK_KILL);
        await_report(runner, INNER_LATE_MS);
    }
}

/* Ends what is left after the inner process has ended or must end: its descendants belong to this process now. */
static void finish_runner(struct runner *runner) {
    if (!runner->reported) {
        kill(runner->inner, SIGKILL);
    }
    close(runner->socket);
    gw_processes_end(false);
    if (runner->job.private_folder) {
        gw_remove_folder(runner->job.private_folder);
    }
}

int main(void) {
    static struct runner runner;
    char digest[GW_RUN_DIGEST + 1];
    struct fm_error error;
    for (int fd = GW_RUN_CONTROL; fd < GW_RUN_FREE; fd++) {
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    }
    signal(SIGPIPE, SIG_IGN);
    if (!read_digest(digest)) {
        return 1;
    }
    if (gw_job_read(GW_RUN_JOB, digest, &runner.job, &error) != FM_OK) {
        return report_end(&runner, error.detail);
    }
    /*
     * A process that is cloned later starts in this folder. There, the folder belongs to the process's own mount
     * namespace.
     */
    if (fchdir(GW_RUN_FOLDER) != 0) {
        return report_end(&runner, "the working folder can't be entered; may this user search it?");
    }
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0 ||
        (runner.job.private_folder && mkdir(runner.job.private_folder, 0700) != 0)) {
        return report_end(
            &runner, "the private folder of the call can't be made; is there room in the folder for temporary files?");
    }
    if (!start_best(&runner)) {
        finish_runner(&runner);
        return report_end(&runner, "no process can be started");
    }
    run_command(&runner);
    finish_runner(&runner);
    if (!runner.reported) {
        return report_end(&runner,
                          strcmp(runner.end, "exit") == 0 ? "the process that watches the command was killed" : NULL);
    }
    return report_end(&runner, runner.report.kind == GW_REPORT_FAILED ? runner.report.text : NULL);
}
