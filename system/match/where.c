/* Handles places. First the words are read, without any desktop; then the place is converted to pixels of a desktop. */
#include "match/where.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading ---- */

static const char *monitor_word(const char *word) {
    static const char *const pairs[][2] = {
        {"left", "left"},        {"right", "right"},    {"main", "main"},       {"primary", "main"},
        {"other", "other"},      {"leftmost", "left"},  {"rightmost", "right"}, {"second", "second"},
        {"secondary", "second"}, {"lefthand", "left"},  {"righthand", "right"}, {"external", "second"},
        {"first", "main"},       {"middle", "middle"},  {"center", "middle"},   {"centre", "middle"},
        {"central", "middle"},   {"big", "big"},        {"bigger", "big"},      {"biggest", "big"},
        {"large", "big"},        {"larger", "big"},     {"largest", "big"},     {"small", "small"},
        {"smaller", "small"},    {"smallest", "small"}, {"opposite", "other"},  {"next", "other"}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        if (strcmp(word, pairs[i][0]) == 0) {
            return pairs[i][1];
        }
    }
    return NULL;
}

/* Reads a monitor: "left monitor", "main screen". The words "the screen" mean the monitor that has the window. */
static void read_monitor(const struct sy_word *const *words, size_t count, struct sy_where *where, bool *used) {
    for (size_t i = 0; i < count; i++) {
        bool one = strcmp(words[i]->text, "one") == 0 && i > 2 && monitor_word(words[i - 1]->text) &&
                   strcmp(words[i - 2]->text, "the") == 0 && sy_is_one_of(words[i - 3]->text, "to on onto over");
        if (!one && !sy_is_one_of(words[i]->text, "monitor screen display monitors screens displays")) {
            continue;
        }
        used[i] = true;
        const char *name = i > 0 && !used[i - 1] ? monitor_word(words[i - 1]->text) : NULL;
        bool hand = i > 1 && strcmp(words[i - 1]->text, "hand") == 0;
        name = hand ? monitor_word(words[i - 2]->text) : name;
        int number = i + 1 < count ? sy_number(words[i + 1]->text) : -1;
        if (name) {
            where->monitor = name;
            where->given = true;
            used[i - 1] = true;
            used[i - 2 + !hand] = true;
        } else if (number == 1 || number == 2) { /* "monitor 2" */
            where->monitor = number == 1 ? "main" : "second";
            where->given = used[i + 1] = true;
        }
    }
    for (size_t i = 0; i < count && !where->monitor; i++) {
        if (sy_is_one_of(words[i]->text, "main primary") && i + 1 == count) {
            where->monitor = "main";
            where->given = true;
            used[i] = true;
        }
    }
}

/* Reads a size in one word: "1200x800". */
static bool is_size(const char *word, int *width, int *height) {
    char *end;
    if (!isdigit((unsigned char)word[0])) {
        return false;
    }
    long first = strtol(word, &end, 10);
    if (*end != 'x' || !isdigit((unsigned char)end[1])) {
        return false;
    }
    long second = strtol(end + 1, &end, 10);
    bool fits = !*end && first > 0 && first <= INT16_MAX && second > 0 && second <= INT16_MAX; /* as in X11 */
    *width = fits ? (int)first : 0;
    *height = fits ? (int)second : 0;
    return fits;
}

/* Reads a size: "1200x800", "1200 by 800", "1200 x 800". */
static void read_size(const struct sy_word *const *words, size_t count, struct sy_where *where, bool *used) {
    for (size_t i = 0; i < count; i++) {
        int width = 0;
        int height = 0;
        bool one = is_size(words[i]->text, &width, &height);
        bool three = !one && i + 2 < count && sy_is_one_of(words[i + 1]->text, "by x times") &&
                     sy_number(words[i]->text) > 0 && sy_number(words[i + 2]->text) > 0;
        if (three) {
            width = sy_number(words[i]->text);
            height = sy_number(words[i + 2]->text);
            used[i + 1] = used[i + 2] = true;
        }
        if ((one || three) && width > 0 && height > 0) {
            where->width = width;
            where->height = height;
            where->given = where->center = true;
            used[i] = true;
        }
    }
}

static void whole(struct sy_where *where) {
    where->left = where->top = 0;
    where->right = where->bottom = SY_TWELFTHS;
    where->given = where->part = true;
}

/* Computes the twelfths that a direction and a size cover: "right" and 4 give 8 to 12. */
static void span(int sign, int size, int *from, int *to) {
    *from = sign > 0 ? SY_TWELFTHS - size : sign < 0 ? 0 : (SY_TWELFTHS - size) / 2;
    *to = *from + size;
}

struct directions {
    int across, down;
    bool middle;
    int size; /* size of the part, in twelfths of the monitor; 0: not said */
    bool corner;
};

static void read_word(const char *word, const char *next, struct directions *at, struct sy_where *where, bool *used) {
    *used = true;
    if (sy_is_one_of(word, "left leftmost lefthand")) {
        at->across = -1;
    } else if (sy_is_one_of(word, "right rightmost righthand")) {
        at->across = 1;
    } else if (sy_is_one_of(word, "top upper")) {
        at->down = -1;
    } else if (sy_is_one_of(word, "bottom lower")) {
        at->down = 1;
    } else if (sy_is_one_of(word, "half side")) {
        at->size = 6;
    } else if (strcmp(word, "two") == 0 && next && strcmp(next, "thirds") == 0) {
        at->size = 8;
    } else if (sy_is_one_of(word, "third thirds")) {
        at->size = at->size == 8 ? 8 : 4;
    } else if (sy_is_one_of(word, "quarter corner")) {
        at->corner = true;
    } else if (sy_is_one_of(word, "center centre middle centered centred")) {
        at->middle = true;
    } else if (sy_is_one_of(word, "maximize maximise maximized maximised fullscreen full fill fills filling whole "
                                  "entire")) {
        whole(where);
    } else {
        *used = sy_is_one_of(word, "size sized half hand corner");
    }
}

static void take_directions(const struct directions *at, struct sy_where *where) {
    if (at->corner && (at->across || at->down)) {
        span(at->across, at->down ? 6 : 3, &where->left, &where->right);
        span(at->down, at->down ? 6 : SY_TWELFTHS, &where->top, &where->bottom);
    } else if (at->across && at->down) {
        span(at->across, 6, &where->left, &where->right);
        span(at->down, 6, &where->top, &where->bottom);
    } else if (at->down) {
        whole(where);
        span(at->down, at->size ? at->size : 6, &where->top, &where->bottom);
    } else if (at->across && at->size) {
        whole(where);
        span(at->across, at->size, &where->left, &where->right);
    } else if (at->middle && at->size == 4) {
        whole(where);
        span(0, 4, &where->left, &where->right);
    } else if (at->across) {
        where->direction = at->across < 0 ? "left" : "right";
        where->given = true;
        return;
    } else {
        where->center |= at->middle;
        where->given |= at->middle;
        return;
    }
    where->given = where->part = true;
}

/* Returns how many words at `i` mean "side by side" or "next to each other"; 0: none do. */
static size_t beside_len(const struct sy_word *const *words, size_t i, size_t count) {
    static const char *const phrases[][4] = {{"side", "by", "side", NULL},
                                             {"next", "to", "each", "other"},
                                             {"beside", "each", "other", NULL},
                                             {"split", "screen", NULL, NULL},
                                             {"half", "and", "half", NULL}};
    for (size_t row = 0; row < sizeof phrases / sizeof phrases[0]; row++) {
        size_t len = 0;
        while (len < 4 && phrases[row][len] && i + len < count &&
               strcmp(words[i + len]->text, phrases[row][len]) == 0) {
            len++;
        }
        if (len == 4 || !phrases[row][len]) {
            return len;
        }
    }
    return 0;
}

/* Reads a place that depends on the thing placed before: "next to it", "on the other half", "there too". */
static void read_relative(const struct sy_word *const *words, size_t count, struct sy_where *where, bool *used) {
    for (size_t i = 0; i + 1 < count; i++) {
        bool half = strcmp(words[i]->text, "other") == 0 && sy_is_one_of(words[i + 1]->text, "half side");
        bool next = i + 2 < count && sy_is_one_of(words[i]->text, "next") && strcmp(words[i + 1]->text, "to") == 0 &&
                    sy_is_one_of(words[i + 2]->text, "it that");
        bool beside = strcmp(words[i]->text, "beside") == 0 && sy_is_one_of(words[i + 1]->text, "it that");
        if (half || next || beside) {
            used[i] = used[i + 1] = true;
            used[i + 1 + next] = true;
            where->rest = where->given = true;
        }
    }
    const struct sy_word *last = count > 0 ? words[count - 1] : NULL;
    size_t at = last && sy_is_one_of(last->text, "too also") && count > 1 ? count - 2 : count - 1;
    if (last && at > 0 && strcmp(words[at]->text, "there") == 0) {
        used[at] = true;
        where->there = true;
    }
}

void sy_where_read(const struct sy_word *const *words, size_t count, struct sy_where *where, bool *used) {
    struct directions at = {0, 0, false, 0, false};
    *where = (struct sy_where){.given = false};
    read_relative(words, count, where, used);
    read_monitor(words, count, where, used);
    read_size(words, count, where, used);
    for (size_t i = 0; i < count; i++) {
        size_t beside = used[i] ? 0 : beside_len(words, i, count);
        for (size_t j = i; j < i + beside; j++) {
            used[j] = where->beside = where->given = true;
        }
        if (!used[i]) {
            read_word(words[i]->text, i + 1 < count ? words[i + 1]->text : NULL, &at, where, &used[i]);
        }
    }
    take_directions(&at, where);
}

/* ---- pixels ---- */

static int64_t overlap(const struct sy_rect *a, const struct sy_rect *b) {
    int64_t width = (a->right < b->right ? a->right : b->right) - (a->left > b->left ? a->left : b->left);
    int64_t height = (a->bottom < b->bottom ? a->bottom : b->bottom) - (a->top > b->top ? a->top : b->top);
    return width > 0 && height > 0 ? width * height : 0;
}

static const struct sy_monitor *monitor_of(const struct sy_snapshot *snapshot, const struct sy_rect *window) {
    const struct sy_monitor *best = sy_find_monitor(snapshot, "main");
    int64_t most = 0;
    for (size_t i = 0; window && i < snapshot->monitors.count; i++) {
        int64_t shared = overlap(&snapshot->monitors.at[i].area, window);
        if (shared > most) {
            most = shared;
            best = &snapshot->monitors.at[i];
        }
    }
    return best;
}

/* Returns the name of the monitor that does not have the window, if there are two monitors. */
static const char *other_monitor(const struct sy_snapshot *snapshot, const struct sy_rect *window) {
    const struct sy_monitor *here = monitor_of(snapshot, window);
    if (snapshot->monitors.count != 2) {
        return NULL;
    }
    return here == sy_find_monitor(snapshot, "left") ? "right" : "left";
}

static int64_t size_of(const struct sy_monitor *monitor) {
    return (int64_t)(monitor->area.right - monitor->area.left) * (monitor->area.bottom - monitor->area.top);
}

/* Returns the largest (`sign` 1) or smallest (-1) monitor; NULL: two monitors have this size. */
static const struct sy_monitor *by_size(const struct sy_snapshot *snapshot, int sign) {
    const struct sy_monitor *best = NULL;
    bool two = false;
    for (size_t i = 0; i < snapshot->monitors.count; i++) {
        const struct sy_monitor *at = &snapshot->monitors.at[i];
        int64_t more = best ? sign * (size_of(at) - size_of(best)) : 1;
        two = more == 0 || (two && more < 0);
        best = more > 0 ? at : best;
    }
    return two ? NULL : best;
}

/* Returns the contract's name for the monitor that the user calls `called`; NULL: no such monitor, or it has no
 * name. */
static const char *name_monitor(const struct sy_snapshot *snapshot, const char *called, const struct sy_rect *window) {
    static const char *const names[] = {"main", "left", "right"};
    const struct sy_monitor *main = sy_find_monitor(snapshot, "main");
    const struct sy_monitor *meant = NULL;
    if (strcmp(called, "other") == 0) {
        return other_monitor(snapshot, window);
    }
    if (strcmp(called, "second") == 0 && snapshot->monitors.count == 2) {
        return main == sy_find_monitor(snapshot, "left") ? "right" : "left";
    }
    if (strcmp(called, "middle") == 0 && snapshot->monitors.count == 3) {
        bool between = main != sy_find_monitor(snapshot, "left") && main != sy_find_monitor(snapshot, "right");
        return between ? "main" : NULL;
    }
    if (strcmp(called, "big") == 0 || strcmp(called, "small") == 0) {
        meant = by_size(snapshot, called[0] == 'b' ? 1 : -1);
        for (size_t i = 0; i < 3 && meant; i++) {
            if (sy_find_monitor(snapshot, names[i]) == meant) {
                return names[i];
            }
        }
        return NULL;
    }
    return sy_is_one_of(called, "main left right") ? called : NULL;
}

static void fill_bounds(const struct sy_where *where, const struct sy_rect *area, struct sy_rect *bounds) {
    int width = area->right - area->left;
    int height = area->bottom - area->top;
    *bounds = (struct sy_rect){
        area->left + width * where->left / SY_TWELFTHS, area->top + height * where->top / SY_TWELFTHS,
        area->left + width * where->right / SY_TWELFTHS, area->top + height * where->bottom / SY_TWELFTHS};
}

static void center(const struct sy_where *where, const struct sy_rect *window, const struct sy_rect *area,
                   struct sy_rect *bounds) {
    int width = where->width ? where->width : window ? window->right - window->left : (area->right - area->left) / 2;
    int height = where->height ? where->height : window ? window->bottom - window->top : (area->bottom - area->top) / 2;
    int left = area->left + (area->right - area->left - width) / 2;
    int top = area->top + (area->bottom - area->top - height) / 2;
    *bounds = (struct sy_rect){left, top, left + width, top + height};
}

bool sy_where_bounds(const struct sy_where *where, const struct sy_snapshot *snapshot, const struct sy_rect *window,
                     const char **monitor, bool *has_bounds, struct sy_rect *bounds) {
    struct sy_where exact = *where;
    bool two = snapshot->monitors.count > 1;
    if (exact.direction && two && !exact.monitor) {
        exact.monitor = exact.direction;
    } else if (exact.direction) {
        whole(&exact);
        span(exact.direction[0] == 'l' ? -1 : 1, 6, &exact.left, &exact.right);
    }
    exact.monitor = exact.monitor ? name_monitor(snapshot, exact.monitor, window) : NULL;
    const struct sy_monitor *at =
        exact.monitor ? sy_find_monitor(snapshot, exact.monitor) : monitor_of(snapshot, window);
    *monitor = exact.monitor;
    *has_bounds = exact.part || exact.center;
    if (!at || (where->monitor && !exact.monitor)) {
        return false;
    }
    if (exact.part) {
        fill_bounds(&exact, &at->area, bounds);
    } else if (exact.center) {
        center(&exact, window, &at->area, bounds);
    }
    return true;
}
