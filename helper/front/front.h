/* The front: it serves a host, from its first frame to the end. helper/README.md has the picture. */
#ifndef FM_FRONT_FRONT_H
#define FM_FRONT_FRONT_H

#include "front/state.h"

#define FM_HOST_QUEUE_MAX (8u << 20) /* most bytes queued for the host; with more the host counts as gone */

/* The descriptors that connect the front to the host. */
struct fm_wire {
    int in;     /* frames from the host; the caller closes it */
    int out;    /* frames to the host; closed before fm_front_run returns */
    int end_fd; /* readable when the front must end; the caller closes it. -1: only the end of `in` ends the front */
};

/*
 * Reads the files of the engines, and logs why a file can't be used. Call it before fm_front_run, on a front that is
 * all zero; `options` must live as long as the front. False when out of memory.
 */
FM_MUST_USE bool fm_front_read_engines(struct fm_front *front, const struct fm_options *options);

/*
 * Serves until the end. Returns the process's exit status. Blocks; call it once in a process. If front->stuck is set
 * afterwards, a thread did not end and still uses the state, so the caller may only call _exit.
 */
int fm_front_run(struct fm_front *front, const struct fm_options *options, const struct fm_wire *wire);

#endif
