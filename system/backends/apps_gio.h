/* Applications that are installed, by GIO: .desktop entries of the user's data folders. */
#ifndef SY_APPS_GIO_H
#define SY_APPS_GIO_H

#include "desktop/backend.h"

/*
 * Makes a backend that has applications alone: those that a menu shows and that have windows of their own. Reads the
 * folders when it is asked first, and again after they have changed. On success `desktop` is the caller's, for
 * desktop->backend->free(desktop->self).
 *
 * What `launch` starts has its own session and /dev/null as stdin, stdout and stderr, so that it neither writes
 * into the caller's stream nor ends with it. FM_UNAVAILABLE: it can't be started.
 */
FM_MUST_USE enum fm_code sy_apps_gio_new(struct sy_desktop *desktop, struct fm_error *error);

#endif
