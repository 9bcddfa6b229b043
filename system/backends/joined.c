/*
 * The real desktop: each group of functions belongs to one part. When a part's descriptor shows a change, the part's
 * `wait` is called with no time to wait. So the part notes the change, and its descriptor is quiet until the next
 * change.
 */
#include "backends/joined.h"
#include "base/clock.h"
#include "base/platform.h"

#include <stdlib.h>

enum part { WINDOWS, APPS, TABS, PARTS };

struct joined {
    struct sy_desktop parts[PARTS];
    int cancel_fd;
    struct sy_backend backend; /* functions of missing parts are NULL */
};

static int64_t joined_now(void *self) {
    (void)self;
    return fm_now_ms();
}

/* ---- waiting ---- */

_Static_assert(PARTS + 1 <= FM_WAITED_MAX, "fm_wait looks at all parts and the cancel descriptor");

/* Fills `waited`: the parts' descriptors in their order, then the cancel descriptor. */
static void list_descriptors(const struct joined *joined, struct fm_waited waited[PARTS + 1]) {
    for (int i = 0; i < PARTS; i++) {
        const struct sy_desktop *part = &joined->parts[i];
        int fd = part->backend ? part->backend->descriptor(part->self) : -1;
        waited[i] = (struct fm_waited){.fd = fd, .input = true};
    }
    waited[PARTS] = (struct fm_waited){.fd = joined->cancel_fd, .input = true};
}

static enum fm_code take_note(const struct sy_desktop *part, struct fm_error *error) {
    return part->backend->wait(part->self, part->backend->now(part->self), error);
}

static enum fm_code wait_until(void *self, int64_t until_ms, struct fm_error *error) {
    struct joined *joined = self;
    struct fm_waited waited[PARTS + 1];
    int64_t left = until_ms - fm_now_ms();
    left = left < 0 ? 0 : left < INT32_MAX ? left : INT32_MAX;
    list_descriptors(joined, waited);
    (void)fm_wait(waited, PARTS + 1, (int)left);
    if (waited[PARTS].ready) {
        return fm_fail(error, FM_CANCELLED, "the call was cancelled");
    }
    enum fm_code code = FM_OK;
    for (int i = 0; i < PARTS && code == FM_OK; i++) {
        code = waited[i].ready ? take_note(&joined->parts[i], error) : FM_OK;
    }
    return code;
}

static int joined_descriptor(void *self) {
    (void)self;
    return -1; /* there are several descriptors: `wait` looks at all of them */
}

/* ---- windows ---- */

static const struct sy_desktop *part_of(void *self, enum part part) {
    return &((struct joined *)self)->parts[part];
}

static enum fm_code monitors(void *self, struct sy_monitors *list, struct fm_error *error) {
    const struct sy_desktop *part = part_of(self, WINDOWS);
    return part->backend->monitors(part->self, list, error);
}

static enum fm_code windows(void *self, struct sy_windows *list, struct fm_error *error) {
    const struct sy_desktop *part = part_of(self, WINDOWS);
    return part->backend->windows(part->self, list, error);
}

static enum fm_code focus(void *self, const char *window, struct fm_error *error) {
    const struct sy_desktop *part = part_of(self, WINDOWS);
    return part->backend->focus(part->self, window, error);
}

static enum fm_code place_by_part(void *self, const char *window, const struct sy_rect *bounds,
                                  struct fm_error *error) {
    const struct sy_desktop *part = part_of(self, WINDOWS);
    return part->backend->place(part->self, window, bounds, error);
}

static enum fm_code close_window(void *self, const char *window, struct fm_error *error) {
    const struct sy_desktop *part = part_of(self, WINDOWS);
    return part->backend->close(part->self, window, error);
}

/* ---- applications ---- */

static enum fm_code apps(void *self, struct sy_apps *list, struct fm_error *error) {
    const struct sy_desktop *part = part_of(self, APPS);
    return part->backend->apps(part->self, list, error);
}

static enum fm_code launch_by_part(void *self, const char *app, struct fm_error *error) {
    const struct sy_desktop *part = part_of(self, APPS);
    return part->backend->launch(part->self, app, error);
}

/* ---- tabs ---- */

static enum fm_code tabs(void *self, struct sy_tabs *list, struct fm_error *error) {
    const struct sy_desktop *part = part_of(self, TABS);
    return part->backend->tabs(part->self, list, error);
}

static enum fm_code activate(void *self, const char *tab, struct fm_error *error) {
    const struct sy_desktop *part = part_of(self, TABS);
    return part->backend->activate(part->self, tab, error);
}

static enum fm_code open_tab(void *self, const char *url, char tab[SY_ID_MAX], struct fm_error *error) {
    const struct sy_desktop *part = part_of(self, TABS);
    return part->backend->open(part->self, url, tab, error);
}

static enum fm_code close_tab(void *self, const char *tab, struct fm_error *error) {
    const struct sy_desktop *part = part_of(self, TABS);
    return part->backend->close_tab(part->self, tab, error);
}

static enum fm_code text(void *self, const char *tab, int64_t until_ms, char **out, struct fm_error *error) {
    const struct sy_desktop *part = part_of(self, TABS);
    return part->backend->text(part->self, tab, until_ms, out, error);
}

/* ---- making a desktop ---- */

static void free_parts(const struct sy_desktop parts[PARTS]) {
    for (int i = 0; i < PARTS; i++) {
        if (parts[i].backend) {
            parts[i].backend->free(parts[i].self);
        }
    }
}

static void free_joined(void *self) {
    free_parts(((struct joined *)self)->parts);
    free(self);
}

/* Makes the table of functions. A function is NULL if its part lacks it. */
static struct sy_backend make_backend(const struct sy_desktop parts[PARTS]) {
    static const struct sy_backend none = {.name = NULL};
    const struct sy_backend *of[PARTS];
    for (int i = 0; i < PARTS; i++) {
        of[i] = parts[i].backend ? parts[i].backend : &none;
    }
    return (struct sy_backend){
        .name = "this desktop",
        .now = joined_now,
        .wait = wait_until,
        .descriptor = joined_descriptor,
        .monitors = of[WINDOWS]->monitors ? monitors : NULL,
        .windows = of[WINDOWS]->windows ? windows : NULL,
        .focus = of[WINDOWS]->focus ? focus : NULL,
        .place = of[WINDOWS]->place ? place_by_part : NULL,
        .close = of[WINDOWS]->close ? close_window : NULL,
        .apps = of[APPS]->apps ? apps : NULL,
        .launch = of[APPS]->launch ? launch_by_part : NULL,
        .tabs = of[TABS]->tabs ? tabs : NULL,
        .activate = of[TABS]->activate ? activate : NULL,
        .open = of[TABS]->open ? open_tab : NULL,
        .close_tab = of[TABS]->close_tab ? close_tab : NULL,
        .text = of[TABS]->text ? text : NULL,
        .free = free_joined,
    };
}

enum fm_code sy_joined_new(const struct sy_joined_parts *parts, int cancel_fd, struct sy_desktop *desktop,
                           struct fm_error *error) {
    const struct sy_desktop list[PARTS] = {[WINDOWS] = parts->windows, [APPS] = parts->apps, [TABS] = parts->tabs};
    struct joined *joined = calloc(1, sizeof *joined);
    if (!joined) {
        free_parts(list);
        return fm_fail_no_memory(error);
    }
    for (int i = 0; i < PARTS; i++) {
        joined->parts[i] = list[i];
    }
    joined->cancel_fd = cancel_fd;
    joined->backend = make_backend(list);
    *desktop = (struct sy_desktop){&joined->backend, joined};
    return FM_OK;
}
