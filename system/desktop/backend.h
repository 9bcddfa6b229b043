/*
 * What a desktop can do, as fm-system needs it: lists, and one action at a time. A backend names things by ids that keep
 * their meaning while the thing lives; indices are made in snapshot.c and never get here.
 *
 * All functions are called from one thread. They return at once or within some milliseconds, but for `wait`; what a
 * action has changed is seen in a later list. A function that is NULL means that the desktop lacks the whole group.
 */
#ifndef SY_BACKEND_H
#define SY_BACKEND_H

#include "base/error.h"
#include "desktop/program.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SY_ID_MAX 128 /* bytes of an id, its NUL included */

/* Edges in pixels of the whole screen; `right` and `bottom` are just outside. */
struct sy_rect {
    int left, top, right, bottom;
};

struct sy_monitor {
    struct sy_rect area;
    bool primary;
};

struct sy_window {
    char id[SY_ID_MAX];
    char *class_name;       /* of WM_CLASS, or the Wayland app id; "": it has none */
    char *title;            /* UTF-8 */
    int64_t pid;            /* 0: not known */
    struct sy_program runs; /* what that process runs */
    struct sy_rect bounds;  /* outer edges, the frame included and shadows left out */
    bool active;
};

/* An application that is installed: a .desktop entry. */
struct sy_app {
    char id[SY_ID_MAX];     /* "firefox.desktop" */
    char *name;             /* that users see */
    char *window_class;     /* StartupWMClass; "": not told */
    char *program;          /* file name of what is started; "": not known */
    char *keywords;         /* what kind of application it says it is, words with spaces between them; "": not told */
    struct sy_program runs; /* what is started, without the arguments that depend on what is opened */
};

struct sy_tab {
    char id[SY_ID_MAX];        /* the browser's target id */
    char window_id[SY_ID_MAX]; /* the browser's own */
    int position;              /* in its window, from 0 */
    bool active;               /* the one that its window shows */
    char *title;
    char *url;
    double opened_ms; /* since 1970, when the page was loaded; 0: not known */
};

/* Lists are owned by who asked for them: free each by its function. A zeroed list is empty. */
struct sy_monitors {
    struct sy_monitor *at;
    size_t count;
};
struct sy_windows {
    struct sy_window *at; /* the topmost first */
    size_t count;
};
struct sy_apps {
    struct sy_app *at;
    size_t count;
};
struct sy_tabs {
    struct sy_tab *at; /* in no order that means anything */
    size_t count;
};

struct sy_backend {
    const char *name;

    /* ms since any beginning; that of the fake is not the clock's. */
    int64_t (*now)(void *self);
    /*
     * Returns when something may have changed, at the latest at `until_ms` of `now`. FM_CANCELLED: the call that this
     * is for was cancelled meanwhile.
     */
    enum fm_code (*wait)(void *self, int64_t until_ms, struct fm_error *error);
    /*
     * Becomes readable when something may have changed, and stays so until `wait` returns or the lists are taken; the
     * same one as long as the backend lives, and the backend's. -1: there is none.
     */
    int (*descriptor)(void *self);

    enum fm_code (*monitors)(void *self, struct sy_monitors *monitors, struct fm_error *error);
    enum fm_code (*windows)(void *self, struct sy_windows *windows, struct fm_error *error);
    /* Asks the window manager; FM_NOT_FOUND: there is no such window any more. The same for the next two. */
    enum fm_code (*focus)(void *self, const char *window, struct fm_error *error);
    enum fm_code (*place)(void *self, const char *window, const struct sy_rect *bounds, struct fm_error *error);
    enum fm_code (*close)(void *self, const char *window, struct fm_error *error);

    enum fm_code (*apps)(void *self, struct sy_apps *apps, struct fm_error *error);
    enum fm_code (*launch)(void *self, const char *app, struct fm_error *error);

    enum fm_code (*tabs)(void *self, struct sy_tabs *tabs, struct fm_error *error);
    /* Brings the tab and its window to the front. FM_NOT_FOUND: there is no such tab any more, also below. */
    enum fm_code (*activate)(void *self, const char *tab, struct fm_error *error);
    /* Opens a tab in front; its id goes into `tab`. The URL was checked. */
    enum fm_code (*open)(void *self, const char *url, char tab[SY_ID_MAX], struct fm_error *error);
    /* Asks the page to close, which may refuse: the tab stays in the list then. */
    enum fm_code (*close_tab)(void *self, const char *tab, struct fm_error *error);
    /* What the page is about: `*text` is the caller's, NULL if it does not tell within `until_ms`. */
    enum fm_code (*text)(void *self, const char *tab, int64_t until_ms, char **text, struct fm_error *error);

    void (*free)(void *self);
};

/* A backend and its state. */
struct sy_desktop {
    const struct sy_backend *backend;
    void *self;
};

/* Each frees what its list owns; the list is empty then. */
void sy_monitors_free(struct sy_monitors *monitors);
void sy_windows_free(struct sy_windows *windows);
void sy_apps_free(struct sy_apps *apps);
void sy_tabs_free(struct sy_tabs *tabs);

#endif
