/* The front: what serves a host, from its first frame to the end. helper/README.md has the picture. */
#ifndef FM_FRONT_FRONT_H
#define FM_FRONT_FRONT_H

#include "front/state.h"

#define FM_HOST_QUEUE_MAX (8u << 20) /* bytes queued for the host; beyond it the host counts as gone */

/* Where the host is. */
struct fm_wire {
    int in;     /* frames from it; stays the caller's */
    int out;    /* frames to it; closed before fm_front_run returns */
    int end_fd; /* polls readable when the front is to end; stays the caller's. -1: the end of `in` is the only one */
};

/*
 * Reads what the files of the engines say, and logs why one can't be used. Call it before fm_front_run, on a front that
 * is zeroed; `options` has to stay as long as the front. False when out of memory.
 */
FM_MUST_USE bool fm_front_read_engines(struct fm_front *front, const struct fm_options *options);

/*
 * Serves until the end. Returns the process's exit status. Blocks; once in a process. front->stuck: a thread could not
 * be brought to its end, and uses the state still, so only _exit is left.
 */
int fm_front_run(struct fm_front *front, const struct fm_options *options, const struct fm_wire *wire);

#endif
