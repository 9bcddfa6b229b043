/*
 * Windows and monitors of an X11 desktop. To make a list, all requests are sent first, and then the replies collected.
 * A window that is closed meanwhile is left out.
 */
#include "backends/x11.h"
#include "backends/x11_bounds.h"
#include "backends/x11_windows.h"
#include "backends/x11_text.h"
#include "base/clock.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xcb/randr.h>

#define WINDOWS_MAX 4096 /* listed windows; X has room for some thousands of clients at most */
#define TEXT_WORDS  1024 /* most words (4 bytes) of a text: a longer title is cut */

static int64_t x11_now(void *self) {
    (void)self;
    return fm_now_ms();
}

static int x11_descriptor(void *self) {
    return ((struct sy_x11_link *)self)->descriptor;
}

static enum fm_code wait_until(void *self, int64_t until_ms, struct fm_error *error) {
    struct sy_x11_link *link = self;
    (void)error;
    if (link->connection) {
        sy_x11_take_events(link);
    }
    while (link->connection && !link->changed && sy_x11_wait_event(link, until_ms)) {
    }
    sy_x11_drop_lost(link);
    if (!link->connection && !link->changed) {
        fm_sleep_ms(until_ms - fm_now_ms());
    }
    sy_x11_changes_seen(link);
    return FM_OK;
}

/* ---- monitors ---- */

static void add_monitor(struct sy_monitors *monitors, int x, int y, int width, int height, bool primary) {
    if (width > 0 && height > 0) {
        monitors->at[monitors->count++] = (struct sy_monitor){{x, y, x + width, y + height}, primary};
    }
}

static enum fm_code read_monitors(struct sy_x11_link *link, struct sy_monitors *monitors, struct fm_error *error) {
    unsigned whole_asked = xcb_get_geometry(link->connection, link->root).sequence;
    xcb_randr_get_monitors_reply_t *reply = NULL;
    if (link->has_monitors) {
        reply = sy_x11_reply(link, xcb_randr_get_monitors(link->connection, link->root, 1).sequence);
    }
    xcb_get_geometry_reply_t *whole = sy_x11_reply(link, whole_asked);
    enum fm_code code = sy_x11_end(link, error);
    if (code == FM_OK) {
        monitors->at = calloc((reply ? reply->nMonitors : 0) + 1, sizeof *monitors->at);
        code = monitors->at ? FM_OK : fm_fail_no_memory(error);
    }
    if (code == FM_OK && reply) {
        xcb_randr_monitor_info_iterator_t at = xcb_randr_get_monitors_monitors_iterator(reply);
        for (; at.rem > 0; xcb_randr_monitor_info_next(&at)) {
            add_monitor(monitors, at.data->x, at.data->y, at.data->width, at.data->height, at.data->primary);
        }
    }
    if (code == FM_OK && monitors->count == 0 && whole) {
        add_monitor(monitors, 0, 0, whole->width, whole->height, true);
    }
    free(reply);
    free(whole);
    return code;
}

static enum fm_code list_monitors(void *self, struct sy_monitors *monitors, struct fm_error *error) {
    enum fm_code code = sy_x11_begin(self, error);
    return code ? code : read_monitors(self, monitors, error);
}

/* ---- windows ---- */

/* The requests about one window, by their sequence numbers. */
struct asked {
    xcb_window_t window;
    char id[SY_ID_MAX];
    unsigned geometry;
    unsigned origin;
    unsigned properties[SY_X11_PROPERTIES];
};

/* False when out of memory. */
static bool ask_window(struct sy_x11_link *link, xcb_window_t window, struct asked *asked) {
    asked->window = window;
    if (!sy_x11_watch(link, window, asked->id)) { /* first, so that no change is missed */
        return false;
    }
    asked->geometry = xcb_get_geometry(link->connection, window).sequence;
    asked->origin = xcb_translate_coordinates(link->connection, window, link->root, 0, 0).sequence;
    for (int i = 0; i < SY_X11_PROPERTIES; i++) {
        asked->properties[i] = sy_x11_ask(link, window, link->properties[i], TEXT_WORDS);
    }
    return true;
}

static char *take_text(struct sy_x11_link *link, unsigned sequence) {
    xcb_get_property_reply_t *reply = sy_x11_property_reply(link, sequence, 8, 1);
    if (!reply) {
        return NULL;
    }
    char *text = sy_x11_text(xcb_get_property_value(reply), (size_t)xcb_get_property_value_length(reply),
                             reply->type == link->ewmh.UTF8_STRING);
    free(reply);
    return text;
}

/* A window's title: _NET_WM_NAME, or else WM_NAME; "": the window has none. */
static char *take_title(struct sy_x11_link *link, const struct asked *asked) {
    char *title = take_text(link, asked->properties[SY_X11_NET_NAME]);
    char *old = take_text(link, asked->properties[SY_X11_NAME]);
    if (title && title[0]) {
        free(old);
        return title;
    }
    free(title);
    return old ? old : strdup("");
}

/* The class is the second string of WM_CLASS; the first one is the instance. */
static char *take_class(struct sy_x11_link *link, const struct asked *asked) {
    xcb_get_property_reply_t *reply = sy_x11_property_reply(link, asked->properties[SY_X11_CLASS], 8, 1);
    const char *bytes = reply ? xcb_get_property_value(reply) : "";
    size_t len = reply ? (size_t)xcb_get_property_value_length(reply) : 0;
    size_t instance = strnlen(bytes, len);
    size_t from = instance < len ? instance + 1 : len;
    char *text = sy_x11_text(bytes + from, len - from, false);
    free(reply);
    return text;
}

/* The process id; 0 if the program runs on another machine, where the number means another process. */
static int64_t take_pid(struct sy_x11_link *link, const struct asked *asked) {
    char host[256] = "";
    xcb_get_property_reply_t *pid = sy_x11_property_reply(link, asked->properties[SY_X11_PID], 32, 1);
    char *machine = take_text(link, asked->properties[SY_X11_MACHINE]);
    (void)gethostname(host, sizeof host - 1);
    bool here = machine && strcmp(machine, host) == 0;
    int64_t number = pid && here ? (int64_t)*(const uint32_t *)xcb_get_property_value(pid) : 0;
    free(machine);
    free(pid);
    return number;
}

/* Whether the window belongs to the desktop itself: a panel, the background, a splash screen or a notification. */
static bool is_furniture(struct sy_x11_link *link, const struct asked *asked) {
    const xcb_ewmh_connection_t *ewmh = &link->ewmh;
    xcb_get_property_reply_t *type = sy_x11_property_reply(link, asked->properties[SY_X11_TYPE], 32, 1);
    xcb_atom_t first = type ? *(const xcb_atom_t *)xcb_get_property_value(type) : XCB_ATOM_NONE;
    free(type);
    return first != XCB_ATOM_NONE &&
           (first == ewmh->_NET_WM_WINDOW_TYPE_DESKTOP || first == ewmh->_NET_WM_WINDOW_TYPE_DOCK ||
            first == ewmh->_NET_WM_WINDOW_TYPE_SPLASH || first == ewmh->_NET_WM_WINDOW_TYPE_NOTIFICATION);
}

/* Collects every reply, and adds the window if it is to be listed. False when out of memory. */
static bool collect_window(struct sy_x11_link *link, const struct asked *asked, xcb_window_t active,
                           struct sy_windows *windows) {
    struct sy_window *window = &windows->at[windows->count];
    xcb_get_geometry_reply_t *geometry = sy_x11_reply(link, asked->geometry);
    xcb_translate_coordinates_reply_t *origin = sy_x11_reply(link, asked->origin);
    struct sy_x11_extents frame = sy_x11_take_extents(link, asked->properties[SY_X11_FRAME]);
    struct sy_x11_extents shadow = sy_x11_take_extents(link, asked->properties[SY_X11_SHADOW]);
    struct sy_x11_extents extents = sy_x11_around(&frame, &shadow);
    window->title = take_title(link, asked);
    window->class_name = take_class(link, asked);
    window->pid = take_pid(link, asked);
    bool known = sy_program_of_process(window->pid, &window->runs);
    window->active = asked->window == active;
    free(sy_x11_reply(link, asked->properties[SY_X11_STATE]));
    bool listed = !is_furniture(link, asked) && geometry && origin && geometry->root == link->root;
    bool whole = window->title && window->class_name && known;
    if (listed && whole) {
        memcpy(window->id, asked->id, sizeof window->id);
        window->bounds = sy_x11_outer_bounds(geometry, origin, &extents);
        windows->count++;
    } else {
        free(window->title);
        free(window->class_name);
        sy_program_free(&window->runs);
        window->title = window->class_name = NULL;
    }
    if (!geometry) {
        sy_x11_forget(link, asked->window);
    }
    free(geometry);
    free(origin);
    return whole;
}

static enum fm_code read_windows(struct sy_x11_link *link, const xcb_window_t *from, size_t count, xcb_window_t active,
                                 struct sy_windows *windows, struct fm_error *error) {
    struct asked *asked = calloc(count + 1, sizeof *asked);
    windows->at = calloc(count + 1, sizeof *windows->at);
    bool whole = asked && windows->at;
    for (size_t i = 0; whole && i < count; i++) { /* the property has the topmost window last */
        whole = ask_window(link, from[count - 1 - i], &asked[i]);
    }
    for (size_t i = 0; whole && i < count; i++) {
        whole = collect_window(link, &asked[i], active, windows);
    }
    free(asked);
    return whole ? FM_OK : fm_fail_no_memory(error);
}

/* The first 32-bit item of a window's property; 0: the property is missing. */
static uint32_t take_first(struct sy_x11_link *link, unsigned sequence) {
    xcb_get_property_reply_t *reply = sy_x11_property_reply(link, sequence, 32, 1);
    uint32_t first = reply ? *(const uint32_t *)xcb_get_property_value(reply) : 0;
    free(reply);
    return first;
}

/* Whether a window manager of EWMH runs. Such a window manager has a window with a property that names the window
 * itself. The root window's property is not enough: a window manager that has ended may have left it. */
static bool is_managed(struct sy_x11_link *link, xcb_window_t check) {
    return check && take_first(link, sy_x11_ask(link, check, link->ewmh._NET_SUPPORTING_WM_CHECK, 1)) == check;
}

static enum fm_code list_all(struct sy_x11_link *link, struct sy_windows *windows, struct fm_error *error) {
    unsigned stacking = sy_x11_ask(link, link->root, link->ewmh._NET_CLIENT_LIST_STACKING, WINDOWS_MAX);
    unsigned oldest_first = sy_x11_ask(link, link->root, link->ewmh._NET_CLIENT_LIST, WINDOWS_MAX);
    unsigned active_asked = sy_x11_ask(link, link->root, link->ewmh._NET_ACTIVE_WINDOW, 1);
    unsigned check_asked = sy_x11_ask(link, link->root, link->ewmh._NET_SUPPORTING_WM_CHECK, 1);
    xcb_get_property_reply_t *list = sy_x11_property_reply(link, stacking, 32, 0);
    xcb_get_property_reply_t *other = sy_x11_property_reply(link, oldest_first, 32, 0);
    xcb_window_t active = take_first(link, active_asked);
    bool managed = is_managed(link, take_first(link, check_asked));
    const xcb_get_property_reply_t *chosen = list ? list : other;
    enum fm_code code = FM_OK;
    if (managed && chosen) {
        code = read_windows(link, xcb_get_property_value(chosen), chosen->value_len, active, windows, error);
    }
    free(list);
    free(other);
    struct fm_error lost;
    if (sy_x11_end(link, &lost) != FM_OK) {
        *error = lost;
        return lost.code;
    }
    return managed ? code
                   : fm_fail(error, FM_UNAVAILABLE,
                             "no window manager runs here that follows EWMH, so nobody knows what the windows are");
}

/* A window that takes no keys never becomes the active window. If it was brought to the front, it counts as active. */
static void mark_front(const struct sy_x11_link *link, struct sy_windows *windows) {
    if (windows->count > 0 && strcmp(windows->at[0].id, link->front) == 0) {
        for (size_t i = 0; i < windows->count; i++) {
            windows->at[i].active = i == 0;
        }
    }
}

static enum fm_code list_windows(void *self, struct sy_windows *windows, struct fm_error *error) {
    struct sy_x11_link *link = self;
    sy_x11_changes_seen(link);
    enum fm_code code = sy_x11_begin(link, error);
    code = code ? code : list_all(link, windows, error);
    if (code != FM_OK) {
        sy_windows_free(windows);
        return code;
    }
    mark_front(link, windows);
    return FM_OK;
}

/* ---- making a backend ---- */

static void free_x11(void *self) {
    sy_x11_link_free(self);
    free(self);
}

static const struct sy_backend x11 = {
    .name = "X11",
    .now = x11_now,
    .wait = wait_until,
    .descriptor = x11_descriptor,
    .monitors = list_monitors,
    .windows = list_windows,
    .focus = sy_x11_focus,
    .place = sy_x11_place,
    .close = sy_x11_close,
    .free = free_x11,
};

enum fm_code sy_x11_new(struct sy_desktop *desktop, struct fm_error *error) {
    struct sy_x11_link *link = malloc(sizeof *link);
    if (!link || !sy_x11_link_init(link)) {
        free(link);
        return fm_fail_no_memory(error);
    }
    *desktop = (struct sy_desktop){&x11, link};
    return FM_OK;
}
