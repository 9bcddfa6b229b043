/* What is done to X11 windows: members of x11.c's backend. `self` is the connection, a struct sy_x11_link. */
#ifndef SY_X11_WINDOWS_H
#define SY_X11_WINDOWS_H

#include "desktop/backend.h"

/* Asks for the keys and the front. Of a window that takes no keys it notes that it was asked for the front. */
enum fm_code sy_x11_focus(void *self, const char *id, struct fm_error *error);

/* Asks for these outer bounds. Of a window that was maximised it takes up to 0.6 s, until it is not, and has its frame.
 */
enum fm_code sy_x11_place(void *self, const char *id, const struct sy_rect *bounds, struct fm_error *error);

/* Asks it to close, unless that would kill its program: then nothing happens, after 0.5 s. */
enum fm_code sy_x11_close(void *self, const char *id, struct fm_error *error);

#endif
