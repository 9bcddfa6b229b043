/*
 * The place of an X11 window as its user sees it: with the frame that the window manager draws around the window,
 * without the shadow that some applications draw inside of it.
 */
#ifndef SY_X11_BOUNDS_H
#define SY_X11_BOUNDS_H

#include "backends/x11_link.h"

/* Widths of edges, in the order of the properties _NET_FRAME_EXTENTS and _GTK_FRAME_EXTENTS. */
struct sy_x11_extents {
    int left, right, top, bottom;
};

/*
 * Reads the reply to a request for a property with extents (`asked` is the request's number); all 0 if the property is
 * not set.
 */
struct sy_x11_extents sy_x11_take_extents(struct sy_x11_link *link, unsigned asked);

/* What the user sees around the window that the application made: the frame, minus the shadow inside that window. */
struct sy_x11_extents sy_x11_around(const struct sy_x11_extents *frame, const struct sy_x11_extents *shadow);

/*
 * The bounds that the user sees. `origin` is the origin of the window's inside on the root; `extents` is the result of
 * sy_x11_around.
 */
struct sy_rect sy_x11_outer_bounds(const xcb_get_geometry_reply_t *geometry,
                                   const xcb_translate_coordinates_reply_t *origin,
                                   const struct sy_x11_extents *extents);

#endif
