/*
 * The broker of a browser: starts it with its debugging pipe, which nobody else can open, and lets processes of the
 * same user make those calls that fm-system needs, by a Unix socket. It ends with the browser, and the browser with it.
 */
#ifndef SY_BROKER_H
#define SY_BROKER_H

#include "base/error.h"

struct sy_broker_options {
    const char *browser;     /* path of the program */
    const char *profile;     /* its folder, made where it is missing */
    const char *socket;      /* path; its folder is made, for this user alone */
    const char *const *args; /* for the browser, ends with NULL */
    int end;                 /* readable: end the browser */
};

/*
 * Blocks until the browser has ended. FM_UNAVAILABLE: it could not be started, or ended at once; FM_INVALID_REQUEST: an
 * argument would open another way to it. `ready` is called when the browser answers.
 */
FM_MUST_USE enum fm_code sy_broker_run(const struct sy_broker_options *options, void (*ready)(const char *socket),
                                       struct fm_error *error);

#endif
