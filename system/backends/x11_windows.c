/*
 * Actions are requests to the window manager, as a pager or taskbar sends them. Each action first checks that the
 * window is still the one that the id means.
 */
#include "backends/x11_windows.h"
#include "backends/x11_bounds.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIST_WORDS     256 /* the most atoms that are read of a property */
#define RESTORE_MS     300 /* until a maximised window is restored, and again until it is placed */
#define START_MS       500 /* until a program that has shown its window also sets WM_PROTOCOLS */
#define SOURCE_IS_USER XCB_EWMH_CLIENT_SOURCE_TYPE_OTHER /* 2 in EWMH: a pager, which acts for the user */

/* Begins an action: finds the window. */
static enum fm_code begin_action(struct sy_x11_link *link, const char *id, xcb_window_t *window, struct fm_error *error) {
    enum fm_code code = sy_x11_begin(link, error);
    if (code != FM_OK) {
        return code;
    }
    *window = sy_x11_find(link, id);
    if (*window) {
        return FM_OK;
    }
    code = sy_x11_end(link, error);
    return code ? code : fm_fail(error, FM_NOT_FOUND, "the window %s is not there any more", id);
}

/* Whether a property that is a list of atoms has this one. */
static bool has_atom(const xcb_get_property_reply_t *list, xcb_atom_t atom) {
    const xcb_atom_t *atoms = list ? xcb_get_property_value(list) : NULL;
    for (uint32_t i = 0; list && i < list->value_len; i++) {
        if (atoms[i] == atom) {
            return true;
        }
    }
    return false;
}

/* ICCCM, 4.1.7: a window whose input hint is false and that does not support WM_TAKE_FOCUS gets no keys. */
static bool takes_keys(struct sy_x11_link *link, xcb_window_t window) {
    const uint32_t input_flag = 1;
    unsigned hints_asked = sy_x11_ask(link, window, XCB_ATOM_WM_HINTS, 2);
    unsigned protocols_asked = sy_x11_ask(link, window, link->ewmh.WM_PROTOCOLS, LIST_WORDS);
    xcb_get_property_reply_t *hints = sy_x11_property_reply(link, hints_asked, 32, 2);
    xcb_get_property_reply_t *protocols = sy_x11_property_reply(link, protocols_asked, 32, 0);
    const uint32_t *flags_and_input = hints ? xcb_get_property_value(hints) : NULL;
    bool refuses = hints && (flags_and_input[0] & input_flag) && !flags_and_input[1];
    bool takes = !refuses || has_atom(protocols, link->take_focus);
    free(hints);
    free(protocols);
    return takes;
}

enum fm_code sy_x11_focus(void *self, const char *id, struct fm_error *error) {
    struct sy_x11_link *link = self;
    xcb_window_t window;
    enum fm_code code = begin_action(link, id, &window, error);
    if (code != FM_OK) {
        return code;
    }
    snprintf(link->front, sizeof link->front, "%s", takes_keys(link, window) ? "" : id);
    xcb_ewmh_request_change_active_window(&link->ewmh, link->screen, window, SOURCE_IS_USER, XCB_CURRENT_TIME,
                                          XCB_NONE);
    return sy_x11_end(link, error);
}

/*
 * Whether the window supports WM_DELETE_WINDOW. If it does not, window managers kill its program, and unsaved data is
 * lost. A program that has just started may set this property a little later, so the function waits for that.
 */
static bool can_be_asked(struct sy_x11_link *link, xcb_window_t window) {
    int64_t until_ms = fm_now_ms() + START_MS;
    bool can;
    do {
        unsigned asked = sy_x11_ask(link, window, link->ewmh.WM_PROTOCOLS, LIST_WORDS);
        xcb_get_property_reply_t *protocols = sy_x11_property_reply(link, asked, 32, 0);
        can = has_atom(protocols, link->delete_window);
        free(protocols);
    } while (!can && !link->late && sy_x11_wait_event(link, until_ms));
    return can;
}

enum fm_code sy_x11_close(void *self, const char *id, struct fm_error *error) {
    struct sy_x11_link *link = self;
    xcb_window_t window;
    enum fm_code code = begin_action(link, id, &window, error);
    if (code != FM_OK) {
        return code;
    }
    if (can_be_asked(link, window)) {
        xcb_ewmh_request_close_window(&link->ewmh, link->screen, window, XCB_CURRENT_TIME, SOURCE_IS_USER);
    }
    return sy_x11_end(link, error);
}

/* The properties of a window that is to be placed. */
struct standing {
    struct sy_x11_extents frame;
    struct sy_x11_extents shadow;
    struct sy_rect bounds;
    bool fixed; /* maximised or fullscreen: it can't be moved */
};

static struct standing read_standing(struct sy_x11_link *link, xcb_window_t window) {
    const xcb_ewmh_connection_t *ewmh = &link->ewmh;
    unsigned geometry_asked = xcb_get_geometry(link->connection, window).sequence;
    unsigned origin_asked = xcb_translate_coordinates(link->connection, window, link->root, 0, 0).sequence;
    unsigned state_asked = sy_x11_ask(link, window, link->properties[SY_X11_STATE], LIST_WORDS);
    unsigned frame_asked = sy_x11_ask(link, window, link->properties[SY_X11_FRAME], 4);
    unsigned shadow_asked = sy_x11_ask(link, window, link->properties[SY_X11_SHADOW], 4);
    xcb_get_geometry_reply_t *geometry = sy_x11_reply(link, geometry_asked);
    xcb_translate_coordinates_reply_t *origin = sy_x11_reply(link, origin_asked);
    xcb_get_property_reply_t *state = sy_x11_property_reply(link, state_asked, 32, 0);
    struct standing standing = {
        .frame = sy_x11_take_extents(link, frame_asked),
        .shadow = sy_x11_take_extents(link, shadow_asked),
        .fixed = has_atom(state, ewmh->_NET_WM_STATE_MAXIMIZED_HORZ) ||
                 has_atom(state, ewmh->_NET_WM_STATE_MAXIMIZED_VERT) || has_atom(state, ewmh->_NET_WM_STATE_FULLSCREEN),
    };
    struct sy_x11_extents extents = sy_x11_around(&standing.frame, &standing.shadow);
    if (geometry && origin) {
        standing.bounds = sy_x11_outer_bounds(geometry, origin, &extents);
    }
    free(geometry);
    free(origin);
    free(state);
    return standing;
}

static void ask_to_restore(struct sy_x11_link *link, xcb_window_t window) {
    const xcb_ewmh_connection_t *ewmh = &link->ewmh;
    xcb_ewmh_request_change_wm_state(&link->ewmh, link->screen, window, XCB_EWMH_WM_STATE_REMOVE,
                                     ewmh->_NET_WM_STATE_MAXIMIZED_HORZ, ewmh->_NET_WM_STATE_MAXIMIZED_VERT,
                                     SOURCE_IS_USER);
    xcb_ewmh_request_change_wm_state(&link->ewmh, link->screen, window, XCB_EWMH_WM_STATE_REMOVE,
                                     ewmh->_NET_WM_STATE_FULLSCREEN, XCB_NONE, SOURCE_IS_USER);
}

static struct standing restore(struct sy_x11_link *link, xcb_window_t window) {
    int64_t until_ms = fm_now_ms() + RESTORE_MS;
    struct standing standing;
    ask_to_restore(link, window);
    do {
        standing = read_standing(link, window);
    } while (standing.fixed && !link->late && sy_x11_wait_event(link, until_ms));
    return standing;
}

static uint32_t at_least_1(int length) {
    return length > 1 ? (uint32_t)length : 1;
}

/* With this gravity the position is that of the frame, not of the application's window inside it. */
static void ask_to_move(struct sy_x11_link *link, xcb_window_t window, const struct sy_rect *bounds,
                        const struct standing *standing) {
    const struct sy_x11_extents *shadow = &standing->shadow;
    struct sy_x11_extents extents = sy_x11_around(&standing->frame, shadow);
    xcb_ewmh_request_moveresize_window(&link->ewmh, link->screen, window, XCB_GRAVITY_NORTH_WEST, SOURCE_IS_USER,
                                       XCB_EWMH_MOVERESIZE_WINDOW_X | XCB_EWMH_MOVERESIZE_WINDOW_Y |
                                           XCB_EWMH_MOVERESIZE_WINDOW_WIDTH | XCB_EWMH_MOVERESIZE_WINDOW_HEIGHT,
                                       (uint32_t)(bounds->left - shadow->left), (uint32_t)(bounds->top - shadow->top),
                                       at_least_1(bounds->right - bounds->left - extents.left - extents.right),
                                       at_least_1(bounds->bottom - bounds->top - extents.top - extents.bottom));
}

/*
 * A restored window gets its frame, or draws its shadow, some time after it stops being maximised. Then its size is not
 * the requested one, so the request is sent again.
 */
static void move_again(struct sy_x11_link *link, xcb_window_t window, const struct sy_rect *bounds,
                       const struct standing *before) {
    int64_t until_ms = fm_now_ms() + RESTORE_MS;
    struct standing used = *before;
    bool there = false;
    while (!there && !link->late && sy_x11_wait_event(link, until_ms)) {
        struct standing standing = read_standing(link, window);
        there = memcmp(&standing.bounds, bounds, sizeof *bounds) == 0;
        if (memcmp(&standing.frame, &used.frame, sizeof used.frame) != 0 ||
            memcmp(&standing.shadow, &used.shadow, sizeof used.shadow) != 0) {
            ask_to_move(link, window, bounds, &standing);
            used = standing;
            there = false;
        }
    }
}

enum fm_code sy_x11_place(void *self, const char *id, const struct sy_rect *bounds, struct fm_error *error) {
    struct sy_x11_link *link = self;
    xcb_window_t window;
    enum fm_code code = begin_action(link, id, &window, error);
    if (code != FM_OK) {
        return code;
    }
    struct standing standing = read_standing(link, window);
    if (standing.fixed) {
        standing = restore(link, window);
        ask_to_move(link, window, bounds, &standing);
        move_again(link, window, bounds, &standing);
    } else {
        ask_to_move(link, window, bounds, &standing);
    }
    return sy_x11_end(link, error);
}
