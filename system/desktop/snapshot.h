/*
 * The state of the desktop at one moment, with the names and indices that users and models use: windows joined to
 * applications, tabs numbered from 1, monitors called main, left and right. A snapshot does not change. A command is
 * checked on a snapshot, and works on the ids that it finds there.
 */
#ifndef SY_SNAPSHOT_H
#define SY_SNAPSHOT_H

#include "desktop/backend.h"

#define SY_HANDLE_SIZE 17 /* 16 hexadecimal digits and a NUL */

struct sy_running {
    char *name;               /* unique among the applications that run */
    const struct sy_app *app; /* NULL: no .desktop entry is known */
    size_t *windows;          /* indices into `windows`, the topmost first; owned */
    size_t window_count;      /* at least 1 */
    bool active;
};

struct sy_installed {
    char *name; /* unique among the installed ones; if the application runs, `sy_running` has the same name */
    const struct sy_app *app;
};

struct sy_numbered_tab {
    const struct sy_tab *tab;
    int window_index; /* from 1, the oldest window first */
    int local_index;  /* from 1, in its window */
    char *domain;     /* the URL's host without "www."; "": it has none */
};

struct sy_snapshot {
    struct sy_monitors monitors; /* in the order of their left edges */
    struct sy_windows windows;
    struct sy_apps apps;
    struct sy_tabs raw_tabs;
    struct sy_running *running; /* sorted by name */
    size_t running_count;
    struct sy_installed *installed; /* sorted by name */
    size_t installed_count;
    struct sy_numbered_tab *tabs; /* the tab with index N is at N - 1 */
    size_t tab_count;
    char handle[SY_HANDLE_SIZE]; /* does not change while the tabs, their order and their pages stay the same */
    struct fm_error no_windows;  /* each no_... has the reason why its list is missing; FM_OK: the list is complete */
    struct fm_error no_apps;
    struct fm_error no_tabs;
};

/*
 * Asks for all lists. A list that the desktop lacks is empty, and `no_...` has the reason. Free the snapshot by
 * sy_snapshot_free. FM_CANCELLED, or FM_INTERNAL when out of memory: then there is nothing to free.
 */
FM_MUST_USE enum fm_code sy_snapshot_take(const struct sy_desktop *desktop, struct sy_snapshot *snapshot,
                                          struct fm_error *error);
void sy_snapshot_free(struct sy_snapshot *snapshot);

/* The application that a window belongs to, by the window's class, or else by its process; NULL: none of `apps`. */
const struct sy_app *sy_app_of_window(const struct sy_apps *apps, const struct sy_window *window);

/* Find an application by its exact name; NULL: there is none. */
const struct sy_running *sy_find_running(const struct sy_snapshot *snapshot, const char *name);
const struct sy_installed *sy_find_installed(const struct sy_snapshot *snapshot, const char *name);

/* Whether each index means the same tab in the lists of two handles, whatever pages the tabs show. */
bool sy_same_tabs(const char *handle, const char *other);

/*
 * The monitor that is called "main" (the primary one, or else the one nearest to 0,0), "left" or "right" (the outermost
 * ones of two or more). NULL: there is none of that name.
 */
const struct sy_monitor *sy_find_monitor(const struct sy_snapshot *snapshot, const char *name);

#endif
