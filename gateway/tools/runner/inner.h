/*
 * The process between the runner and the command: the first one of a PID namespace, if the kernel allows one, or else a
 * subreaper. It starts the command, reaps processes that have lost their parent, and ends when no process is left.
 */
#ifndef GW_TOOLS_RUNNER_INNER_H
#define GW_TOOLS_RUNNER_INNER_H

#include "tools/runner/job.h"

enum gw_report_kind {
    GW_REPORT_READY,        /* the inner process waits for a byte to start the command */
    GW_REPORT_NO_NAMESPACE, /* this kind of namespace can't be had: the inner process ends */
    GW_REPORT_FAILED,       /* the command was not started: `text` says why */
    GW_REPORT_ENDED,        /* the command has ended, with `status` as of waitpid, and nothing is left of it */
};

/* What the inner process reports: one message on the socket for each report. */
struct gw_report {
    enum gw_report_kind kind;
    int status;
    char text[400];
};

/* What the runner asks the inner process: a byte for each request. The end of the stream is GW_ASK_KILL. */
enum gw_ask { GW_ASK_START = 's', GW_ASK_TERMINATE = 't', GW_ASK_KILL = 'k' };

/* Runs in the new process and never returns. `flags`: the namespaces (CLONE_NEW...) that it was made with. */
_Noreturn void gw_inner_run(const struct gw_job *job, int flags, int socket);

#endif
