/*
 * The interface of a desktop: it gives lists, and does one action at a time. A backend names things by ids. An id keeps
 * its meaning while the thing exists. Indices are made in snapshot.c and never get here.
 *
 * All functions are called from one thread. They return at once or within some milliseconds, except `wait`. The effect
 * of an action is seen in a later list. If a function is NULL, the desktop lacks the whole group.
 */
#ifndef SY_BACKEND_H
#define SY_BACKEND_H

#include "base/error.h"
#include "desktop/program.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SY_ID_MAX 128 /* bytes of an id, its NUL included */

/* Edges in pixels of the whole screen; `right` and `bottom` are the first pixels outside. */
struct sy_rect {
    int left, top, right, bottom;
};

struct sy_monitor {
    struct sy_rect area;
    bool primary;
};

struct sy_window {
    char id[SY_ID_MAX];
    char *class_name;       /* the class in WM_CLASS, or the Wayland app id; "": the window has none */
    char *title;            /* UTF-8 */
    int64_t pid;            /* 0: not known */
    struct sy_program runs; /* the program of the window's process */
    struct sy_rect bounds;  /* outer edges, the frame included and shadows left out */
    bool active;
};

/* An application that is installed: a .desktop entry. */
struct sy_app {
    char id[SY_ID_MAX];     /* "firefox.desktop" */
    char *name;             /* the name that users see */
    char *window_class;     /* StartupWMClass; "": not given */
    char *program;          /* file name of the started program; "": not known */
    char *keywords;         /* the entry's own words for what it is, with spaces between them; "": not given */
    struct sy_program runs; /* the started program, without the arguments that depend on the opened files */
};

struct sy_tab {
    char id[SY_ID_MAX];        /* the browser's target id */
    char window_id[SY_ID_MAX]; /* the browser's own id of the window */
    int position;              /* the tab's position in its window, from 0 */
    bool active;               /* its window shows this tab */
    char *title;
    char *url;
    double opened_ms; /* since 1970, when the page was loaded; 0: not known */
};

/* The caller owns the lists that it gets, and frees each by its function. A zeroed list is empty. */
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
    struct sy_tab *at; /* the tabs, in no particular order */
    size_t count;
};

struct sy_backend {
    const char *name;

    /* A time in ms, from any start. The fake desktop has a clock of its own. */
    int64_t (*now)(void *self);
    /*
     * Returns when something may have changed, at the latest at `until_ms` of `now`. FM_CANCELLED: the request that
     * waits was cancelled meanwhile.
     */
    enum fm_code (*wait)(void *self, int64_t until_ms, struct fm_error *error);
    /*
     * A descriptor that becomes readable when something may have changed, and stays readable until `wait` returns or
     * the lists are taken. The backend owns the descriptor, which never changes. -1: there is none.
     */
    int (*descriptor)(void *self);

    enum fm_code (*monitors)(void *self, struct sy_monitors *monitors, struct fm_error *error);
    enum fm_code (*windows)(void *self, struct sy_windows *windows, struct fm_error *error);
    /* These three ask the window manager. FM_NOT_FOUND: the window does not exist any more. */
    enum fm_code (*focus)(void *self, const char *window, struct fm_error *error);
    enum fm_code (*place)(void *self, const char *window, const struct sy_rect *bounds, struct fm_error *error);
    enum fm_code (*close)(void *self, const char *window, struct fm_error *error);

    enum fm_code (*apps)(void *self, struct sy_apps *apps, struct fm_error *error);
    enum fm_code (*launch)(void *self, const char *app, struct fm_error *error);

    enum fm_code (*tabs)(void *self, struct sy_tabs *tabs, struct fm_error *error);
    /* Brings the tab and its window to the front. FM_NOT_FOUND, here and below: the tab does not exist any more. */
    enum fm_code (*activate)(void *self, const char *tab, struct fm_error *error);
    /* Opens a tab in front, and writes its id into `tab`. The caller has checked the URL. */
    enum fm_code (*open)(void *self, const char *url, char tab[SY_ID_MAX], struct fm_error *error);
    /* Asks the page to close. The page may refuse: then the tab stays in the list. */
    enum fm_code (*close_tab)(void *self, const char *tab, struct fm_error *error);
    /* Asks the page what it is about. The caller frees `*text`; NULL: the page gave no text until `until_ms`. */
    enum fm_code (*text)(void *self, const char *tab, int64_t until_ms, char **text, struct fm_error *error);

    void (*free)(void *self);
};

/* A backend and its state. */
struct sy_desktop {
    const struct sy_backend *backend;
    void *self;
};

/* Each function frees what its list owns. Afterwards the list is empty. */
void sy_monitors_free(struct sy_monitors *monitors);
void sy_windows_free(struct sy_windows *windows);
void sy_apps_free(struct sy_apps *apps);
void sy_tabs_free(struct sy_tabs *tabs);

#endif
