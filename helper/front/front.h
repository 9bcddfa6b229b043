/* The front: it serves a host, from its first frame to the end. helper/README.md has the picture. */
#ifndef FM_FRONT_FRONT_H
#define FM_FRONT_FRONT_H

#include "front/state.h"

#define FM_HOST_QUEUE_MAX (8u << 20) /* bytes queued for the host; beyond it the host counts as gone */

/* How to talk to the host. */
struct fm_wire {
    int in;     /* frames from the host; stays the caller's */
    int out;    /* frames to the host; closed before fm_front_run returns */
    int end_fd; /* polls readable when the front must end; stays the caller's. -1: only the end of `in` ends it */
};

/*
 * Reads the files of the engines, and logs why one can't be used. Call it before fm_front_run, on a front that is all
 * zero; `options` must live as long as the front. False when out of memory.
 */
FM_MUST_USE bool fm_front_read_engines(struct fm_front *front, const struct fm_options *options);

/*
 * Serves until the end. Returns the process's exit status. Blocks; call it once in a process. front->stuck: a thread
 * did not end and still uses the state, so the caller may only call _exit.
 */
int fm_front_run(struct fm_front *front, const struct fm_options *options, const struct fm_wire *wire);

#endif
