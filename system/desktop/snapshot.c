/*
 * Makes a snapshot of a desktop's lists. Pointers into a list are made only after the list has its final place in
 * memory. Nothing changes afterwards.
 */
#include "desktop/snapshot.h"
#include "base/hash.h"
#include "desktop/url.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define TABS_DIGITS 8   /* how many digits of a handle stand for the tabs' ids */
#define DOMAIN_SIZE 254 /* RFC 1035, 2.3.4: 253 characters of a name, and the NUL */

/* ---- lists ---- */

/*
 * Whether to go on after a list. If the desktop lacks the list or can't give it, the list stays empty, and `absent`
 * gets the reason.
 */
static bool may_go_on(enum fm_code code, const struct fm_error *fault, struct fm_error *absent,
                      struct fm_error *error) {
    if (code == FM_OK) {
        return true;
    }
    if (code == FM_CANCELLED || code == FM_INTERNAL) {
        *error = *fault;
        return false;
    }
    *absent = *fault;
    return true;
}

static enum fm_code lacks(const struct sy_desktop *desktop, const char *what, struct fm_error *error) {
    return fm_fail(error, FM_UNAVAILABLE, "there are no %s here (%s): `fm-system doctor` tells what is missing", what,
                   desktop->backend->name);
}

static enum fm_code take_lists(const struct sy_desktop *desktop, struct sy_snapshot *snapshot, struct fm_error *error) {
    const struct sy_backend *backend = desktop->backend;
    struct fm_error fault;
    enum fm_code code = backend->monitors ? backend->monitors(desktop->self, &snapshot->monitors, &fault)
                                          : lacks(desktop, "monitors", &fault);
    if (!may_go_on(code, &fault, &snapshot->no_windows, error)) {
        return error->code;
    }
    fault = snapshot->no_windows; /* if the monitors timed out, the windows are not asked for: no second wait */
    code = fault.code == FM_TIMEOUT ? FM_TIMEOUT
           : backend->windows       ? backend->windows(desktop->self, &snapshot->windows, &fault)
                                    : lacks(desktop, "windows", &fault);
    if (!may_go_on(code, &fault, &snapshot->no_windows, error)) {
        return error->code;
    }
    code = backend->apps ? backend->apps(desktop->self, &snapshot->apps, &fault)
                         : lacks(desktop, "installed applications", &fault);
    if (!may_go_on(code, &fault, &snapshot->no_apps, error)) {
        return error->code;
    }
    code = backend->tabs ? backend->tabs(desktop->self, &snapshot->raw_tabs, &fault)
                         : lacks(desktop, "tabs of Chrome", &fault);
    return may_go_on(code, &fault, &snapshot->no_tabs, error) ? FM_OK : error->code;
}

/* ---- monitors ---- */

static int by_left_edge(const void *a, const void *b) {
    const struct sy_rect *x = &((const struct sy_monitor *)a)->area;
    const struct sy_rect *y = &((const struct sy_monitor *)b)->area;
    return x->left != y->left ? (x->left > y->left) - (x->left < y->left) : (x->top > y->top) - (x->top < y->top);
}

static int64_t distance(const struct sy_rect *area) {
    return (int64_t)area->left * area->left + (int64_t)area->top * area->top;
}

static const struct sy_monitor *main_monitor(const struct sy_monitors *monitors) {
    const struct sy_monitor *nearest = NULL;
    for (size_t i = 0; i < monitors->count; i++) {
        const struct sy_monitor *at = &monitors->at[i];
        if (at->primary) {
            return at;
        }
        nearest = !nearest || distance(&at->area) < distance(&nearest->area) ? at : nearest;
    }
    return nearest;
}

const struct sy_monitor *sy_find_monitor(const struct sy_snapshot *snapshot, const char *name) {
    const struct sy_monitors *monitors = &snapshot->monitors;
    if (strcmp(name, "main") == 0) {
        return main_monitor(monitors);
    }
    if (monitors->count < 2) {
        return NULL;
    }
    return strcmp(name, "left") == 0    ? &monitors->at[0]
           : strcmp(name, "right") == 0 ? &monitors->at[monitors->count - 1]
                                        : NULL;
}

/* ---- applications ---- */

static bool is_id(const char *id, const char *class_name) {
    size_t len = strlen(class_name);
    return strncasecmp(id, class_name, len) == 0 && strcmp(id + len, ".desktop") == 0;
}

/* Whether the application has this class, by one of three signs. From the surest on, these are the entry's class of
 * windows, its id and its program. */
static bool fits_class(const struct sy_app *app, const char *class_name, int sign) {
    return sign == 0   ? strcasecmp(app->window_class, class_name) == 0
           : sign == 1 ? is_id(app->id, class_name)
                       : strcasecmp(app->program, class_name) == 0;
}

/* Finds the application by what the window's process runs. The entry with the most arguments wins. If two entries start
 * the same program with the same arguments, neither is used. */
static const struct sy_app *app_that_runs(const struct sy_apps *apps, const struct sy_program *runs) {
    const struct sy_app *best = NULL;
    bool alone = false;
    for (size_t i = 0; i < apps->count; i++) {
        const struct sy_program *started = &apps->at[i].runs;
        if (sy_program_begins(runs, started) && (!best || started->len >= best->runs.len)) {
            alone = !best || started->len > best->runs.len;
            best = &apps->at[i];
        }
    }
    return alone ? best : NULL;
}

const struct sy_app *sy_app_of_window(const struct sy_apps *apps, const struct sy_window *window) {
    for (int sign = 0; sign < 3 && window->class_name[0]; sign++) {
        for (size_t i = 0; i < apps->count; i++) {
            if (fits_class(&apps->at[i], window->class_name, sign)) {
                return &apps->at[i];
            }
        }
    }
    return app_that_runs(apps, &window->runs);
}

static int by_installed_name(const void *a, const void *b) {
    const struct sy_installed *x = a;
    const struct sy_installed *y = b;
    int order = strcmp(x->app->name, y->app->name);
    return order ? order : strcmp(x->app->id, y->app->id);
}

static char *with_id(const char *name, const char *id) {
    size_t size = strlen(name) + strlen(id) + sizeof " ()";
    char *text = malloc(size);
    if (text) {
        snprintf(text, size, "%s (%s)", name, id);
    }
    return text;
}

static bool same_name(const struct sy_installed *list, size_t count, size_t at) {
    return (at > 0 && strcmp(list[at - 1].app->name, list[at].app->name) == 0) ||
           (at + 1 < count && strcmp(list[at].app->name, list[at + 1].app->name) == 0);
}

static bool name_installed(struct sy_snapshot *snapshot) {
    const struct sy_apps *apps = &snapshot->apps;
    struct sy_installed *list = calloc(apps->count + 1, sizeof *list);
    snapshot->installed = list;
    if (!list) {
        return false;
    }
    for (size_t i = 0; i < apps->count; i++) {
        list[i].app = &apps->at[i];
    }
    qsort(list, apps->count, sizeof *list, by_installed_name);
    for (size_t i = 0; i < apps->count; i++) {
        const struct sy_app *app = list[i].app;
        list[i].name = same_name(list, apps->count, i) ? with_id(app->name, app->id) : strdup(app->name);
        if (!list[i].name) {
            return false;
        }
        snapshot->installed_count++;
    }
    return true;
}

/* An application's name may equal another application's name with the id added. Then its own id is added too. */
static bool make_installed_unique(struct sy_snapshot *snapshot) {
    struct sy_installed *list = snapshot->installed;
    for (size_t i = 0; i < snapshot->installed_count; i++) {
        const char *own = list[i].app->name;
        bool alike = own[0] && own[strlen(own) - 1] == ')' && strcmp(list[i].name, own) == 0;
        bool taken = false;
        for (size_t k = 0; k < snapshot->installed_count && alike; k++) {
            taken |= k != i && strcmp(list[k].name, own) == 0;
        }
        if (taken) {
            free(list[i].name);
            list[i].name = with_id(own, list[i].app->id);
        }
        if (!list[i].name) {
            return false;
        }
    }
    return true;
}

static const char *installed_name(const struct sy_snapshot *snapshot, const struct sy_app *app) {
    size_t i = 0;
    while (snapshot->installed[i].app != app) {
        i++;
    }
    return snapshot->installed[i].name;
}

/* The name for a window without an application. */
static const char *own_name(const struct sy_window *window) {
    return window->class_name[0] ? window->class_name : window->title[0] ? window->title : "window";
}

static struct sy_running *running_of(struct sy_snapshot *snapshot, const struct sy_app *app, const char *name) {
    for (size_t i = 0; i < snapshot->running_count; i++) {
        struct sy_running *at = &snapshot->running[i];
        if (app ? at->app == app : !at->app && strcmp(at->name, name) == 0) {
            return at;
        }
    }
    return NULL;
}

static struct sy_running *add_running(struct sy_snapshot *snapshot, const struct sy_app *app, const char *name) {
    struct sy_running *at = &snapshot->running[snapshot->running_count];
    at->name = strdup(name);
    at->windows = calloc(snapshot->windows.count, sizeof *at->windows);
    at->app = app;
    snapshot->running_count++;
    return at->name && at->windows ? at : NULL;
}

static int by_running_name(const void *a, const void *b) {
    return strcmp(((const struct sy_running *)a)->name, ((const struct sy_running *)b)->name);
}

static bool find_running(struct sy_snapshot *snapshot) {
    const struct sy_windows *windows = &snapshot->windows;
    snapshot->running = calloc(windows->count + 1, sizeof *snapshot->running);
    if (!snapshot->running) {
        return false;
    }
    for (size_t i = 0; i < windows->count; i++) {
        const struct sy_window *window = &windows->at[i];
        const struct sy_app *app = sy_app_of_window(&snapshot->apps, window);
        const char *name = app ? installed_name(snapshot, app) : own_name(window);
        struct sy_running *running = running_of(snapshot, app, name);
        running = running ? running : add_running(snapshot, app, name);
        if (!running) {
            return false;
        }
        running->windows[running->window_count++] = i;
        running->active |= window->active;
    }
    qsort(snapshot->running, snapshot->running_count, sizeof *snapshot->running, by_running_name);
    return true;
}

static bool is_taken(const struct sy_snapshot *snapshot, const struct sy_running *running) {
    bool taken = sy_find_installed(snapshot, running->name) != NULL;
    for (size_t i = 0; i < snapshot->running_count; i++) {
        const struct sy_running *at = &snapshot->running[i];
        taken |= at != running && strcmp(at->name, running->name) == 0;
    }
    return taken;
}

/* A window without an entry may have the name of an application or of another window. Then " (window)" is added. */
static bool make_unique(struct sy_snapshot *snapshot) {
    for (size_t i = 0; i < snapshot->running_count; i++) {
        struct sy_running *at = &snapshot->running[i];
        while (!at->app && is_taken(snapshot, at)) {
            char *name = with_id(at->name, "window");
            if (!name) {
                return false;
            }
            free(at->name);
            at->name = name;
        }
    }
    qsort(snapshot->running, snapshot->running_count, sizeof *snapshot->running, by_running_name);
    return true;
}

const struct sy_running *sy_find_running(const struct sy_snapshot *snapshot, const char *name) {
    for (size_t i = 0; i < snapshot->running_count; i++) {
        if (strcmp(snapshot->running[i].name, name) == 0) {
            return &snapshot->running[i];
        }
    }
    return NULL;
}

const struct sy_installed *sy_find_installed(const struct sy_snapshot *snapshot, const char *name) {
    for (size_t i = 0; i < snapshot->installed_count; i++) {
        if (strcmp(snapshot->installed[i].name, name) == 0) {
            return &snapshot->installed[i];
        }
    }
    return NULL;
}

/* ---- tabs ---- */

/* Orders windows by age. Ids of windows are numbers, larger for later windows; other ids are compared as text. */
static int by_window(const char *a, const char *b) {
    char *end_a;
    char *end_b;
    uintmax_t x = strtoumax(a, &end_a, 10);
    uintmax_t y = strtoumax(b, &end_b, 10);
    bool numbers = !*end_a && !*end_b;
    return numbers && x != y ? (x > y) - (x < y) : strcmp(a, b);
}

static int by_place(const void *a, const void *b) {
    const struct sy_tab *x = ((const struct sy_numbered_tab *)a)->tab;
    const struct sy_tab *y = ((const struct sy_numbered_tab *)b)->tab;
    int order = by_window(x->window_id, y->window_id);
    order = order ? order : (x->position > y->position) - (x->position < y->position);
    return order ? order : strcmp(x->id, y->id);
}

static uint32_t folded(uint64_t hash) {
    return (uint32_t)(hash ^ hash >> 32);
}

/* Makes the handle: TABS_DIGITS digits from the hash of the ids in their order, and as many from that of the addresses.
 * Each text is hashed with its NUL. */
static void make_handle(struct sy_snapshot *snapshot) {
    uint64_t tabs = FM_HASH_START;
    uint64_t pages = FM_HASH_START;
    for (size_t i = 0; i < snapshot->tab_count; i++) {
        const struct sy_tab *tab = snapshot->tabs[i].tab;
        tabs = fm_hash(tabs, tab->id, strlen(tab->id) + 1);
        pages = fm_hash(pages, tab->url, strlen(tab->url) + 1);
    }
    snprintf(snapshot->handle, sizeof snapshot->handle, "%08" PRIx32 "%08" PRIx32, folded(tabs), folded(pages));
}

bool sy_same_tabs(const char *handle, const char *other) {
    return strlen(handle) == SY_HANDLE_SIZE - 1 && strncmp(handle, other, TABS_DIGITS) == 0;
}

static bool number_tabs(struct sy_snapshot *snapshot) {
    const struct sy_tabs *raw = &snapshot->raw_tabs;
    char domain[DOMAIN_SIZE];
    snapshot->tabs = calloc(raw->count + 1, sizeof *snapshot->tabs);
    if (!snapshot->tabs) {
        return false;
    }
    for (size_t i = 0; i < raw->count; i++) {
        struct sy_numbered_tab *at = &snapshot->tabs[i];
        (void)sy_url_domain(raw->at[i].url, domain, sizeof domain);
        at->tab = &raw->at[i];
        at->domain = strdup(domain);
        snapshot->tab_count++;
        if (!at->domain) {
            return false;
        }
    }
    qsort(snapshot->tabs, snapshot->tab_count, sizeof *snapshot->tabs, by_place);
    for (size_t i = 0; i < snapshot->tab_count; i++) {
        struct sy_numbered_tab *at = &snapshot->tabs[i];
        bool same = i > 0 && strcmp(at[-1].tab->window_id, at->tab->window_id) == 0;
        at->window_index = same ? at[-1].window_index : i > 0 ? at[-1].window_index + 1 : 1;
        at->local_index = same ? at[-1].local_index + 1 : 1;
    }
    make_handle(snapshot);
    return true;
}

/* ---- the whole ---- */

enum fm_code sy_snapshot_take(const struct sy_desktop *desktop, struct sy_snapshot *snapshot, struct fm_error *error) {
    *snapshot = (struct sy_snapshot){0};
    enum fm_code code = take_lists(desktop, snapshot, error);
    if (code == FM_OK && snapshot->monitors.count > 0) {
        qsort(snapshot->monitors.at, snapshot->monitors.count, sizeof *snapshot->monitors.at, by_left_edge);
    }
    if (code == FM_OK &&
        !(name_installed(snapshot) && make_installed_unique(snapshot) && find_running(snapshot) &&
          make_unique(snapshot) && number_tabs(snapshot))) {
        code = fm_fail_no_memory(error);
    }
    if (code != FM_OK) {
        sy_snapshot_free(snapshot);
    }
    return code;
}

void sy_snapshot_free(struct sy_snapshot *snapshot) {
    for (size_t i = 0; i < snapshot->running_count; i++) {
        free(snapshot->running[i].name);
        free(snapshot->running[i].windows);
    }
    for (size_t i = 0; i < snapshot->installed_count; i++) {
        free(snapshot->installed[i].name);
    }
    for (size_t i = 0; i < snapshot->tab_count; i++) {
        free(snapshot->tabs[i].domain);
    }
    free(snapshot->running);
    free(snapshot->installed);
    free(snapshot->tabs);
    sy_monitors_free(&snapshot->monitors);
    sy_windows_free(&snapshot->windows);
    sy_apps_free(&snapshot->apps);
    sy_tabs_free(&snapshot->raw_tabs);
    *snapshot = (struct sy_snapshot){0};
}
