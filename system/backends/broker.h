/*
 * The broker of a browser. It starts the browser with a debugging pipe, which no other process can open. By a Unix
 * socket, processes of the same user can make the calls that fm-system needs, and no others. The broker ends with the
 * browser, and the browser with the broker.
 */
#ifndef SY_BROKER_H
#define SY_BROKER_H

#include "base/error.h"

struct sy_broker_options {
    const char *browser;     /* path of the program */
    const char *profile;     /* the browser's profile folder, made if it is missing */
    const char *socket;      /* path; its folder is made, only for this user */
    const char *const *args; /* arguments for the browser; the list ends with NULL */
    int end;                 /* a descriptor; when it becomes readable, the browser is ended */
};

/*
 * Blocks until the browser has ended. FM_UNAVAILABLE: the browser could not be started, or ended at once;
 * FM_INVALID_REQUEST: an argument would open another way to the browser. `ready` is called when the browser first
 * answers.
 */
FM_MUST_USE enum fm_code sy_broker_run(const struct sy_broker_options *options, void (*ready)(const char *socket),
                                       struct fm_error *error);

#endif
