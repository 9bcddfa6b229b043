/* The outer edges of X11 windows: what the user sees as the window. */
#include "backends/x11_bounds.h"

#include <stdlib.h>

struct sy_x11_extents sy_x11_take_extents(struct sy_x11_link *link, unsigned asked) {
    xcb_get_property_reply_t *reply = sy_x11_property_reply(link, asked, 32, 4);
    const uint32_t *edges = reply ? xcb_get_property_value(reply) : NULL;
    struct sy_x11_extents extents = {0};
    if (edges) { /* any program may write anything there: only 15 bits are used, because coordinates have 15 bits */
        extents = (struct sy_x11_extents){(int)(edges[0] & 0x7fff), (int)(edges[1] & 0x7fff), (int)(edges[2] & 0x7fff),
                                          (int)(edges[3] & 0x7fff)};
    }
    free(reply);
    return extents;
}

struct sy_x11_extents sy_x11_around(const struct sy_x11_extents *frame, const struct sy_x11_extents *shadow) {
    return (struct sy_x11_extents){frame->left - shadow->left, frame->right - shadow->right, frame->top - shadow->top,
                                   frame->bottom - shadow->bottom};
}

struct sy_rect sy_x11_outer_bounds(const xcb_get_geometry_reply_t *geometry,
                                   const xcb_translate_coordinates_reply_t *origin,
                                   const struct sy_x11_extents *extents) {
    int border = geometry->border_width;
    return (struct sy_rect){origin->dst_x - border - extents->left, origin->dst_y - border - extents->top,
                            origin->dst_x + geometry->width + border + extents->right,
                            origin->dst_y + geometry->height + border + extents->bottom};
}
