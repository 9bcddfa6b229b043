/*
 * Windows and monitors of an X11 desktop whose window manager follows the Extended Window Manager Hints (EWMH 1.5). The
 * backend connects to the server of DISPLAY at its first request, and again after that server has ended.
 */
#ifndef SY_X11_H
#define SY_X11_H

#include "desktop/backend.h"

/*
 * Makes the backend, without tabs and applications; it does not connect yet. On success the caller frees `desktop` by
 * desktop->backend->free(desktop->self). Its functions return FM_UNAVAILABLE if there is no display, no window manager
 * of EWMH, or a Wayland session; FM_TIMEOUT if the server does not answer within 2 s.
 *
 * A window that has no WM_DELETE_WINDOW can only be killed: `close` leaves it open.
 */
FM_MUST_USE enum fm_code sy_x11_new(struct sy_desktop *desktop, struct fm_error *error);

#endif
