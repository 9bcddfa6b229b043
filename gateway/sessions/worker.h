/*
 * A thread with a queue: jobs go in on the loop thread, are run one after the other on the worker's thread, and come
 * back on the loop thread. The journal and the memory have one each.
 *
 * All functions: loop thread. Only gw_worker_close blocks.
 */
#ifndef GW_SESSIONS_WORKER_H
#define GW_SESSIONS_WORKER_H

#include "base/error.h"

#include <stdbool.h>
#include <uv.h>

struct gw_worker;

/* A job is a member of its owner's struct. The worker uses it from gw_worker_add until `done`. */
struct gw_job {
    struct gw_job *next;
    void (*done)(struct gw_job *job); /* loop thread; may free the job and add others */
    bool urgent;                      /* goes before all jobs that are not urgent */
};

struct gw_worker_options {
    uv_loop_t *loop;
    /* Worker's thread: runs the jobs of a list, in their order. It must change neither `next` nor the order. */
    void (*run)(void *context, struct gw_job *jobs);
    void *context;
    bool in_batches; /* `run` gets all jobs that wait; otherwise one at a time */
};

/* Starts the thread. FM_UNAVAILABLE: the system has no thread or descriptor left; FM_INTERNAL: no memory. */
FM_MUST_USE enum fm_code gw_worker_open(const struct gw_worker_options *options, struct gw_worker **worker,
                                        struct fm_error *error);

/* Adds a job. Never fails. `done` is called once, later, from the loop or from gw_worker_close. */
void gw_worker_add(struct gw_worker *worker, struct gw_job *job);

/*
 * Runs the queued jobs and those that their callbacks add, calls back for all of them and ends the thread. Blocks for
 * as long as that takes. The loop must run once more, which frees the worker and then calls `closed` (NULL: nothing).
 */
void gw_worker_close(struct gw_worker *worker, void (*closed)(void *context), void *context);

#endif
