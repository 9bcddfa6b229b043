/*
 * Runs a command under fm-tool-run, on the loop, with its output, its pipes and its end. The loop's thread; callbacks
 * come from the loop.
 */
#ifndef GW_TOOLS_PROCESS_H
#define GW_TOOLS_PROCESS_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

struct gw_process;

enum gw_process_why {
    GW_PROCESS_EXIT,
    GW_PROCESS_TIMEOUT,
    GW_PROCESS_ABORTED,
    GW_PROCESS_FAILED, /* the command was not started: `error` says why */
    GW_PROCESS_LOST,   /* the runner ended without a report */
};

struct gw_process_end {
    enum gw_process_why why;
    int exit_code; /* 128 + N for signal N */
    bool pid_namespace;
    char error[512];
};

struct gw_process_handlers {
    void *context;
    void (*output)(void *context, const char *data, size_t len);    /* stdout and stderr, as they come */
    void (*message)(void *context, const char *data, size_t len);   /* from the command's pipe; NULL: no pipe */
    void (*ended)(void *context, const struct gw_process_end *end); /* called once, when nothing of it is left */
};

struct gw_process_start {
    uv_loop_t *loop;
    const char *runner;
    int job;            /* sealed memfd; the caller keeps it and the folder */
    int folder;         /* O_PATH */
    const char *digest; /* the digest of the job, 64 digits */
    bool pipes;
};

/* Starts the command. FM_UNAVAILABLE or FM_INTERNAL: nothing runs, and nothing calls back. */
FM_MUST_USE enum fm_code gw_process_start(const struct gw_process_start *start,
                                          const struct gw_process_handlers *handlers, struct gw_process **process,
                                          struct fm_error *error);

/* Asks the command to end; `ended` follows. Do not use the process after `ended`. */
void gw_process_abort(struct gw_process *process);

/* Writes to the command's pipe. `data` is copied. False: the command is gone, or there is no memory. */
FM_MUST_USE bool gw_process_write(struct gw_process *process, const char *data, size_t len);

#endif
