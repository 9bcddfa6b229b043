/* Actions on X11 windows: functions of x11.c's backend. `self` is the connection, a struct sy_x11_link. */
#ifndef SY_X11_WINDOWS_H
#define SY_X11_WINDOWS_H

#include "desktop/backend.h"

/* Asks for the focus and the front. If the window takes no keys, notes the window in `front` of the connection. */
enum fm_code sy_x11_focus(void *self, const char *id, struct fm_error *error);

/*
 * Asks the window manager to give a window these outer bounds. A maximised window is restored first, and then the call
 * takes up to 0.6 s.
 */
enum fm_code sy_x11_place(void *self, const char *id, const struct sy_rect *bounds, struct fm_error *error);

/* Asks the window to close. If that would kill its program, waits 0.5 s and does nothing. */
enum fm_code sy_x11_close(void *self, const char *id, struct fm_error *error);

#endif
