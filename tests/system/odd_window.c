/*
 * A window with the peculiarities that its options name. Prints "ready" when it is shown, "asked" each time that it is
 * asked to close, and "gone" when it closes. The program ends after "gone", or with its stdin.
 *
 * usage: odd_window [OPTION VALUE]...
 *   geometry X,Y,W,H     at the start
 *   class TEXT           WM_CLASS as TEXT, NUL, TEXT, NUL; class-hex HEX: these bytes; none: it has no WM_CLASS
 *   title TEXT           _NET_WM_NAME; title-hex HEX: these bytes; none: no title
 *   name-hex HEX         WM_NAME, of the type STRING
 *   pid N|own            _NET_WM_PID; none: it has none
 *   machine TEXT         WM_CLIENT_MACHINE; none: that of this machine
 *   shadow L,R,T,B       _GTK_FRAME_EXTENTS, and no frame
 *   type NAME            _NET_WM_WINDOW_TYPE_NAME
 *   close refuse|never   it is asked and stays open; it can't be asked
 *   vanish configure|focus|asked   at this event it disappears without a message; focus: at the second one
 *   override 1           override-redirect: window managers ignore it
 *   input 0              it takes no keys
 *   state NAME           _NET_WM_STATE_NAME from the start; MAXIMIZED means both directions
 *   alone 1              it does not end with its stdin
 *   minimise 1           it is minimised as soon as it is shown
 *   reuse 1              closes when a line comes on stdin, and opens again with the same number
 *   churn N              opens and closes this many windows, one after the other, and prints "gone" at the end
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <poll.h>
#include <xcb/xcb.h>

struct odd {
    xcb_connection_t *connection;
    xcb_screen_t *screen;
    xcb_window_t window;
    xcb_atom_t delete_window;
    bool lost_focus;
    int argc;
    char **argv;
};

static const char *option(const struct odd *odd, const char *name) {
    for (int i = 1; i + 1 < odd->argc; i += 2) {
        if (strcmp(odd->argv[i], name) == 0) {
            return odd->argv[i + 1];
        }
    }
    return NULL;
}

static bool is(const struct odd *odd, const char *name, const char *value) {
    const char *given = option(odd, name);
    return given && strcmp(given, value) == 0;
}

static xcb_atom_t atom(const struct odd *odd, const char *name) {
    xcb_intern_atom_cookie_t cookie = xcb_intern_atom(odd->connection, 0, (uint16_t)strlen(name), name);
    xcb_intern_atom_reply_t *reply = xcb_intern_atom_reply(odd->connection, cookie, NULL);
    xcb_atom_t found = reply ? reply->atom : XCB_ATOM_NONE;
    free(reply);
    return found;
}

static void set_bytes(const struct odd *odd, xcb_atom_t property, xcb_atom_t type, const char *bytes, size_t len) {
    xcb_change_property(odd->connection, XCB_PROP_MODE_REPLACE, odd->window, property, type, 8, (uint32_t)len, bytes);
}

static void set_numbers(const struct odd *odd, const char *property, xcb_atom_t type, const uint32_t *numbers,
                        uint32_t count) {
    xcb_change_property(odd->connection, XCB_PROP_MODE_REPLACE, odd->window, atom(odd, property), type, 32, count,
                        numbers);
}

/* Numbers separated by commas. */
static void read_numbers(const char *text, uint32_t *numbers, size_t count) {
    char *end = (char *)text;
    for (size_t i = 0; i < count; i++) {
        numbers[i] = (uint32_t)strtol(end, &end, 10);
        end += *end == ',';
    }
}

static size_t read_hex(const char *hex, char *bytes, size_t max) {
    size_t len = 0;
    for (; hex[0] && hex[1] && len < max; hex += 2) {
        const char pair[] = {hex[0], hex[1], '\0'};
        bytes[len++] = (char)strtol(pair, NULL, 16);
    }
    return len;
}

static void set_class(const struct odd *odd) {
    char bytes[512];
    size_t len = 0;
    if (option(odd, "class")) {
        for (int i = 0; i < 2; i++) {
            len += (size_t)snprintf(bytes + len, sizeof bytes - len, "%s", option(odd, "class")) + 1;
        }
        set_bytes(odd, XCB_ATOM_WM_CLASS, XCB_ATOM_STRING, bytes, len);
    }
    if (option(odd, "class-hex")) {
        len = read_hex(option(odd, "class-hex"), bytes, sizeof bytes);
        set_bytes(odd, XCB_ATOM_WM_CLASS, XCB_ATOM_STRING, bytes, len);
    }
}

static void set_titles(const struct odd *odd) {
    char bytes[8192];
    const char *title = option(odd, "title");
    if (title) {
        set_bytes(odd, atom(odd, "_NET_WM_NAME"), atom(odd, "UTF8_STRING"), title, strlen(title));
    }
    if (option(odd, "title-hex")) {
        size_t len = read_hex(option(odd, "title-hex"), bytes, sizeof bytes);
        set_bytes(odd, atom(odd, "_NET_WM_NAME"), atom(odd, "UTF8_STRING"), bytes, len);
    }
    if (option(odd, "name-hex")) {
        size_t len = read_hex(option(odd, "name-hex"), bytes, sizeof bytes);
        set_bytes(odd, XCB_ATOM_WM_NAME, XCB_ATOM_STRING, bytes, len);
    }
}

static void set_rest(const struct odd *odd) {
    uint32_t numbers[5] = {0};
    char text[256];
    if (option(odd, "pid")) {
        numbers[0] = (uint32_t)getpid();
        if (!is(odd, "pid", "own")) {
            read_numbers(option(odd, "pid"), numbers, 1);
        }
        set_numbers(odd, "_NET_WM_PID", XCB_ATOM_CARDINAL, numbers, 1);
        (void)gethostname(text, sizeof text);
        const char *machine = option(odd, "machine") ? option(odd, "machine") : text;
        set_bytes(odd, XCB_ATOM_WM_CLIENT_MACHINE, XCB_ATOM_STRING, machine, strlen(machine));
    }
    if (option(odd, "shadow")) {
        const uint32_t no_frame[5] = {2, 0, 0, 0, 0}; /* a Motif hint: the flag for decorations, and no decorations */
        read_numbers(option(odd, "shadow"), numbers, 4);
        set_numbers(odd, "_GTK_FRAME_EXTENTS", XCB_ATOM_CARDINAL, numbers, 4);
        set_numbers(odd, "_MOTIF_WM_HINTS", atom(odd, "_MOTIF_WM_HINTS"), no_frame, 5);
    }
    if (option(odd, "type")) {
        snprintf(text, sizeof text, "_NET_WM_WINDOW_TYPE_%s", option(odd, "type"));
        xcb_atom_t type = atom(odd, text);
        set_numbers(odd, "_NET_WM_WINDOW_TYPE", XCB_ATOM_ATOM, &type, 1);
    }
    if (is(odd, "state", "MAXIMIZED")) {
        const xcb_atom_t states[] = {atom(odd, "_NET_WM_STATE_MAXIMIZED_HORZ"),
                                     atom(odd, "_NET_WM_STATE_MAXIMIZED_VERT")};
        set_numbers(odd, "_NET_WM_STATE", XCB_ATOM_ATOM, states, 2);
    } else if (option(odd, "state")) {
        snprintf(text, sizeof text, "_NET_WM_STATE_%s", option(odd, "state"));
        xcb_atom_t state = atom(odd, text);
        set_numbers(odd, "_NET_WM_STATE", XCB_ATOM_ATOM, &state, 1);
    }
    const uint32_t hints[9] = {1, !is(odd, "input", "0")}; /* ICCCM 4.1.2.4: the flag for input, and its value */
    set_numbers(odd, "WM_HINTS", XCB_ATOM_WM_HINTS, hints, 9);
    if (!is(odd, "close", "never")) {
        set_numbers(odd, "WM_PROTOCOLS", XCB_ATOM_ATOM, &odd->delete_window, 1);
    }
}

static void open_window(struct odd *odd) {
    uint32_t at[4] = {50, 50, 300, 200};
    const uint32_t values[] = {odd->screen->white_pixel, is(odd, "override", "1"),
                               XCB_EVENT_MASK_STRUCTURE_NOTIFY | XCB_EVENT_MASK_EXPOSURE | XCB_EVENT_MASK_FOCUS_CHANGE};
    if (option(odd, "geometry")) {
        read_numbers(option(odd, "geometry"), at, 4);
    }
    odd->window = odd->window ? odd->window : xcb_generate_id(odd->connection);
    xcb_create_window(odd->connection, XCB_COPY_FROM_PARENT, odd->window, odd->screen->root, (int16_t)at[0],
                      (int16_t)at[1], (uint16_t)at[2], (uint16_t)at[3], 0, XCB_WINDOW_CLASS_INPUT_OUTPUT,
                      odd->screen->root_visual, XCB_CW_BACK_PIXEL | XCB_CW_OVERRIDE_REDIRECT | XCB_CW_EVENT_MASK,
                      values);
    const uint32_t place[18] = {1 | 2, at[0], at[1], at[2], at[3]}; /* USPosition and USSize of WM_NORMAL_HINTS */
    set_numbers(odd, "WM_NORMAL_HINTS", XCB_ATOM_WM_SIZE_HINTS, place, 18);
    set_class(odd);
    set_titles(odd);
    set_rest(odd);
    xcb_map_window(odd->connection, odd->window);
    xcb_flush(odd->connection);
}

static void say(const char *word) {
    puts(word);
    fflush(stdout);
}

/* As in ICCCM 4.1.4. */
static void minimise(const struct odd *odd) {
    const xcb_client_message_event_t event = {.response_type = XCB_CLIENT_MESSAGE,
                                              .format = 32,
                                              .window = odd->window,
                                              .type = atom(odd, "WM_CHANGE_STATE"),
                                              .data.data32 = {3}}; /* iconic */
    xcb_send_event(odd->connection, 0, odd->screen->root,
                   XCB_EVENT_MASK_SUBSTRUCTURE_NOTIFY | XCB_EVENT_MASK_SUBSTRUCTURE_REDIRECT, (const char *)&event);
    xcb_flush(odd->connection);
}

/* Returns false when the window must close. */
static bool take(struct odd *odd, const xcb_generic_event_t *event, bool *shown) {
    int type = event->response_type & 0x7f;
    if (type == XCB_EXPOSE && !*shown) {
        *shown = true;
        if (is(odd, "minimise", "1")) {
            minimise(odd);
        }
        say("ready");
    }
    if (type == XCB_CONFIGURE_NOTIFY && *shown && is(odd, "vanish", "configure")) {
        return false;
    }
    odd->lost_focus |= type == XCB_FOCUS_OUT && *shown;
    if (type == XCB_FOCUS_IN && odd->lost_focus && is(odd, "vanish", "focus")) {
        return false;
    }
    if (type == XCB_CLIENT_MESSAGE) {
        xcb_atom_t what = ((const xcb_client_message_event_t *)event)->data.data32[0];
        if (what == odd->delete_window) {
            say("asked");
            return is(odd, "close", "refuse") && !is(odd, "vanish", "asked");
        }
    }
    return true;
}

/* Runs until the window must close, or stdin ends. */
static void live(struct odd *odd) {
    bool shown = false;
    bool lives = true;
    struct pollfd fds[] = {{.fd = is(odd, "alone", "1") ? -1 : STDIN_FILENO, .events = POLLIN},
                           {.fd = xcb_get_file_descriptor(odd->connection), .events = POLLIN}};
    while (lives && !xcb_connection_has_error(odd->connection)) {
        xcb_generic_event_t *event = xcb_poll_for_event(odd->connection);
        if (event) {
            lives = take(odd, event, &shown);
            free(event);
        } else if (poll(fds, 2, -1) < 0 || fds[0].revents) {
            char line[16];
            lives = is(odd, "reuse", "1") && read(STDIN_FILENO, line, sizeof line) > 0;
            if (lives) {
                xcb_destroy_window(odd->connection, odd->window);
                open_window(odd);
                shown = false;
            }
        }
    }
}

int main(int argc, char **argv) {
    struct odd odd = {.connection = xcb_connect(NULL, NULL), .argc = argc, .argv = argv};
    if (xcb_connection_has_error(odd.connection)) {
        return 1;
    }
    odd.screen = xcb_setup_roots_iterator(xcb_get_setup(odd.connection)).data;
    odd.delete_window = atom(&odd, "WM_DELETE_WINDOW");
    long churn = option(&odd, "churn") ? strtol(option(&odd, "churn"), NULL, 10) : 0;
    for (long i = 0; i < churn; i++) {
        odd.window = XCB_NONE;
        open_window(&odd);
        usleep(3000 + (useconds_t)(i % 7) * 2000);
        xcb_destroy_window(odd.connection, odd.window);
        xcb_flush(odd.connection);
    }
    if (churn == 0) {
        open_window(&odd);
        live(&odd);
    }
    xcb_disconnect(odd.connection);
    say("gone");
    return 0;
}
