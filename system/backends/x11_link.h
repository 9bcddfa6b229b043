/*
 * A connection to an X server, for x11.c. The connection is made when it is needed, and never waits longer than
 * SY_X11_ANSWER_MS. X gives the number of a closed window to a new window. So windows here have ids that no later
 * window gets.
 */
#ifndef SY_X11_LINK_H
#define SY_X11_LINK_H

#include "desktop/backend.h"

#include <xcb/xcb.h>
#include <xcb/xcb_ewmh.h>

#define SY_X11_ANSWER_MS 2000 /* for all requests of one function together */

/* The properties that are read of a listed window. The first three are also read before a window is placed. */
enum sy_x11_property {
    SY_X11_STATE,
    SY_X11_FRAME,
    SY_X11_SHADOW, /* _GTK_FRAME_EXTENTS: what an application draws around its window */
    SY_X11_CLASS,
    SY_X11_NET_NAME,
    SY_X11_NAME,
    SY_X11_PID,
    SY_X11_MACHINE,
    SY_X11_TYPE,
    SY_X11_PROPERTIES
};

struct sy_x11_known; /* a window, and the number that makes its id unique */

struct sy_x11_link {
    xcb_connection_t *connection; /* NULL: there is no connection now */
    xcb_ewmh_connection_t ewmh;
    bool has_atoms; /* `ewmh` is filled */
    int screen;
    xcb_window_t root;
    xcb_atom_t properties[SY_X11_PROPERTIES];
    xcb_atom_t delete_window;
    xcb_atom_t take_focus;
    bool has_monitors;    /* RandR 1.5 or later */
    uint8_t randr_events; /* the number of RandR's first event; 0: there is no RandR */

    int descriptor;   /* an epoll of the connection and of `changed_fd` */
    int changed_fd;   /* an eventfd: readable while `changed` is true */
    bool changed;     /* a change was seen after the last call of sy_x11_changes_seen */
    int64_t until_ms; /* the time limit of the function that runs */
    bool late;        /* the server did not answer in that time */
    unsigned probe;   /* the probe: the request that a late server must answer first; 0: none */
    struct sy_x11_known *known;
    size_t known_count;
    uint32_t last_serial;
    char front[SY_ID_MAX]; /* for x11.c: the window of the last focus, if it takes no keys; else "" */
};

/* False on an error (errno). */
FM_MUST_USE bool sy_x11_link_init(struct sy_x11_link *link);
void sy_x11_link_free(struct sy_x11_link *link);

/*
 * Begins a function: connects if necessary, and starts its time limit. FM_UNAVAILABLE: there is no X server, or it is
 * Xwayland, in a Wayland session; FM_TIMEOUT: it does not answer.
 */
FM_MUST_USE enum fm_code sy_x11_begin(struct sy_x11_link *link, struct fm_error *error);

/* Ends a function. Fails if the server has ended or did not answer in time. Then some replies are missing. */
FM_MUST_USE enum fm_code sy_x11_end(struct sy_x11_link *link, struct fm_error *error);

/* The reply to a request, for free(). NULL: it failed, mostly because the window is gone, or for the reason that
 * sy_x11_end returns. */
void *sy_x11_reply(struct sy_x11_link *link, unsigned sequence);

/*
 * The reply to sy_x11_ask, like sy_x11_reply. It is also NULL if the property's format is not `format` (8 or 32), or
 * the property has fewer than `items` items.
 */
xcb_get_property_reply_t *sy_x11_property_reply(struct sy_x11_link *link, unsigned sequence, int format,
                                                uint32_t items);

/*
 * Asks for a property, at most 4 * `words` bytes of it. Returns the request's number, for sy_x11_reply and
 * sy_x11_property_reply.
 */
unsigned sy_x11_ask(struct sy_x11_link *link, xcb_window_t window, xcb_atom_t property, uint32_t words);

/* Closes a connection whose server has ended, so that the descriptor is quiet. */
void sy_x11_drop_lost(struct sy_x11_link *link);

/* Takes the events that have arrived. */
void sy_x11_take_events(struct sy_x11_link *link);

/* Resets `changed`: the caller is about to read the lists, or reports the changes. */
void sy_x11_changes_seen(struct sy_x11_link *link);

/* Waits for an event, at most until `until_ms` of fm_now_ms, and takes all that have come. False: the time is up, or
 * the connection is broken. */
bool sy_x11_wait_event(struct sy_x11_link *link, int64_t until_ms);

/* Begins to watch the window for changes and for its end, and writes its id. False when out of memory. */
FM_MUST_USE bool sy_x11_watch(struct sy_x11_link *link, xcb_window_t window, char id[SY_ID_MAX]);

/* Forgets a window that is gone. If X gives its number to a new window, that one gets another id. */
void sy_x11_forget(struct sy_x11_link *link, xcb_window_t window);

/* Finds the window of an id, and asks the server if the window still exists. XCB_NONE: it does not exist, or the
 * request failed for the reason that sy_x11_end returns. */
xcb_window_t sy_x11_find(struct sy_x11_link *link, const char *id);

#endif
