/*
 * From clauses to commands. What closes something comes from a clause whose verb says so, and names what it closes;
 * a doubt is asked, never decided.
 */
#include "match/lexical.h"
#include "desktop/url.h"
#include "match/choose.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SURE_APP 0.88 /* a whole name, or whole words of it */

/* ---- adding ---- */

/* Takes what `found` owns. Tabs to be closed by one request are closed by one command. */
static enum sy_standing add(struct sy_work *work, struct sy_found *found) {
    struct sy_reading *out = work->out;
    for (size_t i = 0; i < out->count; i++) {
        if (sy_found_equal(&out->found[i], found)) {
            sy_found_free(found);
            return SY_CLEAR;
        }
    }
    if (out->count == SY_STEPS_MAX) {
        sy_found_free(found);
        return sy_ask(work, "That is more than %d commands: say less at once", SY_STEPS_MAX);
    }
    out->found[out->count++] = *found;
    return SY_CLEAR;
}

static int ascending(const void *a, const void *b) {
    size_t x = *(const size_t *)a;
    size_t y = *(const size_t *)b;
    return (x > y) - (x < y);
}

static void merge_closes(struct sy_work *work) {
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

static enum sy_standing add_app(struct sy_work *work, const char *type, const struct sy_entry *app) {
    struct sy_found found = {.type = type, .name = app->name};
    return add(work, &found);
}

static enum sy_standing add_tabs(struct sy_work *work, const char *type, const size_t *tabs, size_t count) {
    struct sy_found found = {.type = type};
    if (!sy_found_set_tabs(&found, tabs, count)) {
        work->failed = true;
        return SY_ASK;
    }
    return add(work, &found);
}

static enum sy_standing add_text(struct sy_work *work, const char *type, const char *text, size_t len) {
    struct sy_found found = {.type = type, .text = strndup(text, len)};
    if (!found.text) {
        work->failed = true;
        return SY_ASK;
    }
    return add(work, &found);
}

static enum sy_standing add_url(struct sy_work *work, const char *text, size_t len) {
    char given[SY_TEXT_MAX + 1];
    char url[SY_URL_MAX + 1];
    struct fm_error fault;
    snprintf(given, sizeof given, "%.*s", (int)len, text);
    if (sy_url_normalize(given, url, &fault) != FM_OK) {
        return sy_ask(work, "That can't be opened: %s", fault.detail);
    }
    return add_text(work, "open_url", url, strlen(url));
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

/* The one application that is called so for sure; NULL: there is none. */
static const struct sy_entry *sure_app(const struct sy_work *work, bool runs) {
    if (sy_contenders(work, SY_APPS, &work->apps) != 1 || work->apps.at[0].score < SURE_APP - 0.06 ||
        !work->apps.at[0].certain) {
        return NULL;
    }
    return !runs || app_at(work, 0)->running ? app_at(work, 0) : NULL;
}

static double top_of(const struct sy_hits *hits) {
    return hits->count > 0 ? hits->at[0].score : 0;
}

/* The application that the clause is about; NULL: `*standing` says why. */
static const struct sy_entry *choose_app(struct sy_work *work, bool destroys, enum sy_standing *standing) {
    char names[80];
    const struct sy_clause *clause = work->clause;
    if (work->terms.count == 0) {
        const struct sy_entry *active = clause->current ? active_app(work) : NULL;
        *standing = active ? SY_CLEAR : sy_ask(work, "Which application do you mean?");
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
        *standing = sy_ask(work, "%s is not running. Which one do you mean?", name);
        return NULL;
    }
    if (destroys && !work->apps.at[0].certain) {
        struct sy_found found = {.type = "close_app", .name = app_at(work, 0)->name};
        *standing = sy_propose(work, &found);
        return NULL;
    }
    *standing = SY_CLEAR;
    return app_at(work, 0);
}

/* ---- close ---- */

static enum sy_standing close_tabs(struct sy_work *work) {
    size_t *tabs = NULL;
    size_t count = 0;
    bool sure = true;
    enum sy_standing standing = sy_choose_tabs(work, true, &tabs, &count, &sure);
    if (standing == SY_CLEAR && sure) {
        standing = add_tabs(work, "close_tab", tabs, count);
    } else if (standing == SY_CLEAR) {
        struct sy_found found = {.type = "close_tab"};
        if (sy_found_set_tabs(&found, tabs, count)) {
            standing = sy_propose(work, &found);
        } else {
            work->failed = true;
        }
    }
    free(tabs);
    return standing;
}

static enum sy_standing close_app(struct sy_work *work) {
    enum sy_standing standing;
    const struct sy_entry *app = choose_app(work, true, &standing);
    return app ? add_app(work, "close_app", app) : standing;
}

static enum sy_standing close_all_apps(struct sy_work *work) {
    enum sy_standing standing = SY_CLEAR;
    if (work->clause->has_but || work->clause->other) {
        return sy_ask(work, "Name the applications that are to be closed");
    }
    for (size_t i = 0; i < work->index->app_count && standing == SY_CLEAR; i++) {
        if (work->index->apps[i].running) {
            standing = add_app(work, "close_app", &work->index->apps[i]);
        }
    }
    return work->out->count > 0 ? standing : sy_ask(work, "No application is running");
}

static enum sy_standing close_clause(struct sy_work *work) {
    const struct sy_clause *clause = work->clause;
    bool counted =
        clause->number_count > 0 || clause->duplicate || (clause->ordinal && !clause->app && !clause->window);
    if (clause->vague) {
        return sy_ask(work, "Which ones are these? Name them, or say the numbers of the tabs");
    }
    if (clause->in_window != 0 && !clause->tab) {
        return sy_ask(work,
                      "A window of Chrome is closed with its tabs: say the tabs of which window, or the application");
    }
    if (clause->tab || (counted && !clause->has_but)) {
        return clause->app ? sy_ask(work, "Name the applications that are to be closed") : close_tabs(work);
    }
    if (clause->has_but) {
        return sy_ask(work, "What is to be closed: name the tabs or the applications");
    }
    if (clause->apps && (clause->all || clause->running) && work->terms.count == 0 && !clause->window) {
        return close_all_apps(work);
    }
    if ((clause->all || clause->other || clause->apps) && work->terms.count == 0) {
        return sy_ask(work, "What is to be closed: name the tabs or the applications");
    }
    if (clause->app || clause->window) {
        return close_app(work);
    }
    if (work->terms.count == 0) {
        return sy_ask(work, "What is to be closed?");
    }
    const struct sy_entry *app = sure_app(work, true);
    bool many = clause->all && top_of(&work->tabs) >= 0.95;
    if (app && !many && top_of(&work->apps) + 0.1 > top_of(&work->tabs)) {
        return add_app(work, "close_app", app);
    }
    if (top_of(&work->tabs) >= 0.75 && top_of(&work->tabs) >= top_of(&work->apps) - 0.1) {
        return close_tabs(work);
    }
    return top_of(&work->apps) >= 0.6 ? close_app(work) : close_tabs(work);
}

/* ---- switch, visit ---- */

static enum sy_standing switch_tab(struct sy_work *work) {
    size_t *tabs = NULL;
    size_t count = 0;
    bool sure = true;
    enum sy_standing standing = sy_choose_tabs(work, false, &tabs, &count, &sure);
    if (standing == SY_CLEAR && count == 1) {
        standing = add_tabs(work, "switch_tab", tabs, 1);
    } else if (standing == SY_CLEAR) {
        struct sy_hits hits = {.at = calloc(count, sizeof *hits.at), .count = count};
        for (size_t i = 0; hits.at && i < count; i++) {
            hits.at[i].at = tabs[i] - 1;
        }
        work->failed |= !hits.at;
        standing = hits.at ? sy_ask_which(work, SY_TABS, &hits, count) : SY_ASK;
        free(hits.at);
    }
    free(tabs);
    return standing;
}

static enum sy_standing focus_app(struct sy_work *work) {
    enum sy_standing standing;
    const struct sy_entry *app = choose_app(work, false, &standing);
    return app ? add_app(work, "focus_app", app) : standing;
}

static enum sy_standing use_preset(struct sy_work *work) {
    char names[80];
    size_t count = sy_contenders(work, SY_PRESETS, &work->presets);
    if (count == 1) {
        struct sy_found found = {.type = "activate_preset", .name = work->index->presets[work->presets.at[0].at].name};
        return add(work, &found);
    }
    if (count > 1) {
        return sy_ask_which(work, SY_PRESETS, &work->presets, count);
    }
    return sy_unsure(work, "No preset is called \"%s\". Which one do you mean?", sy_named(work, names, sizeof names));
}

/* What all names together mean as a site: "hacker news". NULL: no site that is known. */
static const char *site_of(const struct sy_work *work) {
    return sy_site(work->terms.joined);
}

static enum sy_standing open_site(struct sy_work *work) {
    char names[80];
    const struct sy_clause *clause = work->clause;
    if (clause->address) {
        return add_url(work, clause->address->raw, clause->address->raw_len);
    }
    if (work->terms.count == 0) {
        return sy_ask(work, "Which site is to be opened?");
    }
    const char *site = site_of(work);
    if (site) {
        return add_url(work, site, strlen(site));
    }
    return sy_unsure(work, "No site called \"%s\" is known. What is its address?", sy_named(work, names, sizeof names));
}

/* A tab of the host that is named. */
static enum sy_standing switch_to_address(struct sy_work *work) {
    const struct sy_snapshot *snapshot = work->index->scene->snapshot;
    char given[SY_TEXT_MAX + 1];
    char url[SY_URL_MAX + 1];
    char domain[256];
    struct fm_error fault;
    size_t at = 0;
    size_t count = 0;
    snprintf(given, sizeof given, "%.*s", (int)work->clause->address->raw_len, work->clause->address->raw);
    if (sy_url_normalize(given, url, &fault) == FM_OK) {
        (void)sy_url_domain(url, domain, sizeof domain);
        for (size_t i = 0; i < snapshot->tab_count; i++) {
            const char *tab_url = snapshot->tabs[i].tab->url;
            bool host = strcmp(snapshot->tabs[i].domain, domain) == 0;
            bool exact = strpbrk(given, "/:") != NULL; /* with a port or a path */
            if (host && (!exact || strstr(tab_url, strstr(url, domain)) != NULL)) {
                at = i + 1;
                count++;
            }
        }
    }
    if (count == 1) {
        return add_tabs(work, "switch_tab", &at, 1);
    }
    if (count == 0) {
        return work->clause->verb == SY_VISIT ? open_site(work) : switch_tab(work);
    }
    return sy_ask(work, "%zu tabs are at %s. Which one do you mean?", count, domain);
}

static enum sy_standing list_clause(struct sy_work *work);

static enum sy_standing switch_clause(struct sy_work *work) {
    const struct sy_clause *clause = work->clause;
    double app = top_of(&work->apps);
    double tab = top_of(&work->tabs);
    if (clause->fresh || (clause->address && clause->verb == SY_VISIT && clause->tab)) {
        return open_site(work);
    }
    if (clause->address) {
        return switch_to_address(work);
    }
    if (work->terms.count == 0 && (clause->tabs || clause->apps) && !clause->number_count && !clause->other) {
        return list_clause(work);
    }
    if (top_of(&work->presets) >= 1.05 && !clause->tab && !clause->app) {
        return use_preset(work);
    }
    if (clause->preset && work->index->preset_count > 0) {
        return use_preset(work);
    }
    bool counted = clause->number_count > 0 || clause->relative || clause->ordinal;
    if (clause->tab || (counted && !clause->app && !clause->window)) {
        return switch_tab(work);
    }
    if (clause->app || clause->window || (clause->current && work->terms.count == 0)) {
        return app >= 0.6 || work->terms.count == 0 || tab < 0.6 ? focus_app(work) : switch_tab(work);
    }
    if (work->terms.count == 0) {
        return sy_ask(work, "Where to: which application or tab?");
    }
    const struct sy_entry *sure = sure_app(work, false);
    if (sure && (sure->running || tab < 0.95) && app + 0.1 > tab) {
        return focus_app(work);
    }
    if (tab >= 0.6 && tab >= app) {
        return switch_tab(work);
    }
    if (top_of(&work->presets) > app && top_of(&work->presets) >= 0.75) {
        return use_preset(work);
    }
    if (clause->verb == SY_VISIT && site_of(work) && app < SURE_APP) {
        return open_site(work);
    }
    if (app >= 0.7) {
        return focus_app(work);
    }
    return switch_tab(work);
}

/* ---- open ---- */

static enum sy_standing open_clause(struct sy_work *work) {
    const struct sy_clause *clause = work->clause;
    if (clause->address || clause->fresh || clause->site) {
        return open_site(work);
    }
    if (clause->preset && work->index->preset_count > 0) {
        return use_preset(work);
    }
    if (clause->tab || clause->number_count > 0) {
        bool there = clause->number_count > 0 || top_of(&work->tabs) >= 0.6;
        return there || !site_of(work) ? switch_tab(work) : open_site(work);
    }
    const struct sy_entry *sure = sure_app(work, false);
    if (sure || clause->app) {
        return focus_app(work);
    }
    if (site_of(work)) {
        return open_site(work);
    }
    if (top_of(&work->presets) >= 0.88 && top_of(&work->presets) > top_of(&work->apps)) {
        return use_preset(work);
    }
    if (top_of(&work->apps) >= 0.7 && top_of(&work->apps) + 0.15 > top_of(&work->tabs)) {
        return focus_app(work);
    }
    if (work->terms.count == 0) {
        return sy_ask(work, "What is to be opened?");
    }
    return top_of(&work->tabs) >= 0.75 ? switch_tab(work) : focus_app(work);
}

/* ---- place ---- */

static const struct sy_rect *window_of(const struct sy_work *work, const char *name) {
    const struct sy_snapshot *snapshot = work->index->scene->snapshot;
    const struct sy_running *running = sy_find_running(snapshot, name);
    return running ? &snapshot->windows.at[running->windows[0]].bounds : NULL;
}

static enum sy_standing place(struct sy_work *work, const char *name, const struct sy_where *where) {
    struct sy_found found = {.type = "place_app", .name = name};
    if (where->beside && !where->monitor) { /* both on one monitor, without naming it */
        struct sy_where main = *where;
        main.monitor = "main";
        bool there = sy_where_bounds(&main, work->index->scene->snapshot, NULL, &found.monitor, &found.has_bounds,
                                     &found.bounds);
        found.monitor = NULL;
        return there ? add(work, &found) : sy_ask(work, "No monitor is known here. Where to?");
    }
    if (!sy_where_bounds(where, work->index->scene->snapshot, window_of(work, name), &found.monitor, &found.has_bounds,
                         &found.bounds)) {
        return sy_ask(work, "There is no such monitor here. Where to?");
    }
    return add(work, &found);
}

/* The half for the next one of those that go side by side. */
static struct sy_where half_of(struct sy_where where, bool second) {
    where.part = true;
    where.left = second ? SY_TWELFTHS / 2 : 0;
    where.right = second ? SY_TWELFTHS : SY_TWELFTHS / 2;
    where.top = 0;
    where.bottom = SY_TWELFTHS;
    return where;
}

static enum sy_standing place_clause(struct sy_work *work) {
    const struct sy_clause *clause = work->clause;
    enum sy_standing standing;
    if (clause->tab && !clause->app && !clause->window) {
        return sy_ask(work, "A single tab can't be moved, only the window of an application. Which one do you mean?");
    }
    if (clause->preset && work->index->preset_count > 0 && !clause->where.given) {
        return use_preset(work);
    }
    if (!clause->where.given) {
        return sy_ask(work, "Where to: which monitor, or which part of it?");
    }
    const struct sy_entry *app = choose_app(work, false, &standing);
    if (!app) {
        return standing;
    }
    if (!app->running) {
        char name[164];
        sy_plain(app->name, 40, name, sizeof name);
        return sy_ask(work, "%s is not running. Which one do you mean?", name);
    }
    if (clause->where.beside) {
        size_t before = work->out->count;
        const struct sy_where half = half_of(clause->where, before % 2 == 1);
        return before < 2 ? place(work, app->name, &half) : sy_ask(work, "Only two fit side by side. Which ones?");
    }
    return place(work, app->name, &clause->where);
}

/* ---- list, query ---- */

static enum sy_standing ask_question(struct sy_work *work) {
    return add_text(work, "query", work->words->text, strlen(work->words->text));
}

static enum sy_standing list_clause(struct sy_work *work) {
    const struct sy_clause *clause = work->clause;
    bool plain =
        work->terms.count == 0 && !clause->duplicate && !clause->number_count && !clause->in_window && !clause->ordinal;
    if (plain && clause->tabs && !clause->apps) {
        struct sy_found found = {.type = "list_tabs"};
        return add(work, &found);
    }
    if (plain && (clause->apps || clause->running) && !clause->tab) {
        struct sy_found found = {.type = "list_apps"};
        return add(work, &found);
    }
    return ask_question(work);
}

/* "What tabs are open": a list, if nothing more is asked. */
static enum sy_standing question_clause(struct sy_work *work) {
    for (size_t i = 0; i < work->terms.count; i++) {
        const char *word = work->terms.at[i].text;
        bool plain = strcmp(word, "what") == 0 || strcmp(word, "whats") == 0 || strcmp(word, "do") == 0 ||
                     strcmp(word, "currently") == 0 || strcmp(word, "got") == 0 || strcmp(word, "chrome") == 0;
        if (!plain) {
            return ask_question(work);
        }
    }
    work->terms.count = 0;
    return list_clause(work);
}

/* ---- without a verb ---- */

static enum sy_standing refer(struct sy_work *work);

static enum sy_standing verbless_clause(struct sy_work *work) {
    const struct sy_clause *clause = work->clause;
    const struct sy_entry *app = sure_app(work, false);
    if (clause->fresh) {
        return open_site(work);
    }
    if (clause->where.given && app && app->running) {
        return place_clause(work);
    }
    if (clause->where.given && work->terms.count == 0 && work->before && work->before->last.name) {
        return refer(work); /* "now the left half" */
    }
    if (work->terms.count == 0 && clause->tab && (clause->relative || clause->number_count == 1 || clause->ordinal)) {
        return switch_tab(work);
    }
    if (clause->preset && top_of(&work->presets) >= 0.88) {
        return use_preset(work);
    }
    if (app && top_of(&work->apps) >= 1.0 && !clause->tab && !clause->where.given) {
        return focus_app(work);
    }
    if (top_of(&work->presets) >= 1.05 && !clause->tab && !clause->app) {
        return use_preset(work);
    }
    return sy_unsure(work, "What is to be done? Begin with a word such as open, switch to, close or move");
}

/* ---- what was said before ---- */

static const struct sy_found *meant(const struct sy_work *work) {
    if (work->out->count > 0) {
        return &work->out->found[work->out->count - 1];
    }
    return work->before && work->before->last.type ? &work->before->last : NULL;
}

/* "Move it to the right monitor and maximize it" is one placement. */
static enum sy_standing place_again(struct sy_work *work, const char *name) {
    struct sy_reading *out = work->out;
    struct sy_where where = work->clause->where;
    struct sy_found *last = out->count > 0 ? &out->found[out->count - 1] : NULL;
    if (last && strcmp(last->type, "place_app") == 0 && last->monitor && !last->has_bounds && !where.monitor) {
        where.monitor = last->monitor;
        sy_found_free(last);
        out->count--;
    }
    return place(work, name, &where);
}

/* "It": what the command before was about. */
static enum sy_standing refer(struct sy_work *work) {
    const struct sy_clause *clause = work->clause;
    const struct sy_found *it = meant(work);
    bool closed = it && sy_found_destroys(it);
    if (!it || closed || (!it->tab_count && !it->name) || (it->name && strcmp(it->type, "activate_preset") == 0)) {
        return sy_ask(work, "What do you mean by that? Name the tab or the application");
    }
    if (it->tab_count > 0) {
        if (clause->verb == SY_PLACE) {
            return sy_ask(work,
                          "A single tab can't be moved, only the window of an application. Which one do you mean?");
        }
        bool closes = clause->verb == SY_CLOSE;
        return closes || it->tab_count == 1
                   ? add_tabs(work, closes ? "close_tab" : "switch_tab", it->tabs, it->tab_count)
                   : sy_ask(work, "Which of the tabs do you mean?");
    }
    const char *name = it->name;
    if (clause->verb == SY_PLACE || (clause->verb != SY_CLOSE && clause->where.given)) {
        return clause->where.given ? place_again(work, name)
                                   : sy_ask(work, "Where to: which monitor, or which part of it?");
    }
    struct sy_found found = {.type = clause->verb == SY_CLOSE ? "close_app" : "focus_app", .name = name};
    return add(work, &found);
}

/* ---- the whole ---- */

static enum sy_standing resolve(struct sy_work *work) {
    const struct sy_clause *clause = work->clause;
    if (clause->negated) {
        return sy_ask(work, "You say what is not to be done. What is to be done?");
    }
    if (clause->verb == SY_CANNOT) {
        return sy_ask(work, "There is no command for that here: only to list, focus, place, open, switch and close");
    }
    bool things = clause->verb != SY_NO_VERB && clause->verb != SY_QUERY && clause->verb != SY_LIST;
    if (clause->refers && work->terms.count == 0 && !clause->number_count && (things || clause->where.given)) {
        return refer(work);
    }
    switch (clause->verb) {
    case SY_CLOSE: return close_clause(work);
    case SY_SWITCH:
    case SY_VISIT: return clause->where.given ? place_clause(work) : switch_clause(work);
    case SY_OPEN: {
        enum sy_standing standing = open_clause(work);
        const struct sy_found *last = work->out->count > 0 ? &work->out->found[work->out->count - 1] : NULL;
        bool app = standing == SY_CLEAR && last && strcmp(last->type, "focus_app") == 0;
        return app && clause->where.given ? place(work, last->name, &clause->where) : standing;
    }
    case SY_PLACE: return place_clause(work);
    case SY_PRESET: return clause->preset || top_of(&work->presets) >= 0.75 ? use_preset(work) : switch_clause(work);
    case SY_LIST: return list_clause(work);
    case SY_QUERY: return ask_question(work);
    default: return verbless_clause(work);
    }
}

static bool rank_all(struct sy_work *work) {
    const struct sy_clause *clause = work->clause;
    sy_terms_make(work->index, clause->names, clause->name_count, &work->terms);
    bool ranked = sy_rank(work->index, SY_APPS, &work->terms, &work->apps) &&
                  sy_rank(work->index, SY_TABS, &work->terms, &work->tabs) &&
                  sy_rank(work->index, SY_PRESETS, &work->terms, &work->presets);
    work->failed |= !ranked;
    return ranked;
}

static void drop_hits(struct sy_work *work) {
    free(work->apps.at);
    free(work->tabs.at);
    free(work->presets.at);
    work->apps = work->tabs = work->presets = (struct sy_hits){.at = NULL};
}

/* "Go to my bank" is "go to my blorp". */
static void make_nonsense(const struct sy_work *work) {
    char *text = work->out->nonsense;
    size_t used = 0;
    for (size_t i = 0; i < work->words->count; i++) {
        const struct sy_word *word = &work->words->at[i];
        bool names = false;
        for (size_t j = 0; j < work->clause->name_count; j++) {
            names |= work->clause->names[j] == word && !sy_is_stop(word->text);
        }
        int len = snprintf(text + used, SY_TEXT_MAX + 1 - used, "%s%s", i ? " " : "", names ? "blorp" : word->text);
        used += (size_t)len < SY_TEXT_MAX + 1 - used ? (size_t)len : 0;
    }
}

/* The first clause that is not clear keeps its candidates; the others go on, so that a model has to see to one only. */
static void read_clause(struct sy_work *work) {
    struct sy_reading *out = work->out;
    size_t before = out->count;
    enum sy_standing standing = rank_all(work) ? resolve(work) : SY_ASK;
    if (out->standing == SY_CLEAR) {
        out->verb = work->clause->verb;
        out->where = work->clause->where;
    }
    if (standing != SY_CLEAR && out->standing == SY_CLEAR) {
        out->standing = standing;
        make_nonsense(work);
        out->open = before;
        out->apps = work->apps;
        out->tabs = work->tabs;
        out->presets = work->presets;
        work->apps = work->tabs = work->presets = (struct sy_hits){.at = NULL};
    } else if (standing != SY_CLEAR) {
        out->standing = SY_ASK; /* two that are not clear */
    }
    drop_hits(work);
}

/* "Also the youtube ones", or what answers a question, goes on with the verb of what was said before. */
static void inherit(const struct sy_work *work, struct sy_clauses *clauses) {
    const char *first = work->words->at[0].text;
    const char *last = work->words->at[work->words->count - 1].text;
    bool goes_on = strcmp(first, "and") == 0 || strcmp(first, "also") == 0 || strcmp(first, "same") == 0 ||
                   strcmp(last, "too") == 0 || strcmp(last, "also") == 0 || strcmp(last, "well") == 0;
    bool may = work->before && (work->before->asked || goes_on);
    for (size_t i = 0; i < clauses->count && may && clauses->at[i].verb == SY_NO_VERB; i++) {
        clauses->at[i].verb = work->before->verb;
    }
}

/* One way to cut the utterance. */
static void read_all(struct sy_work *work, bool split) {
    struct sy_clauses clauses;
    sy_clauses_read(work->words, split, &clauses);
    inherit(work, &clauses);
    if (clauses.too_many || clauses.count == 0) {
        work->out->standing =
            clauses.count ? sy_ask(work, "That is too much at once") : sy_ask(work, "What is to be done?");
        return;
    }
    work->clause = &clauses.at[0];
    if (clauses.question) {
        work->out->standing = rank_all(work) ? question_clause(work) : SY_ASK;
        drop_hits(work);
        return;
    }
    for (size_t i = 0; i < clauses.count && !work->failed && !work->out->proposes; i++) {
        work->clause = &clauses.at[i];
        read_clause(work);
    }
    if (work->out->proposes && clauses.count > 1) { /* "yes" would leave the rest out */
        sy_found_free(&work->out->found[0]);
        work->out->count = 0;
        work->out->proposes = false;
    }
    merge_closes(work);
}

static bool may_be_one_name(const struct sy_words *words) {
    for (size_t i = 0; i < words->count; i++) {
        if (words->at[i].breaks || strcmp(words->at[i].text, "and") == 0) {
            return true;
        }
    }
    return false;
}

enum fm_code sy_lexical(const struct sy_index *index, const struct sy_words *words, const struct sy_before *before,
                        struct sy_reading *reading, struct fm_error *error) {
    struct sy_work work = {.index = index, .before = before, .words = words, .out = reading};
    *reading = (struct sy_reading){.standing = SY_CLEAR};
    read_all(&work, true);
    if (reading->standing != SY_CLEAR && may_be_one_name(words) && !work.failed) {
        struct sy_reading whole = {.standing = SY_CLEAR};
        work.out = &whole;
        read_all(&work, false);
        bool better = whole.standing == SY_CLEAR;
        sy_reading_free(better ? reading : &whole);
        *reading = better ? whole : *reading;
    }
    return work.failed ? fm_fail_no_memory(error) : FM_OK;
}

enum fm_code sy_lexical_choose(const struct sy_index *index, const struct sy_words *words,
                               const struct sy_reading *earlier, const size_t *choices, size_t count,
                               struct sy_reading *reading, struct fm_error *error) {
    struct sy_work work = {.index = index, .words = words, .out = reading};
    bool closes = earlier->verb == SY_CLOSE;
    *reading = (struct sy_reading){.verb = earlier->verb, .where = earlier->where};
    if (count > 1 && !(closes && earlier->group == SY_TABS)) {
        reading->standing = sy_ask(&work, "One only can be meant. Which one?");
    } else if (earlier->group == SY_TABS) {
        size_t tabs[SY_CHOICES_MAX];
        for (size_t i = 0; i < count; i++) {
            tabs[i] = choices[i] + 1;
        }
        reading->standing = add_tabs(&work, closes ? "close_tab" : "switch_tab", tabs, count);
    } else if (earlier->group == SY_APPS && earlier->where.given) {
        reading->standing = place(&work, index->apps[choices[0]].name, &earlier->where);
    } else if (earlier->group == SY_APPS) {
        reading->standing = add_app(&work, closes ? "close_app" : "focus_app", &index->apps[choices[0]]);
    } else {
        struct sy_found found = {.type = "activate_preset", .name = index->presets[choices[0]].name};
        reading->standing = add(&work, &found);
    }
    return work.failed ? fm_fail_no_memory(error) : FM_OK;
}

enum fm_code sy_lexical_rank(const struct sy_index *index, const struct sy_words *words, struct sy_reading *reading,
                             struct fm_error *error) {
    struct sy_clause clause = {.verb = SY_NO_VERB};
    struct sy_work work = {.index = index, .words = words, .out = reading, .clause = &clause};
    *reading = (struct sy_reading){.standing = SY_UNSURE, .verb = SY_NO_VERB, .reason = "What is to be done?"};
    for (size_t i = 0; i < words->count; i++) {
        clause.names[clause.name_count++] = &words->at[i];
    }
    bool ranked = rank_all(&work);
    make_nonsense(&work);
    reading->apps = work.apps;
    reading->tabs = work.tabs;
    reading->presets = work.presets;
    return ranked ? FM_OK : fm_fail_no_memory(error);
}

void sy_reading_free(struct sy_reading *reading) {
    for (size_t i = 0; i < reading->count; i++) {
        sy_found_free(&reading->found[i]);
    }
    reading->count = 0;
    free(reading->apps.at);
    free(reading->tabs.at);
    free(reading->presets.at);
    reading->apps = reading->tabs = reading->presets = (struct sy_hits){.at = NULL};
}
