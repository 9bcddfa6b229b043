/*
 * A connection to an X server.
 *
 * Replies are polled, because libxcb's own waits have no time limit. If the server was stopped or is grabbed, a command
 * waits SY_X11_ANSWER_MS. After that only one small request, the probe, is sent until the server answers it.
 *
 * Events are taken whenever the connection is read. Otherwise they would pile up in libxcb, where the descriptor does
 * not show them. A change is noted in `changed`, which the descriptor shows.
 */
#include "backends/x11_link.h"
#include "base/clock.h"
#include "base/platform.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <xcb/randr.h>
#include <xcb/xcbext.h>

#define CONNECT_STACK  (256u * 1024u)
#define CONNECT_CPU_MS (SY_X11_ANSWER_MS / 4)

struct sy_x11_known {
    xcb_window_t window;
    uint32_t serial;
};

bool sy_x11_link_init(struct sy_x11_link *link) {
    *link = (struct sy_x11_link){.descriptor = epoll_create1(EPOLL_CLOEXEC),
                                 .changed_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    struct epoll_event event = {.events = EPOLLIN};
    if (link->descriptor >= 0 && link->changed_fd >= 0 &&
        epoll_ctl(link->descriptor, EPOLL_CTL_ADD, link->changed_fd, &event) == 0) {
        return true;
    }
    sy_x11_link_free(link);
    return false;
}

static void forget_all(struct sy_x11_link *link) {
    free(link->known);
    link->known = NULL;
    link->known_count = 0;
}

static void close_connection(struct sy_x11_link *link) {
    if (link->has_atoms) {
        xcb_ewmh_connection_wipe(&link->ewmh);
        link->has_atoms = false;
    }
    if (link->connection) {
        xcb_disconnect(link->connection);
        link->connection = NULL;
    }
}

static void disconnect(struct sy_x11_link *link) {
    close_connection(link);
    link->late = false;
    link->probe = 0;
    forget_all(link);
}

void sy_x11_link_free(struct sy_x11_link *link) {
    disconnect(link);
    if (link->descriptor >= 0) {
        close(link->descriptor);
    }
    if (link->changed_fd >= 0) {
        close(link->changed_fd);
    }
}

/* ---- changes ---- */

static void note_change(struct sy_x11_link *link) {
    if (!link->changed) {
        link->changed = true;
        (void)eventfd_write(link->changed_fd, 1);
    }
}

void sy_x11_changes_seen(struct sy_x11_link *link) {
    eventfd_t count;
    if (link->changed) {
        link->changed = false;
        (void)eventfd_read(link->changed_fd, &count);
    }
}

void sy_x11_forget(struct sy_x11_link *link, xcb_window_t window) {
    for (size_t i = 0; i < link->known_count; i++) {
        if (link->known[i].window == window) {
            link->known[i] = link->known[--link->known_count];
            return;
        }
    }
}

static bool is_read(const struct sy_x11_link *link, const xcb_property_notify_event_t *event) {
    if (event->window == link->root) {
        return event->atom == link->ewmh._NET_CLIENT_LIST || event->atom == link->ewmh._NET_CLIENT_LIST_STACKING ||
               event->atom == link->ewmh._NET_ACTIVE_WINDOW || event->atom == link->ewmh._NET_SUPPORTING_WM_CHECK;
    }
    for (int i = 0; i < SY_X11_PROPERTIES; i++) {
        if (event->atom == link->properties[i]) {
            return true;
        }
    }
    return false;
}

static void take_event(struct sy_x11_link *link, const xcb_generic_event_t *event) {
    int type = event->response_type & 0x7f;
    if (type == 0) {
        return; /* an error: the window was already gone when its events were requested */
    }
    if (type == XCB_DESTROY_NOTIFY) {
        sy_x11_forget(link, ((const xcb_destroy_notify_event_t *)event)->window);
    }
    if (type != XCB_PROPERTY_NOTIFY || is_read(link, (const xcb_property_notify_event_t *)event)) {
        note_change(link);
    }
}

void sy_x11_take_events(struct sy_x11_link *link) {
    xcb_generic_event_t *event;
    while ((event = xcb_poll_for_event(link->connection))) {
        take_event(link, event);
        free(event);
    }
    if (xcb_connection_has_error(link->connection)) {
        note_change(link);
    }
}

/* Waits until the server sends something. False: the time is up, or the connection is broken. */
static bool wait_input(struct sy_x11_link *link, int64_t until_ms) {
    int64_t left = until_ms - fm_now_ms();
    struct fm_waited waited = {.fd = xcb_get_file_descriptor(link->connection), .input = true};
    if (left <= 0 || xcb_flush(link->connection) <= 0) {
        return false;
    }
    return fm_wait(&waited, 1, (int)(left < INT32_MAX ? left : INT32_MAX)) > 0;
}

bool sy_x11_wait_event(struct sy_x11_link *link, int64_t until_ms) {
    sy_x11_take_events(link);
    bool came = wait_input(link, until_ms);
    sy_x11_take_events(link);
    return came && !xcb_connection_has_error(link->connection);
}

/* ---- replies ---- */

/* Waits for a reply; `*reply` is NULL if the request failed. False: the time is up. */
static bool await_reply(struct sy_x11_link *link, unsigned sequence, void **reply) {
    xcb_generic_error_t *fault = NULL;
    *reply = NULL;
    for (bool answered = false; !answered;) {
        answered = xcb_poll_for_reply(link->connection, sequence, reply, &fault);
        if (!answered) {
            sy_x11_take_events(link); /* this reads what has arrived */
            answered = xcb_poll_for_reply(link->connection, sequence, reply, &fault);
        }
        if (!answered && (link->late || !wait_input(link, link->until_ms))) {
            return false;
        }
    }
    free(fault);
    return true;
}

void *sy_x11_reply(struct sy_x11_link *link, unsigned sequence) {
    void *reply;
    if (!await_reply(link, sequence, &reply)) {
        link->late = true;
        xcb_discard_reply(link->connection, sequence);
    }
    return reply;
}

unsigned sy_x11_ask(struct sy_x11_link *link, xcb_window_t window, xcb_atom_t property, uint32_t words) {
    return xcb_get_property(link->connection, 0, window, property, XCB_GET_PROPERTY_TYPE_ANY, 0, words).sequence;
}

xcb_get_property_reply_t *sy_x11_property_reply(struct sy_x11_link *link, unsigned sequence, int format,
                                                uint32_t items) {
    xcb_get_property_reply_t *reply = sy_x11_reply(link, sequence);
    if (reply && (reply->format != format || reply->value_len < items)) {
        free(reply);
        reply = NULL;
    }
    return reply;
}

/* ---- connecting ---- */

/* One attempt to connect, on a thread of its own. If it takes too long, that thread owns and frees it. */
struct attempt {
    struct sy_x11_link link; /* only the connection's members are filled */
    bool wayland;
};

static atomic_int attempts; /* attempts in progress: at most one while the server does not answer */

static xcb_atom_t atom(xcb_connection_t *connection, const char *name) {
    xcb_intern_atom_cookie_t cookie = xcb_intern_atom(connection, 0, (uint16_t)strlen(name), name);
    xcb_intern_atom_reply_t *reply = xcb_intern_atom_reply(connection, cookie, NULL);
    xcb_atom_t found = reply ? reply->atom : XCB_ATOM_NONE;
    free(reply);
    return found;
}

static bool has_extension(xcb_connection_t *connection, const char *name) {
    xcb_query_extension_cookie_t cookie = xcb_query_extension(connection, (uint16_t)strlen(name), name);
    xcb_query_extension_reply_t *reply = xcb_query_extension_reply(connection, cookie, NULL);
    bool present = reply && reply->present;
    free(reply);
    return present;
}

/*
 * Xwayland has an extension of this name. Before version 23.1 it lacks the extension, but its monitors' names begin
 * with this name.
 */
static bool is_xwayland(const struct sy_x11_link *link) {
    bool found = has_extension(link->connection, "XWAYLAND");
    if (found || !link->has_monitors) {
        return found;
    }
    xcb_randr_get_monitors_reply_t *monitors =
        xcb_randr_get_monitors_reply(link->connection, xcb_randr_get_monitors(link->connection, link->root, 1), NULL);
    if (monitors && monitors->nMonitors > 0) {
        xcb_atom_t first = xcb_randr_get_monitors_monitors_iterator(monitors).data->name;
        xcb_get_atom_name_reply_t *name =
            xcb_get_atom_name_reply(link->connection, xcb_get_atom_name(link->connection, first), NULL);
        found = name && xcb_get_atom_name_name_length(name) >= 8 &&
                memcmp(xcb_get_atom_name_name(name), "XWAYLAND", 8) == 0;
        free(name);
    }
    free(monitors);
    return found;
}

static void find_randr(struct sy_x11_link *link) {
    const xcb_query_extension_reply_t *extension = xcb_get_extension_data(link->connection, &xcb_randr_id);
    if (!extension || !extension->present) {
        return;
    }
    xcb_randr_query_version_reply_t *version =
        xcb_randr_query_version_reply(link->connection, xcb_randr_query_version(link->connection, 1, 5), NULL);
    link->has_monitors =
        version && (version->major_version > 1 || (version->major_version == 1 && version->minor_version >= 5));
    link->randr_events = extension->first_event;
    free(version);
}

static void find_properties(struct sy_x11_link *link) {
    const xcb_ewmh_connection_t *ewmh = &link->ewmh;
    const xcb_atom_t properties[SY_X11_PROPERTIES] = {
        [SY_X11_STATE] = ewmh->_NET_WM_STATE,
        [SY_X11_FRAME] = ewmh->_NET_FRAME_EXTENTS,
        [SY_X11_SHADOW] = atom(link->connection, "_GTK_FRAME_EXTENTS"),
        [SY_X11_CLASS] = XCB_ATOM_WM_CLASS,
        [SY_X11_NET_NAME] = ewmh->_NET_WM_NAME,
        [SY_X11_NAME] = XCB_ATOM_WM_NAME,
        [SY_X11_PID] = ewmh->_NET_WM_PID,
        [SY_X11_MACHINE] = XCB_ATOM_WM_CLIENT_MACHINE,
        [SY_X11_TYPE] = ewmh->_NET_WM_WINDOW_TYPE,
    };
    memcpy(link->properties, properties, sizeof properties);
    link->delete_window = atom(link->connection, "WM_DELETE_WINDOW");
    link->take_focus = atom(link->connection, "WM_TAKE_FOCUS");
}

static void watch_root(const struct sy_x11_link *link) {
    const uint32_t events = XCB_EVENT_MASK_PROPERTY_CHANGE | XCB_EVENT_MASK_STRUCTURE_NOTIFY;
    xcb_change_window_attributes(link->connection, link->root, XCB_CW_EVENT_MASK, &events);
    if (link->randr_events) {
        xcb_randr_select_input(link->connection, link->root,
                               XCB_RANDR_NOTIFY_MASK_SCREEN_CHANGE | XCB_RANDR_NOTIFY_MASK_CRTC_CHANGE |
                                   XCB_RANDR_NOTIFY_MASK_OUTPUT_CHANGE);
    }
}

static void connect_body(void *argument) {
    struct attempt *attempt = argument;
    struct sy_x11_link *link = &attempt->link;
    link->connection = xcb_connect(NULL, &link->screen);
    xcb_intern_atom_cookie_t *atoms = NULL;
    if (!xcb_connection_has_error(link->connection)) {
        atoms = xcb_ewmh_init_atoms(link->connection, &link->ewmh);
    }
    link->has_atoms = atoms && xcb_ewmh_init_atoms_replies(&link->ewmh, atoms, NULL); /* wiped if it fails */
    if (link->has_atoms && link->screen < link->ewmh.nb_screens) {
        link->root = link->ewmh.screens[link->screen]->root;
        find_randr(link);
        find_properties(link);
        attempt->wayland = is_xwayland(link);
        watch_root(link);
    }
    if (!link->root || xcb_connection_has_error(link->connection)) {
        close_connection(link);
    }
}

static void drop_attempt(void *argument) {
    close_connection(&((struct attempt *)argument)->link);
    free(argument);
    atomic_fetch_sub(&attempts, 1);
}

static enum fm_code not_answering(struct fm_error *error) {
    return fm_fail(error, FM_TIMEOUT, "the X server of DISPLAY does not answer within %d s", SY_X11_ANSWER_MS / 1000);
}

static enum fm_code is_wayland(struct fm_error *error) {
    return fm_fail(
        error, FM_UNAVAILABLE,
        "this is a Wayland session, where no program may list, move or close the windows of others: applications "
        "can be started, and Chrome's tabs work. An X11 session can do all");
}

static enum fm_code take_connection(struct sy_x11_link *link, const struct attempt *attempt, struct fm_error *error) {
    const struct sy_x11_link *made = &attempt->link;
    struct epoll_event event = {.events = EPOLLIN};
    if (epoll_ctl(link->descriptor, EPOLL_CTL_ADD, xcb_get_file_descriptor(made->connection), &event) != 0) {
        return fm_fail(error, FM_UNAVAILABLE, "the X server's connection can't be watched");
    }
    link->connection = made->connection;
    link->ewmh = made->ewmh;
    link->has_atoms = true;
    link->screen = made->screen;
    link->root = made->root;
    memcpy(link->properties, made->properties, sizeof link->properties);
    link->delete_window = made->delete_window;
    link->take_focus = made->take_focus;
    link->has_monitors = made->has_monitors;
    link->randr_events = made->randr_events;
    return FM_OK;
}

static bool is_set(const char *variable) {
    const char *value = getenv(variable);
    return value && value[0];
}

static enum fm_code make_connection(struct sy_x11_link *link, struct fm_error *error) {
    if (!is_set("DISPLAY")) {
        return is_set("WAYLAND_DISPLAY") ? is_wayland(error)
                                         : fm_fail(error, FM_UNAVAILABLE,
                                                   "there is no display: DISPLAY names no X server. Start this from a "
                                                   "program on the desktop, or set DISPLAY where an MCP client is told to "
                                                   "start it");
    }
    struct attempt *attempt = atomic_load(&attempts) > 0 ? NULL : calloc(1, sizeof *attempt);
    if (!attempt) {
        return atomic_load(&attempts) > 0 ? not_answering(error) : fm_fail_no_memory(error);
    }
    atomic_fetch_add(&attempts, 1);
    int status = fm_run_on_stack_within(CONNECT_STACK, CONNECT_CPU_MS, SY_X11_ANSWER_MS, connect_body, drop_attempt,
                                        attempt);
    if (status == ETIMEDOUT) {
        return not_answering(error);
    }
    enum fm_code code;
    if (status != 0 || !attempt->link.connection) {
        code = fm_fail(error, FM_UNAVAILABLE,
                       "the X server of DISPLAY can't be reached: it does not run, or lets this "
                       "user not in");
    } else {
        code = attempt->wayland ? is_wayland(error) : take_connection(link, attempt, error);
        if (code == FM_OK) {
            attempt->link = (struct sy_x11_link){.connection = NULL};
        }
    }
    drop_attempt(attempt);
    return code;
}

/* If the server was late before, waits until it has answered the probe; no other request is sent before that. */
static enum fm_code await_probe(struct sy_x11_link *link, struct fm_error *error) {
    void *reply = NULL;
    if (link->probe && !await_reply(link, link->probe, &reply)) {
        return not_answering(error);
    }
    free(reply);
    link->probe = 0;
    return FM_OK;
}

void sy_x11_drop_lost(struct sy_x11_link *link) {
    if (link->connection && xcb_connection_has_error(link->connection)) {
        disconnect(link);
    }
}

enum fm_code sy_x11_begin(struct sy_x11_link *link, struct fm_error *error) {
    if (link->connection) {
        sy_x11_take_events(link); /* this also notices if the server has ended meanwhile */
    }
    sy_x11_drop_lost(link);
    if (!link->connection) {
        enum fm_code code = make_connection(link, error);
        if (code != FM_OK) {
            return code;
        }
    }
    link->until_ms = fm_now_ms() + SY_X11_ANSWER_MS;
    link->late = false;
    return await_probe(link, error);
}

enum fm_code sy_x11_end(struct sy_x11_link *link, struct fm_error *error) {
    xcb_flush(link->connection);
    sy_x11_take_events(link);
    if (xcb_connection_has_error(link->connection)) {
        return fm_fail(error, FM_UNAVAILABLE, "the X server has ended, or closed the connection");
    }
    if (link->late) {
        link->probe = link->probe ? link->probe : xcb_get_input_focus(link->connection).sequence;
        xcb_flush(link->connection);
        return not_answering(error);
    }
    return FM_OK;
}

/* ---- windows ---- */

static const struct sy_x11_known *find_known(const struct sy_x11_link *link, xcb_window_t window) {
    for (size_t i = 0; i < link->known_count; i++) {
        if (link->known[i].window == window) {
            return &link->known[i];
        }
    }
    return NULL;
}

static void write_id(const struct sy_x11_known *known, char id[SY_ID_MAX]) {
    snprintf(id, SY_ID_MAX, "%" PRIx32 "-%" PRIu32, known->window, known->serial);
}

bool sy_x11_watch(struct sy_x11_link *link, xcb_window_t window, char id[SY_ID_MAX]) {
    const struct sy_x11_known *known = find_known(link, window);
    if (!known) {
        struct sy_x11_known *larger = realloc(link->known, (link->known_count + 1) * sizeof *larger);
        if (!larger) {
            return false;
        }
        const uint32_t events = XCB_EVENT_MASK_PROPERTY_CHANGE | XCB_EVENT_MASK_STRUCTURE_NOTIFY;
        xcb_change_window_attributes(link->connection, window, XCB_CW_EVENT_MASK, &events);
        link->known = larger;
        larger[link->known_count] = (struct sy_x11_known){window, ++link->last_serial};
        known = &larger[link->known_count++];
    }
    write_id(known, id);
    return true;
}

xcb_window_t sy_x11_find(struct sy_x11_link *link, const char *id) {
    char found[SY_ID_MAX];
    char *end;
    xcb_window_t window = (xcb_window_t)strtoul(id, &end, 16);
    void *geometry = sy_x11_reply(link, xcb_get_geometry(link->connection, window).sequence);
    const struct sy_x11_known *known = find_known(link, window); /* NULL if the window was closed before the reply */
    free(geometry);
    if (!known || !geometry) {
        return XCB_NONE;
    }
    write_id(known, found);
    return strcmp(found, id) == 0 ? window : XCB_NONE;
}
