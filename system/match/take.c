/* Adds commands to a reading, and finds the application that a clause is about. */
#include "match/choose.h"
#include "desktop/url.h"
#include "match/aliases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* least score of a whole name or of whole words of a name; an application that does not run has a lower score */
#define SURE_APP 0.82

/* ---- adding ---- */

enum sy_standing sy_add(struct sy_work *work, struct sy_found *found) {
    struct sy_reading *out = work->out;
    for (size_t i = 0; i < out->count; i++) {
        if (sy_found_equal(&out->found[i], found)) {
            sy_found_free(found);
            return SY_CLEAR;
        }
    }
    if (out->count == SY_STEPS_MAX) {
        sy_found_free(found);
        return sy_ask_back(work, "That is more than %d commands: say less at once", SY_STEPS_MAX);
    }
    out->found[out->count++] = *found;
    return SY_CLEAR;
}

static int ascending(const void *a, const void *b) {
    size_t x = *(const size_t *)a;
    size_t y = *(const size_t *)b;
    return (x > y) - (x < y);
}

void sy_merge_closes(struct sy_work *work) {
    struct sy_reading *out = work->out;
    for (size_t i = 1; i < out->count;) {
        struct sy_found *a = &out->found[i - 1];
        struct sy_found *b = &out->found[i];
        if (strcmp(a->type, "close_tab") != 0 || strcmp(b->type, "close_tab") != 0) {
            i++;
            continue;
        }
        size_t *all = realloc(a->tabs, (a->tab_count + b->tab_count) * sizeof *all);
        if (!all) {
            work->failed = true;
            return;
        }
        memcpy(all + a->tab_count, b->tabs, b->tab_count * sizeof *all);
        size_t count = a->tab_count + b->tab_count;
        qsort(all, count, sizeof *all, ascending);
        a->tabs = all;
        a->tab_count = 0;
        for (size_t j = 0; j < count; j++) {
            if (j == 0 || all[j] != all[a->tab_count - 1]) {
                all[a->tab_count++] = all[j];
            }
        }
        sy_found_free(b);
        memmove(b, b + 1, (out->count - i - 1) * sizeof *b);
        out->count--;
    }
}

enum sy_standing sy_add_app(struct sy_work *work, const char *type, const struct sy_entry *app) {
    struct sy_found found = {.type = type, .name = app->name};
    return sy_add(work, &found);
}

enum sy_standing sy_add_tabs(struct sy_work *work, const char *type, const size_t *tabs, size_t count) {
    struct sy_found found = {.type = type};
    if (!sy_found_set_tabs(&found, tabs, count)) {
        work->failed = true;
        return SY_ASK;
    }
    return sy_add(work, &found);
}

enum sy_standing sy_add_text(struct sy_work *work, const char *type, const char *text, size_t len) {
    struct sy_found found = {.type = type, .text = strndup(text, len)};
    if (!found.text) {
        work->failed = true;
        return SY_ASK;
    }
    return sy_add(work, &found);
}

enum sy_standing sy_add_url(struct sy_work *work, const char *text, size_t len) {
    char given[SY_TEXT_MAX + 1];
    char url[SY_URL_MAX + 1];
    struct fm_error fault;
    snprintf(given, sizeof given, "%.*s", (int)len, text);
    if (sy_url_normalize(given, url, &fault) != FM_OK) {
        return sy_ask_back(work, "That can't be opened: %s", fault.detail);
    }
    return sy_add_text(work, "open_url", url, strlen(url));
}

/* ---- applications ---- */

static const struct sy_entry *active_app(const struct sy_work *work) {
    for (size_t i = 0; i < work->index->app_count; i++) {
        if (work->index->apps[i].active) {
            return &work->index->apps[i];
        }
    }
    return NULL;
}

static const struct sy_entry *app_at(const struct sy_work *work, size_t hit) {
    return &work->index->apps[work->apps.at[hit].at];
}

const struct sy_entry *sy_sure_app(const struct sy_work *work, bool runs) {
    if (sy_contenders(work, SY_APPS, &work->apps) != 1 || work->apps.at[0].score < SURE_APP ||
        !work->apps.at[0].certain) {
        return NULL;
    }
    return !runs || app_at(work, 0)->running ? app_at(work, 0) : NULL;
}

double sy_top_of(const struct sy_hits *hits) {
    return hits->count > 0 ? hits->at[0].score : 0;
}

/* With "app", the topic of an application is enough to close it: "the drawing app". The word "drawing" alone is not
 * enough. */
static bool is_topic_app(const struct sy_work *work) {
    char joined[64];
    sy_words_join(app_at(work, 0)->name, joined, sizeof joined);
    return work->clause->app && sy_alias_fits(work->terms.joined, joined) == SY_ALIAS_OF_TOPIC;
}

const struct sy_entry *sy_choose_app(struct sy_work *work, bool destroys, enum sy_standing *standing) {
    char names[80];
    const struct sy_clause *clause = work->clause;
    if (work->terms.count == 0) {
        const struct sy_entry *active = clause->current ? active_app(work) : NULL;
        *standing = active ? SY_CLEAR : sy_ask_back(work, "Which application do you mean?");
        return active;
    }
    size_t count = sy_contenders(work, SY_APPS, &work->apps);
    if (count == 0) {
        *standing = sy_unsure(work, "No application is called \"%s\". Which one do you mean?",
                              sy_named(work, names, sizeof names));
        return NULL;
    }
    if (count > 1) {
        *standing = sy_ask_which(work, SY_APPS, &work->apps, count);
        return NULL;
    }
    if (destroys && !app_at(work, 0)->running) {
        char name[164];
        sy_plain(app_at(work, 0)->name, 40, name, sizeof name);
        *standing = sy_ask_back(work, "%s is not running. Which one do you mean?", name);
        return NULL;
    }
    if (destroys && !work->apps.at[0].certain && !is_topic_app(work)) {
        struct sy_found found = {.type = "close_app", .name = app_at(work, 0)->name};
        *standing = sy_propose(work, &found);
        return NULL;
    }
    *standing = SY_CLEAR;
    return app_at(work, 0);
}
