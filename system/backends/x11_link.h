/*
 * A connection to an X server, for x11.c: one that is made when it is needed, that never waits for longer than
 * SY_X11_ANSWER_MS, and that knows windows by ids which no later window gets, as X gives its own numbers out again.
 */
#ifndef SY_X11_LINK_H
#define SY_X11_LINK_H

#include "desktop/backend.h"

#include <xcb/xcb.h>
#include <xcb/xcb_ewmh.h>

#define SY_X11_ANSWER_MS 2000 /* for all that one function asks the server */

/* What is read of a window; the first are also read of a window that is to be placed. */
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
    xcb_connection_t *connection; /* NULL: there is none now */
    xcb_ewmh_connection_t ewmh;
    bool has_atoms; /* `ewmh` is filled */
    int screen;
    xcb_window_t root;
    xcb_atom_t properties[SY_X11_PROPERTIES];
    xcb_atom_t delete_window;
    xcb_atom_t take_focus;
    bool has_monitors;    /* RandR 1.5 or later */
    uint8_t randr_events; /* the number of its first event; 0: it has none */

    int descriptor;   /* an epoll of the connection and of `changed_fd` */
    int changed_fd;   /* an eventfd: a change was seen, and nobody was told yet */
    bool changed;     /* the same */
    int64_t until_ms; /* of the function that is at work */
    bool late;        /* the server did not answer until then */
    unsigned probe;   /* a request that is yet to be answered after that; 0: none */
    struct sy_x11_known *known;
    size_t known_count;
    uint32_t last_serial;
    char front[SY_ID_MAX]; /* of x11.c: a window that takes no keys, and was to come to the front last; "": none */
};

/* False on an error (errno). */
FM_MUST_USE bool sy_x11_link_init(struct sy_x11_link *link);
void sy_x11_link_free(struct sy_x11_link *link);

/*
 * Begins a function: connects if need be, and notes the time. FM_UNAVAILABLE: there is no X server, or it shows the
 * windows of a Wayland session; FM_TIMEOUT: it does not answer.
 */
FM_MUST_USE enum fm_code sy_x11_begin(struct sy_x11_link *link, struct fm_error *error);

/* Ends it: FM_OK unless the server has gone or did not answer in time; what came of replies then is not all. */
FM_MUST_USE enum fm_code sy_x11_end(struct sy_x11_link *link, struct fm_error *error);

/* The reply to a request, for free(); NULL: it failed, mostly because the window has gone, or as sy_x11_end tells. */
void *sy_x11_reply(struct sy_x11_link *link, unsigned sequence);

/* The same for a property, of the format `format` (8 or 32), which has at least `items` items. */
xcb_get_property_reply_t *sy_x11_property_reply(struct sy_x11_link *link, unsigned sequence, int format,
                                                uint32_t items);

/* Asks for a property, as many as 4 * `words` bytes of it. */
unsigned sy_x11_ask(struct sy_x11_link *link, xcb_window_t window, xcb_atom_t property, uint32_t words);

/* Closes a connection whose server has gone, so that the descriptor is quiet. */
void sy_x11_drop_lost(struct sy_x11_link *link);

/* Takes the events that have arrived. */
void sy_x11_take_events(struct sy_x11_link *link);

/* What has changed so far will be seen by who reads now. */
void sy_x11_changes_seen(struct sy_x11_link *link);

/* Waits for an event until `until_ms` of fm_now_ms at most, and takes what has come. False: the time is up. */
bool sy_x11_wait_event(struct sy_x11_link *link, int64_t until_ms);

/* From now on the window's changes and end are noticed; writes its id. False when out of memory. */
FM_MUST_USE bool sy_x11_watch(struct sy_x11_link *link, xcb_window_t window, char id[SY_ID_MAX]);

/* It had gone before that, or is about to go. */
void sy_x11_forget(struct sy_x11_link *link, xcb_window_t window);

/* Finds the window of an id, and asks the server if it is still there. XCB_NONE: no, or as sy_x11_end tells. */
xcb_window_t sy_x11_find(struct sy_x11_link *link, const char *id);

#endif
