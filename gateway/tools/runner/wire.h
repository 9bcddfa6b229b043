/*
 * What the gateway and fm-tool-run agree on: the descriptors that the runner inherits, and what goes over the control
 * socket. The gateway writes GW_RUN_DIGEST hexadecimal digits, the SHA-256 of the job. Any byte after them means
 * "end", and so does the end of the stream. The runner answers with one line of JSON, when no process is left:
 *     {"namespace":true,"end":"exit"|"timeout"|"aborted"|"failed","status":N,"signal":N,"error":"..."}
 * The job is JSON in a sealed memfd: argv, env, sandbox (off, write, strict), folder_writable, private (a folder that
 * the runner makes and removes; "" for none), hidden (folders and files), timeout_ms, processes, pipes.
 */
#ifndef GW_TOOLS_RUNNER_WIRE_H
#define GW_TOOLS_RUNNER_WIRE_H

enum {
    GW_RUN_CONTROL = 3,
    GW_RUN_JOB = 4,
    GW_RUN_FOLDER = 5,  /* the working folder, opened with O_PATH */
    GW_RUN_PIPE_IN = 6, /* the command's descriptor 3, if the job says `pipes` */
    GW_RUN_PIPE_OUT = 7,
    GW_RUN_FREE = 10, /* the runner's own descriptors begin here */
};

#define GW_RUN_DIGEST  64
#define GW_RUN_JOB_MAX (1024u * 1024u)

/* How long a process has between SIGTERM and SIGKILL. Together with what follows, that stays below 2 s. */
#define GW_RUN_GRACE_MS 500

#endif
