/* Installed applications, by GIO: the .desktop entries in the data folders. */
#ifndef SY_APPS_GIO_H
#define SY_APPS_GIO_H

#include "desktop/backend.h"

/*
 * Makes a backend that has only applications: those that a menu shows and that have windows of their own. It reads the
 * folders on the first request, and again after they have changed. On success the caller frees `desktop` by
 * desktop->backend->free(desktop->self).
 *
 * A program that `launch` starts has its own session, and /dev/null as stdin, stdout and stderr. So it does not write
 * into the caller's stream, and does not end with the caller. FM_UNAVAILABLE: the program can't be started.
 */
FM_MUST_USE enum fm_code sy_apps_gio_new(struct sy_desktop *desktop, struct fm_error *error);

#endif
