/*
 * The real desktop, made of parts: one has the windows and monitors, one the applications, one the tabs. All of them
 * use fm_now_ms as their clock.
 */
#ifndef SY_JOINED_H
#define SY_JOINED_H

#include "desktop/backend.h"

/* A part whose `backend` is NULL is missing: its functions are not available. */
struct sy_joined_parts {
    struct sy_desktop windows;
    struct sy_desktop apps;
    struct sy_desktop tabs;
};

/*
 * Makes the desktop, and takes ownership of the parts; on failure it frees them. The caller still owns `cancel_fd`:
 * while it is readable, `wait` fails with FM_CANCELLED; -1: nothing is cancelled. On success the caller frees `desktop`
 * by desktop->backend->free(desktop->self). FM_INTERNAL: out of memory.
 */
FM_MUST_USE enum fm_code sy_joined_new(const struct sy_joined_parts *parts, int cancel_fd, struct sy_desktop *desktop,
                                       struct fm_error *error);

#endif
