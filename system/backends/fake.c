/* The fake desktop: lists in memory, rules, and a clock that jumps. An action applies its rules, then does its work. */
#include "backends/fake.h"
#include "base/buf.h"
#include "base/platform.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG_MAX   1048576u /* bytes of the log */
#define LAUNCH_MS 100
#define NEVER     INT64_MAX

/* Something that happens at a given time. */
struct later {
    int64_t at_ms;
    struct json_object *what; /* the event, in the form of a rule's `do`; owned */
};

struct fake {
    int64_t now_ms;
    int64_t cancel_ms;
    int cancel_fd;   /* readable: cancelled; -1: none */
    bool takes_time; /* `wait` really waits */
    FILE *log_file;  /* the log is also written to this file; NULL: none */
    struct sy_monitors monitors;
    struct sy_windows windows;
    struct sy_apps apps;
    struct sy_tabs tabs;
    char **texts;              /* texts of the tabs */
    struct json_object *rules; /* an array, owned */
    struct later *later;
    size_t later_count;
    int made; /* how many windows and tabs were opened, for their ids */
    struct fm_buf log;
    struct sy_backend backend; /* functions that the description lists under "lacks" are NULL */
};

/* ---- reading JSON ---- */

static const char *member_text(struct json_object *object, const char *name) {
    const char *text = json_object_get_string(json_object_object_get(object, name));
    return text ? text : "";
}

static void read_id(struct json_object *object, const char *name, char id[SY_ID_MAX]) {
    snprintf(id, SY_ID_MAX, "%s", member_text(object, name));
}

static struct sy_rect read_rect(struct json_object *list) {
    int edges[4] = {0};
    for (size_t i = 0; i < 4 && list; i++) {
        edges[i] = json_object_get_int(json_object_array_get_idx(list, i));
    }
    return (struct sy_rect){edges[0], edges[1], edges[2], edges[3]};
}

/* Reads an array of texts: the program's path, and its arguments. */
static struct sy_program read_runs(struct json_object *object) {
    struct json_object *list = json_object_object_get(object, "runs");
    struct fm_buf items;
    fm_buf_init(&items, LOG_MAX);
    for (size_t i = 0; list && i < json_object_array_length(list); i++) {
        fm_buf_append_str(&items, json_object_get_string(json_object_array_get_idx(list, i)));
        fm_buf_append_char(&items, '\0');
    }
    struct sy_program runs = {.items = NULL};
    (void)sy_program_copy(&(struct sy_program){items.data, items.len}, &runs);
    fm_buf_free(&items);
    return runs;
}

static struct sy_window read_window(struct json_object *object) {
    struct sy_window window = {.class_name = strdup(member_text(object, "class")),
                               .title = strdup(member_text(object, "title")),
                               .pid = json_object_get_int64(json_object_object_get(object, "pid")),
                               .runs = read_runs(object),
                               .bounds = read_rect(json_object_object_get(object, "bounds")),
                               .active = json_object_get_boolean(json_object_object_get(object, "active"))};
    read_id(object, "id", window.id);
    return window;
}

static struct sy_tab read_tab(struct json_object *object) {
    struct sy_tab tab = {.active = json_object_get_boolean(json_object_object_get(object, "active")),
                         .title = strdup(member_text(object, "title")),
                         .url = strdup(member_text(object, "url")),
                         .opened_ms = json_object_get_double(json_object_object_get(object, "opened"))};
    read_id(object, "id", tab.id);
    read_id(object, "window", tab.window_id);
    return tab;
}

/* ---- lists ---- */

static void *grow(void *list, size_t count, size_t size) {
    void *larger = realloc(list, (count + 1) * size);
    if (!larger) {
        abort(); /* a test's desktop is small */
    }
    return larger;
}

static void insert_window(struct fake *fake, struct sy_window window) {
    struct sy_windows *list = &fake->windows;
    list->at = grow(list->at, list->count, sizeof *list->at);
    memmove(list->at + 1, list->at, list->count * sizeof *list->at);
    list->at[0] = window;
    list->count++;
}

static size_t find_window(const struct fake *fake, const char *id) {
    size_t i = 0;
    while (i < fake->windows.count && strcmp(fake->windows.at[i].id, id) != 0) {
        i++;
    }
    return i;
}

static void remove_window(struct fake *fake, size_t index) {
    struct sy_windows *list = &fake->windows;
    free(list->at[index].class_name);
    free(list->at[index].title);
    sy_program_free(&list->at[index].runs);
    list->count--;
    memmove(list->at + index, list->at + index + 1, (list->count - index) * sizeof *list->at);
}

static void raise_window(struct fake *fake, size_t index) {
    struct sy_windows *list = &fake->windows;
    struct sy_window window = list->at[index];
    memmove(list->at + 1, list->at, index * sizeof *list->at);
    for (size_t i = 1; i < list->count; i++) {
        list->at[i].active = false;
    }
    list->at[0] = window;
    list->at[0].active = true;
}

static size_t find_tab(const struct fake *fake, const char *id) {
    size_t i = 0;
    while (i < fake->tabs.count && strcmp(fake->tabs.at[i].id, id) != 0) {
        i++;
    }
    return i;
}

static void insert_tab(struct fake *fake, size_t index, struct sy_tab tab, char *text) {
    struct sy_tabs *list = &fake->tabs;
    list->at = grow(list->at, list->count, sizeof *list->at);
    fake->texts = grow(fake->texts, list->count, sizeof *fake->texts);
    memmove(list->at + index + 1, list->at + index, (list->count - index) * sizeof *list->at);
    memmove(fake->texts + index + 1, fake->texts + index, (list->count - index) * sizeof *fake->texts);
    list->at[index] = tab;
    fake->texts[index] = text;
    list->count++;
}

/* Takes the tab out of the list. The caller frees its strings. */
static struct sy_tab take_tab(struct fake *fake, size_t index, char **text) {
    struct sy_tabs *list = &fake->tabs;
    struct sy_tab tab = list->at[index];
    *text = fake->texts[index];
    list->count--;
    memmove(list->at + index, list->at + index + 1, (list->count - index) * sizeof *list->at);
    memmove(fake->texts + index, fake->texts + index + 1, (list->count - index) * sizeof *fake->texts);
    return tab;
}

static void remove_tab(struct fake *fake, size_t index) {
    char *text;
    struct sy_tab tab = take_tab(fake, index, &text);
    free(tab.title);
    free(tab.url);
    free(text);
}

static void show_tab(struct fake *fake, size_t index) {
    struct sy_tabs *list = &fake->tabs;
    for (size_t i = 0; i < list->count; i++) {
        bool same = strcmp(list->at[i].window_id, list->at[index].window_id) == 0;
        list->at[i].active = same ? i == index : list->at[i].active;
    }
}

/* ---- the user's actions ---- */

static void act(struct fake *fake, const char *what, struct json_object *value) {
    const char *id = json_object_get_string(value);
    if (strcmp(what, "tab.open") == 0) {
        const char *text = json_object_get_string(json_object_object_get(value, "text"));
        insert_tab(fake, fake->tabs.count, read_tab(value), text ? strdup(text) : NULL);
    } else if (strcmp(what, "tab.close") == 0 && find_tab(fake, id) < fake->tabs.count) {
        remove_tab(fake, find_tab(fake, id));
    } else if (strcmp(what, "tab.move") == 0 && find_tab(fake, member_text(value, "id")) < fake->tabs.count) {
        char *text;
        struct sy_tab tab = take_tab(fake, find_tab(fake, member_text(value, "id")), &text);
        insert_tab(fake, find_tab(fake, member_text(value, "before")), tab, text);
    } else if (strcmp(what, "tab.go") == 0 && find_tab(fake, member_text(value, "id")) < fake->tabs.count) {
        struct sy_tab *tab = &fake->tabs.at[find_tab(fake, member_text(value, "id"))];
        free(tab->url);
        tab->url = strdup(member_text(value, "url"));
    } else if (strcmp(what, "window.open") == 0) {
        insert_window(fake, read_window(value));
    } else if (strcmp(what, "window.close") == 0 && find_window(fake, id) < fake->windows.count) {
        remove_window(fake, find_window(fake, id));
    }
}

static void act_all(struct fake *fake, struct json_object *actions) {
    struct json_object_iter at;
    json_object_object_foreachC(actions, at) {
        act(fake, at.key, at.val);
    }
}

static void add_later(struct fake *fake, int64_t at_ms, struct json_object *what) {
    fake->later = grow(fake->later, fake->later_count, sizeof *fake->later);
    fake->later[fake->later_count++] = (struct later){at_ms, what};
}

/* The next event; NULL: there is none. */
static struct later *next_later(const struct fake *fake) {
    struct later *first = NULL;
    for (size_t i = 0; i < fake->later_count; i++) {
        first = !first || fake->later[i].at_ms < first->at_ms ? &fake->later[i] : first;
    }
    return first;
}

/* ---- actions ---- */

enum outcome { HAPPENS, REFUSED, FAILS };

static bool applies(struct json_object *rule, const char *action) {
    const char *on = member_text(rule, "on");
    size_t len = strlen(on);
    return len > 0 && strncmp(on, action, len) == 0 && (action[len] == '\0' || action[len] == ' ');
}

/* Notes the action and does what its rules say. */
static enum outcome begin_action(struct fake *fake, const char *action) {
    enum outcome outcome = HAPPENS;
    fm_buf_append_str(&fake->log, action);
    fm_buf_append_char(&fake->log, '\n');
    if (fake->log_file) {
        fprintf(fake->log_file, "%s\n", action);
        fflush(fake->log_file);
    }
    for (size_t i = 0; i < json_object_array_length(fake->rules); i++) {
        struct json_object *rule = json_object_array_get_idx(fake->rules, i);
        struct json_object *what = json_object_object_get(rule, "do");
        if (!applies(rule, action)) {
            continue;
        }
        if (json_object_is_type(what, json_type_object)) {
            act_all(fake, what);
        } else {
            outcome = strcmp(json_object_get_string(what), "fail") == 0 ? FAILS : REFUSED;
        }
        if (json_object_get_boolean(json_object_object_get(rule, "once"))) {
            json_object_object_del(rule, "on");
        }
    }
    return outcome;
}

static enum fm_code failed(const char *action, struct fm_error *error) {
    return fm_fail(error, FM_UNAVAILABLE, "the fake desktop fails at %.200s", action);
}

static enum fm_code gone(const char *id, struct fm_error *error) {
    return fm_fail(error, FM_NOT_FOUND, "%s is not there any more", id);
}

static int64_t fake_now(void *self) {
    return ((struct fake *)self)->now_ms;
}

static enum fm_code wait_until(void *self, int64_t until_ms, struct fm_error *error) {
    struct fake *fake = self;
    struct later *next = next_later(fake);
    int64_t at = next && next->at_ms < until_ms ? next->at_ms : until_ms;
    if (fake->cancel_ms <= at) {
        fake->now_ms = fake->cancel_ms > fake->now_ms ? fake->cancel_ms : fake->now_ms;
        return fm_fail(error, FM_CANCELLED, "the call was cancelled");
    }
    struct fm_waited waited = {.fd = fake->cancel_fd, .input = true};
    int time_ms = fake->takes_time && at > fake->now_ms ? (int)(at - fake->now_ms) : 0;
    if (fm_wait(&waited, 1, time_ms) > 0) {
        return fm_fail(error, FM_CANCELLED, "the call was cancelled");
    }
    fake->now_ms = at > fake->now_ms ? at : fake->now_ms;
    if (next && next->at_ms <= fake->now_ms) {
        struct json_object *what = next->what;
        *next = fake->later[--fake->later_count];
        act_all(fake, what);
        json_object_put(what);
    }
    return FM_OK;
}

static int fake_descriptor(void *self) {
    (void)self;
    return -1; /* things change only in `wait` */
}

static enum fm_code list_monitors(void *self, struct sy_monitors *monitors, struct fm_error *error) {
    struct fake *fake = self;
    (void)error;
    *monitors = (struct sy_monitors){calloc(fake->monitors.count + 1, sizeof *monitors->at), fake->monitors.count};
    for (size_t i = 0; i < monitors->count; i++) {
        monitors->at[i] = fake->monitors.at[i];
    }
    return FM_OK;
}

static enum fm_code list_windows(void *self, struct sy_windows *windows, struct fm_error *error) {
    struct fake *fake = self;
    (void)error;
    *windows = (struct sy_windows){calloc(fake->windows.count + 1, sizeof *windows->at), fake->windows.count};
    for (size_t i = 0; i < windows->count; i++) {
        windows->at[i] = fake->windows.at[i];
        windows->at[i].class_name = strdup(fake->windows.at[i].class_name);
        windows->at[i].title = strdup(fake->windows.at[i].title);
        (void)sy_program_copy(&fake->windows.at[i].runs, &windows->at[i].runs);
    }
    return FM_OK;
}

static enum fm_code list_apps(void *self, struct sy_apps *apps, struct fm_error *error) {
    struct fake *fake = self;
    (void)error;
    *apps = (struct sy_apps){calloc(fake->apps.count + 1, sizeof *apps->at), fake->apps.count};
    for (size_t i = 0; i < apps->count; i++) {
        apps->at[i] = fake->apps.at[i];
        apps->at[i].name = strdup(fake->apps.at[i].name);
        apps->at[i].window_class = strdup(fake->apps.at[i].window_class);
        apps->at[i].program = strdup(fake->apps.at[i].program);
        (void)sy_program_copy(&fake->apps.at[i].runs, &apps->at[i].runs);
        apps->at[i].keywords = strdup(fake->apps.at[i].keywords);
    }
    return FM_OK;
}

/* Gives the tabs from the last to the first, since callers must not rely on their order. */
static enum fm_code list_tabs(void *self, struct sy_tabs *tabs, struct fm_error *error) {
    struct fake *fake = self;
    size_t count = fake->tabs.count;
    (void)error;
    *tabs = (struct sy_tabs){calloc(count + 1, sizeof *tabs->at), count};
    for (size_t i = 0; i < count; i++) {
        struct sy_tab *copy = &tabs->at[count - 1 - i];
        *copy = fake->tabs.at[i];
        copy->title = strdup(copy->title);
        copy->url = strdup(copy->url);
        for (size_t before = 0; before < i; before++) {
            copy->position += strcmp(fake->tabs.at[before].window_id, copy->window_id) == 0;
        }
    }
    return FM_OK;
}

static enum fm_code focus(void *self, const char *window, struct fm_error *error) {
    struct fake *fake = self;
    char action[SY_ID_MAX + 16];
    snprintf(action, sizeof action, "focus %s", window);
    enum outcome outcome = begin_action(fake, action);
    size_t index = find_window(fake, window);
    if (index == fake->windows.count) {
        return gone(window, error);
    }
    if (outcome == HAPPENS) {
        raise_window(fake, index);
    }
    return outcome == FAILS ? failed(action, error) : FM_OK;
}

static enum fm_code place_window(void *self, const char *window, const struct sy_rect *bounds, struct fm_error *error) {
    struct fake *fake = self;
    char action[SY_ID_MAX + 64];
    snprintf(action, sizeof action, "place %s %d %d %d %d", window, bounds->left, bounds->top, bounds->right,
             bounds->bottom);
    enum outcome outcome = begin_action(fake, action);
    size_t index = find_window(fake, window);
    if (index == fake->windows.count) {
        return gone(window, error);
    }
    if (outcome == HAPPENS) {
        fake->windows.at[index].bounds = *bounds;
    }
    return outcome == FAILS ? failed(action, error) : FM_OK;
}

static enum fm_code close_window(void *self, const char *window, struct fm_error *error) {
    struct fake *fake = self;
    char action[SY_ID_MAX + 16];
    snprintf(action, sizeof action, "close %s", window);
    enum outcome outcome = begin_action(fake, action);
    size_t index = find_window(fake, window);
    if (index == fake->windows.count) {
        return gone(window, error);
    }
    if (outcome == HAPPENS) {
        remove_window(fake, index);
    }
    return outcome == FAILS ? failed(action, error) : FM_OK;
}

static struct json_object *window_of(struct fake *fake, const struct sy_app *app) {
    char id[32];
    snprintf(id, sizeof id, "new%d", ++fake->made);
    struct json_object *window = json_object_new_object();
    struct json_object *bounds = json_object_new_array();
    const int edges[] = {100, 100, 740, 580};
    for (size_t i = 0; i < 4; i++) {
        json_object_array_add(bounds, json_object_new_int(edges[i]));
    }
    json_object_object_add(window, "id", json_object_new_string(id));
    json_object_object_add(window, "class",
                           json_object_new_string(app->window_class[0] ? app->window_class : app->program));
    json_object_object_add(window, "title", json_object_new_string(app->name));
    json_object_object_add(window, "bounds", bounds);
    struct json_object *what = json_object_new_object();
    json_object_object_add(what, "window.open", window);
    return what;
}

static enum fm_code launch_app(void *self, const char *app, struct fm_error *error) {
    struct fake *fake = self;
    char action[SY_ID_MAX + 16];
    snprintf(action, sizeof action, "launch %s", app);
    enum outcome outcome = begin_action(fake, action);
    size_t i = 0;
    while (i < fake->apps.count && strcmp(fake->apps.at[i].id, app) != 0) {
        i++;
    }
    if (i == fake->apps.count) {
        return gone(app, error);
    }
    if (outcome == HAPPENS) {
        add_later(fake, fake->now_ms + LAUNCH_MS, window_of(fake, &fake->apps.at[i]));
    }
    return outcome == FAILS ? failed(action, error) : FM_OK;
}

static enum fm_code activate(void *self, const char *tab, struct fm_error *error) {
    struct fake *fake = self;
    char action[SY_ID_MAX + 16];
    snprintf(action, sizeof action, "tab.activate %s", tab);
    enum outcome outcome = begin_action(fake, action);
    size_t index = find_tab(fake, tab);
    if (index == fake->tabs.count) {
        return gone(tab, error);
    }
    if (outcome == HAPPENS) {
        show_tab(fake, index);
    }
    return outcome == FAILS ? failed(action, error) : FM_OK;
}

static enum fm_code open_tab(void *self, const char *url, char tab[SY_ID_MAX], struct fm_error *error) {
    struct fake *fake = self;
    struct fm_buf action;
    fm_buf_init(&action, LOG_MAX);
    fm_buf_append_str(&action, "tab.open ");
    fm_buf_append_str(&action, url);
    fm_buf_append_char(&action, '\0');
    enum outcome outcome = begin_action(fake, action.data);
    fm_buf_free(&action);
    if (outcome == FAILS) {
        return failed("tab.open", error);
    }
    struct sy_tab opened = {.title = strdup(""), .url = strdup(url)};
    snprintf(opened.id, sizeof opened.id, "new%d", ++fake->made);
    snprintf(opened.window_id, sizeof opened.window_id, "%s", fake->tabs.count ? fake->tabs.at[0].window_id : "1");
    snprintf(tab, SY_ID_MAX, "%s", opened.id);
    insert_tab(fake, fake->tabs.count, opened, NULL);
    show_tab(fake, fake->tabs.count - 1);
    return FM_OK;
}

static enum fm_code close_tab(void *self, const char *tab, struct fm_error *error) {
    struct fake *fake = self;
    char action[SY_ID_MAX + 16];
    snprintf(action, sizeof action, "tab.close %s", tab);
    enum outcome outcome = begin_action(fake, action);
    size_t index = find_tab(fake, tab);
    if (index == fake->tabs.count) {
        return gone(tab, error);
    }
    if (outcome == HAPPENS) {
        remove_tab(fake, index);
    }
    return outcome == FAILS ? failed(action, error) : FM_OK;
}

static enum fm_code text(void *self, const char *tab, int64_t until_ms, char **out, struct fm_error *error) {
    struct fake *fake = self;
    char action[SY_ID_MAX + 16];
    snprintf(action, sizeof action, "tab.text %s", tab);
    enum outcome outcome = begin_action(fake, action);
    size_t index = find_tab(fake, tab);
    *out = NULL;
    if (index == fake->tabs.count) {
        return gone(tab, error);
    }
    if (outcome == REFUSED) { /* the page does not answer in time */
        fake->now_ms = until_ms;
    } else if (outcome == HAPPENS && fake->texts[index]) {
        *out = strdup(fake->texts[index]);
    }
    return outcome == FAILS ? failed(action, error) : FM_OK;
}

static void free_fake(void *self) {
    struct fake *fake = self;
    for (size_t i = 0; i < fake->tabs.count; i++) {
        free(fake->texts[i]);
    }
    for (size_t i = 0; i < fake->later_count; i++) {
        json_object_put(fake->later[i].what);
    }
    free(fake->texts);
    free(fake->later);
    sy_monitors_free(&fake->monitors);
    sy_windows_free(&fake->windows);
    sy_apps_free(&fake->apps);
    sy_tabs_free(&fake->tabs);
    fm_buf_free(&fake->log);
    json_object_put(fake->rules);
    if (fake->log_file) {
        fclose(fake->log_file);
    }
    free(fake);
}

/* ---- making a backend ---- */

static const struct sy_backend whole = {
    .name = "fake",
    .now = fake_now,
    .wait = wait_until,
    .descriptor = fake_descriptor,
    .monitors = list_monitors,
    .windows = list_windows,
    .focus = focus,
    .place = place_window,
    .close = close_window,
    .apps = list_apps,
    .launch = launch_app,
    .tabs = list_tabs,
    .activate = activate,
    .open = open_tab,
    .close_tab = close_tab,
    .text = text,
    .free = free_fake,
};

static void leave_out(struct sy_backend *backend, const char *group) {
    if (strcmp(group, "monitors") == 0) {
        backend->monitors = NULL;
    } else if (strcmp(group, "windows") == 0) {
        backend->windows = NULL;
        backend->focus = backend->close = NULL;
        backend->place = NULL;
    } else if (strcmp(group, "apps") == 0) {
        backend->apps = NULL;
        backend->launch = NULL;
    } else {
        backend->tabs = NULL;
        backend->activate = backend->close_tab = NULL;
        backend->open = NULL;
        backend->text = NULL;
    }
}

static void read_lists(struct fake *fake, struct json_object *description) {
    struct json_object *list = json_object_object_get(description, "monitors");
    for (size_t i = 0; list && i < json_object_array_length(list); i++) {
        struct json_object *at = json_object_array_get_idx(list, i);
        fake->monitors.at = grow(fake->monitors.at, i, sizeof *fake->monitors.at);
        fake->monitors.at[fake->monitors.count++] =
            (struct sy_monitor){read_rect(json_object_object_get(at, "area")),
                                json_object_get_boolean(json_object_object_get(at, "primary"))};
    }
    list = json_object_object_get(description, "apps");
    for (size_t i = 0; list && i < json_object_array_length(list); i++) {
        struct json_object *at = json_object_array_get_idx(list, i);
        struct sy_app app = {.name = strdup(member_text(at, "name")),
                             .window_class = strdup(member_text(at, "class")),
                             .program = strdup(member_text(at, "program")),
                             .keywords = strdup(member_text(at, "keywords")),
                             .runs = read_runs(at)};
        read_id(at, "id", app.id);
        fake->apps.at = grow(fake->apps.at, i, sizeof *fake->apps.at);
        fake->apps.at[fake->apps.count++] = app;
    }
    list = json_object_object_get(description, "windows");
    for (size_t i = list ? json_object_array_length(list) : 0; i > 0; i--) {
        insert_window(fake, read_window(json_object_array_get_idx(list, i - 1)));
    }
    list = json_object_object_get(description, "tabs");
    for (size_t i = 0; list && i < json_object_array_length(list); i++) {
        act(fake, "tab.open", json_object_array_get_idx(list, i));
    }
}

static void read_rules(struct fake *fake) {
    for (size_t i = 0; i < json_object_array_length(fake->rules); i++) {
        struct json_object *rule = json_object_array_get_idx(fake->rules, i);
        struct json_object *after = json_object_object_get(rule, "after_ms");
        if (after) {
            add_later(fake, json_object_get_int64(after), json_object_get(json_object_object_get(rule, "do")));
        }
    }
}

enum fm_code sy_fake_new(struct json_object *description, struct sy_desktop *desktop, struct fm_error *error) {
    static const char *const lists[] = {"monitors", "apps", "windows", "tabs", "rules", "lacks"};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        struct json_object *list = json_object_object_get(description, lists[i]);
        if (list && !json_object_is_type(list, json_type_array)) {
            return fm_fail(error, FM_INVALID_REQUEST, "the fake desktop's \"%s\" must be an array", lists[i]);
        }
    }
    struct fake *fake = calloc(1, sizeof *fake);
    if (!fake) {
        return fm_fail_no_memory(error);
    }
    fake->cancel_ms = NEVER;
    fake->cancel_fd = -1;
    fake->takes_time = json_object_get_boolean(json_object_object_get(description, "takes_time"));
    fake->log_file = *member_text(description, "log") ? fopen(member_text(description, "log"), "ae") : NULL;
    fake->backend = whole;
    fm_buf_init(&fake->log, LOG_MAX);
    struct json_object *rules = json_object_object_get(description, "rules");
    fake->rules = rules ? json_object_get(rules) : json_object_new_array();
    read_lists(fake, description);
    read_rules(fake);
    struct json_object *lacks = json_object_object_get(description, "lacks");
    for (size_t i = 0; lacks && i < json_object_array_length(lacks); i++) {
        leave_out(&fake->backend, json_object_get_string(json_object_array_get_idx(lacks, i)));
    }
    *desktop = (struct sy_desktop){&fake->backend, fake};
    return FM_OK;
}

const struct fm_buf *sy_fake_log(const struct sy_desktop *desktop) {
    return &((const struct fake *)desktop->self)->log;
}

void sy_fake_cancel_at(const struct sy_desktop *desktop, int64_t ms) {
    ((struct fake *)desktop->self)->cancel_ms = ms < 0 ? NEVER : ms;
}

void sy_fake_cancel_by(const struct sy_desktop *desktop, int fd) {
    ((struct fake *)desktop->self)->cancel_fd = fd;
}
