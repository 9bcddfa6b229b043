/*
 * Makes the command of a clause. A command that closes something is made only from a clause whose verb closes and that
 * names the thing. In doubt, the user is asked.
 */
#include "match/choose.h"
#include "desktop/url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALL_WORDS   0.85 /* least score to show a thing without a verb: the thing has nearly all words */
#define LIKE_NAME   0.78
#define EXACT_NAME  1.04
#define GENERIC     0.84 /* least score of a thing that fits by its kind */
#define WHOLE_WORDS 0.88 /* the application's name fits by whole words */

/* ---- close ---- */

/* Whether the verb may mean the contents of a page, not the tab: "delete the last mail". */
static bool may_mean_contents(const struct sy_clause *clause) {
    for (size_t i = 0; i < clause->name_count; i++) {
        if (sy_is_one_of(clause->names[i]->text, "page pages site website")) {
            return false;
        }
    }
    return sy_is_one_of(clause->all_words[0].text,
                        "delete remove trash clear purge wipe scrap eliminate lose end stop") &&
           !clause->tab && !clause->app && !clause->window && !clause->duplicate;
}

static enum sy_standing close_tabs(struct sy_work *work) {
    size_t *tabs = NULL;
    size_t count = 0;
    bool sure = true;
    enum sy_standing standing = sy_choose_tabs(work, true, &tabs, &count, &sure);
    if (standing == SY_CLEAR && sure && !may_mean_contents(work->clause)) {
        standing = sy_add_tabs(work, "close_tab", tabs, count);
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

/* Whether the names have a word for a page: "the slack page" is no application. */
static bool names_page(const struct sy_clause *clause) {
    for (size_t i = 0; i < clause->name_count; i++) {
        if (sy_is_one_of(clause->names[i]->text, "page pages site sites website websites webpage thread article")) {
            return true;
        }
    }
    return false;
}

static enum sy_standing close_app(struct sy_work *work) {
    enum sy_standing standing;
    const struct sy_entry *app = sy_choose_app(work, true, &standing);
    if (app && (may_mean_contents(work->clause) || names_page(work->clause))) {
        struct sy_found found = {.type = "close_app", .name = app->name};
        return sy_propose(work, &found);
    }
    return app ? sy_add_app(work, "close_app", app) : standing;
}

/* Notes in `stays` the applications that certainly have the name. False: there are none, or memory is out. */
static bool keep_app(struct sy_work *work, const struct sy_word *const *words, size_t count, bool *stays) {
    struct sy_terms terms;
    struct sy_hits hits;
    bool any = false;
    sy_terms_make(work->index, words, count, &terms);
    if (!sy_rank(work->index, SY_APPS, &terms, &hits)) {
        work->failed = true;
        return false;
    }
    for (size_t i = 0; i < hits.count && hits.at[i].score > hits.at[0].score - 0.1; i++) {
        bool is_it = hits.at[i].certain && hits.at[i].score >= 0.8;
        stays[hits.at[i].at] |= is_it;
        any |= is_it;
    }
    free(hits.at);
    return any;
}

/* Notes the applications that must stay open. False: one of them was not found. */
static bool keep_apps(struct sy_work *work, bool *stays) {
    const struct sy_clause *clause = work->clause;
    bool all = clause->but_count > 0;
    for (size_t i = 0; i < clause->but_count;) {
        size_t end = i;
        bool names = false;
        while (end < clause->but_count && clause->but[end]) {
            names |= !sy_is_stop(clause->but[end]->text);
            end++;
        }
        all = all && (!names || keep_app(work, clause->but + i, end - i, stays));
        i = end + 1;
    }
    return all;
}

static bool shows(const struct sy_entry *app, size_t window) {
    for (size_t i = 0; app->runs && i < app->runs->window_count; i++) {
        if (app->runs->windows[i] == window) {
            return true;
        }
    }
    return false;
}

/* Closes the running applications for which `chosen` equals `so`, in the order of their windows. */
static enum sy_standing close_chosen(struct sy_work *work, const bool *chosen, bool so) {
    enum sy_standing standing = SY_CLEAR;
    for (size_t window = 0; window < work->index->scene->snapshot->windows.count; window++) {
        for (size_t i = 0; i < work->index->app_count && standing == SY_CLEAR; i++) {
            const struct sy_entry *app = &work->index->apps[i];
            if (app->running && chosen[i] == so && shows(app, window)) {
                standing = sy_add_app(work, "close_app", app);
            }
        }
    }
    return standing;
}

static enum sy_standing close_all_apps(struct sy_work *work) {
    enum sy_standing standing = SY_CLEAR;
    bool *stays = calloc(work->index->app_count + 1, sizeof *stays);
    if (!stays || work->clause->other || (work->clause->has_but && !keep_apps(work, stays))) {
        work->failed |= !stays;
        free(stays);
        return sy_ask_back(work, "Name the applications that are to be closed");
    }
    standing = close_chosen(work, stays, false);
    free(stays);
    return work->out->count > 0 ? standing : sy_ask_back(work, "No application is running");
}

/* For "both libreoffice programs": closes all programs that fit the name, if their number is what the user said. */
static enum sy_standing close_both(struct sy_work *work) {
    size_t want = work->clause->both ? 2 : (size_t)work->clause->counted;
    size_t count = 0;
    bool certain = true;
    bool *closes = calloc(work->index->app_count + 1, sizeof *closes);
    for (size_t i = 0; closes && i < work->apps.count && work->apps.at[i].score > work->apps.at[0].score - 0.05; i++) {
        bool runs = work->index->apps[work->apps.at[i].at].running;
        closes[work->apps.at[i].at] = runs;
        count += runs;
        certain = certain && (!runs || work->apps.at[i].certain);
    }
    work->failed |= !closes;
    enum sy_standing standing = closes && count == want && certain ? close_chosen(work, closes, true) : close_app(work);
    free(closes);
    return standing;
}

/* Whether the exception is another application: "quit obsidian but keep zotero". */
static bool keeps_others(struct sy_work *work, const struct sy_entry *app) {
    bool *stays = calloc(work->index->app_count + 1, sizeof *stays);
    bool others = stays && keep_apps(work, stays) && !stays[app - work->index->apps];
    work->failed |= !stays;
    free(stays);
    return others;
}

/* Whether the clause says that it is about a page in the browser: "the rust thread". */
static bool says_page(const struct sy_clause *clause) {
    for (size_t i = 0; i < clause->name_count; i++) {
        if (sy_is_one_of(clause->names[i]->text,
                         "page pages site sites website websites webpage thread threads article "
                         "articles video videos subreddit post posts blog feed forum channel web "
                         "browser chrome")) {
            return true;
        }
    }
    return clause->address != NULL;
}

/* Finds an application whose window title has the words too: "my thesis" may mean that window. NULL: there is none. */
static const struct sy_entry *window_rival(const struct sy_work *work) {
    for (size_t i = 0; i < work->index->app_count && !says_page(work->clause); i++) {
        const struct sy_entry *app = &work->index->apps[i];
        if (app->running && sy_window_has(work->index->scene->snapshot, app, &work->terms)) {
            return app;
        }
    }
    return NULL;
}

/* Closes the tabs that fit the words; if a window fits too, asks. */
static enum sy_standing close_pages(struct sy_work *work) {
    char name[164];
    const struct sy_entry *rival = window_rival(work);
    if (!rival) {
        return close_tabs(work);
    }
    sy_plain(rival->name, 40, name, sizeof name);
    return sy_ask_back(work, "Do you mean a tab, or the window of %s? Say \"tab\", or the application", name);
}

static enum sy_standing ask_kind(struct sy_work *work) {
    char name[164];
    char title[164];
    char names[80];
    const struct sy_numbered_tab *tab = &work->index->scene->snapshot->tabs[work->tabs.at[0].at];
    sy_plain(work->index->apps[work->apps.at[0].at].name, 40, name, sizeof name);
    sy_plain(tab->tab->title, 40, title, sizeof title);
    work->out->group = SY_TABS; /* so that the answer "whatsapp" picks this tab, and opens no new one */
    work->out->choice_count = 1;
    work->out->choices[0] = work->tabs.at[0].at;
    return sy_ask_back(work, "\"%s\" may be tab %zu \"%s\", or the application %s. Which one?",
                       sy_named(work, names, sizeof names), work->tabs.at[0].at + 1, title, name);
}

/* Whether the words have a verb that is only used for applications, such as "quit". A list has such a verb only
 * once. */
static bool says_quit(const struct sy_words *words) {
    for (size_t i = 0; i < words->count; i++) {
        if (sy_is_one_of(words->at[i].text, "quit quits quitting exit exits exiting terminate")) {
            return true;
        }
    }
    return false;
}

/* Closes a thing whose kind the user did not say. `app` is the application that certainly has the name, or NULL. */
static enum sy_standing close_named(struct sy_work *work, const struct sy_entry *app) {
    const struct sy_clause *clause = work->clause;
    if (app && names_page(clause) && sy_top_of(&work->tabs) >= 0.9) {
        return close_tabs(work);
    }
    bool by_kind = work->apps.count > 0 && (work->apps.at[0].part || work->apps.at[0].score < EXACT_NAME);
    if (app && by_kind && sy_top_of(&work->tabs) >= 0.9) { /* "google": Chrome, or Google's pages? */
        return sy_ask_back(work, "Do you mean the application, or tabs? Say its whole name, or \"tabs\"");
    }
    bool many = clause->all && sy_top_of(&work->tabs) >= 0.95;
    if (app && !many && !says_quit(work->words) && sy_top_of(&work->tabs) >= 0.9) { /* Spotify, or its web player? */
        return ask_kind(work);
    }
    if (app && !many && sy_top_of(&work->apps) + 0.1 > sy_top_of(&work->tabs)) {
        return close_app(work);
    }
    if (sy_top_of(&work->tabs) >= 0.75 && sy_top_of(&work->tabs) >= sy_top_of(&work->apps) - 0.1) {
        return close_pages(work);
    }
    return sy_top_of(&work->apps) >= 0.6 ? close_app(work) : close_pages(work);
}

static enum sy_standing close_clause(struct sy_work *work) {
    const struct sy_clause *clause = work->clause;
    bool counted = (clause->number_count > 0 && !clause->series) || clause->duplicate ||
                   (clause->ordinal && !clause->app && !clause->window);
    const bool but = clause->has_but && !clause->but_shared;
    if (clause->vague) {
        return sy_ask_back(work, "Which ones are these? Name them, or say the numbers of the tabs");
    }
    bool whole = clause->in_window > 0 && (clause->all || but) && work->terms.count == 0;
    if (whole) { /* "everything in window 2" */
        return close_tabs(work);
    }
    if (clause->in_window > 0 && work->terms.count > 0 && sy_top_of(&work->tabs) >= 0.9 && !sy_sure_app(work, true) &&
        !clause->app) { /* "facebook in the second window" */
        return close_pages(work);
    }
    if (clause->in_window != 0 && !clause->tab) {
        return sy_ask_back(
            work, "A window of Chrome is closed with its tabs: say the tabs of which window, or the application");
    }
    if (clause->tab || (counted && !but)) {
        return clause->app ? sy_ask_back(work, "Name the applications that are to be closed") : close_tabs(work);
    }
    const struct sy_entry *app = sy_sure_app(work, true);
    bool pages = work->terms.count > 0 && !app && sy_top_of(&work->tabs) >= 0.9;
    bool apps = clause->apps || work->index->tab_count == 0; /* "everything" */
    if (but && apps && clause->all && work->terms.count == 0 && !clause->window) {
        return close_all_apps(work);
    }
    if (but && app && !clause->all && !clause->tab && keeps_others(work, app)) {
        return close_app(work);
    }
    if (but && !pages) {
        return sy_ask_back(work, "What is to be closed: name the tabs or the applications");
    }
    if (but || (clause->series && pages)) {
        return close_tabs(work);
    }
    if (clause->apps && (clause->all || clause->running) && work->terms.count == 0 && !clause->window) {
        return close_all_apps(work);
    }
    if ((clause->all || clause->other || clause->apps) && work->terms.count == 0) {
        return sy_ask_back(work, "What is to be closed: name the tabs or the applications");
    }
    if (clause->apps && (clause->both || clause->counted) && work->terms.count > 0) {
        return close_both(work);
    }
    if (clause->app || clause->window) {
        return close_app(work);
    }
    if (work->terms.count == 0) {
        return sy_ask_back(work, "What is to be closed?");
    }
    return close_named(work, app);
}

/* ---- switch, visit ---- */

static enum sy_standing switch_tab(struct sy_work *work) {
    size_t *tabs = NULL;
    size_t count = 0;
    bool sure = true;
    enum sy_standing standing = sy_choose_tabs(work, false, &tabs, &count, &sure);
    if (standing == SY_CLEAR && count == 1) {
        standing = sy_add_tabs(work, "switch_tab", tabs, 1);
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
    const struct sy_entry *app = sy_choose_app(work, false, &standing);
    return app ? sy_add_app(work, "focus_app", app) : standing;
}

static enum sy_standing use_preset(struct sy_work *work) {
    char names[80];
    size_t count = sy_contenders(work, SY_PRESETS, &work->presets);
    if (count == 1) {
        struct sy_found found = {.type = "activate_preset", .name = work->index->presets[work->presets.at[0].at].name};
        return sy_add(work, &found);
    }
    if (count > 1) {
        return sy_ask_which(work, SY_PRESETS, &work->presets, count);
    }
    return sy_unsure(work, "No preset is called \"%s\". Which one do you mean?", sy_named(work, names, sizeof names));
}

/* Returns the site that all names together mean: "hacker news". NULL: no known site. */
static const char *site_of(const struct sy_work *work) {
    return sy_site(work->terms.joined);
}

static enum sy_standing open_site(struct sy_work *work) {
    char names[80];
    const struct sy_clause *clause = work->clause;
    if (clause->address) {
        return sy_add_url(work, clause->address->raw, clause->address->raw_len);
    }
    if (work->terms.count == 0) {
        return sy_ask_back(work, "Which site is to be opened?");
    }
    const char *site = site_of(work);
    if (site) {
        return sy_add_url(work, site, strlen(site));
    }
    return sy_unsure(work, "No site called \"%s\" is known. What is its address?", sy_named(work, names, sizeof names));
}

/* Whether a site that is not open may be opened instead. */
static bool visits(const struct sy_clause *clause) {
    return clause->verb == SY_VISIT || clause->verb == SY_WANT || clause->verb == SY_PRESET ||
           clause->verb == SY_NO_VERB;
}

/* Shows the tab at the named address. If there are several such tabs, asks. If there is none, opens the address or
 * looks for a tab by the words. */
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
            bool exact = strpbrk(given, "/:") != NULL; /* the address has a port or a path */
            if (host && (!exact || strstr(tab_url, strstr(url, domain)) != NULL)) {
                at = i + 1;
                count++;
            }
        }
    }
    if (count == 1) {
        return sy_add_tabs(work, "switch_tab", &at, 1);
    }
    if (count == 0) {
        return visits(work->clause) ? open_site(work) : switch_tab(work);
    }
    return sy_ask_back(work, "%zu tabs are at %s. Which one do you mean?", count, domain);
}

/* Whether one tab fits the words, and no known site does: "open zoom in the browser". */
static bool is_open(const struct sy_work *work) {
    return !work->clause->address && work->terms.count > 0 && !site_of(work) && sy_top_of(&work->tabs) >= 0.9 &&
           sy_contenders(work, SY_TABS, &work->tabs) == 1;
}

static enum sy_standing list_clause(struct sy_work *work);

/* Whether the only word means a kind of thing: "the calendar", "my messages". */
static bool is_generic(const struct sy_work *work) {
    const struct sy_clause *clause = work->clause;
    const struct sy_term *term = &work->terms.at[0];
    bool plain = !clause->tab && !clause->app && !clause->window && !clause->preset && !clause->address;
    return plain && work->terms.count == 1 && (term->meanings.kinds || term->meanings.same);
}

/* Whether both an application and a tab fit a generic word: then even showing one of them would be a guess. If the word
 * is the application's own name, the application usually wins. */
static bool fits_both(const struct sy_work *work) {
    if (!is_generic(work) || sy_top_of(&work->apps) < GENERIC || sy_top_of(&work->tabs) < GENERIC ||
        work->apps.at[0].part) {
        return false;
    }
    const struct sy_entry *app = &work->index->apps[work->apps.at[0].at];
    const char *title = work->index->scene->snapshot->tabs[work->tabs.at[0].at].tab->title;
    if (app->running && strstr(title, app->name)) {
        return false; /* the tab is a page of the same service */
    }
    bool named = sy_top_of(&work->apps) >= EXACT_NAME - 0.06; /* less for an application that does not run */
    bool by_title = sy_top_of(&work->tabs) > 0.9;
    return named ? by_title && !app->running && work->clause->verb != SY_OPEN : true;
}

static enum sy_standing switch_clause(struct sy_work *work) {
    const struct sy_clause *clause = work->clause;
    double app = sy_top_of(&work->apps);
    double tab = sy_top_of(&work->tabs);
    if (clause->fresh || (clause->address && visits(clause) && clause->tab)) {
        return is_open(work) ? switch_tab(work) : open_site(work);
    }
    if (clause->address) {
        return switch_to_address(work);
    }
    if (work->terms.count == 0 && (clause->tabs || clause->apps || (clause->tab && clause->all)) &&
        !clause->number_count && !clause->other) {
        return list_clause(work);
    }
    if (clause->anew && site_of(work)) {
        return open_site(work);
    }
    if (sy_top_of(&work->presets) >= 1.05 && !clause->tab && !clause->app && !clause->preset &&
        clause->verb == SY_WANT && tab >= 0.9 && window_rival(work)) {
        return sy_ask_back(work, "Do you mean the preset, a tab or a window? Say which");
    }
    if (sy_top_of(&work->presets) >= 1.05 && !clause->tab && !clause->app) {
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
        return sy_ask_back(work, "Where to: which application or tab?");
    }
    if (fits_both(work)) {
        return ask_kind(work);
    }
    const struct sy_entry *sure = sy_sure_app(work, false);
    if (sure && (sure->running || tab < 0.95) && app + 0.1 > tab) {
        return focus_app(work);
    }
    if (tab >= 0.6 && tab >= app) {
        return switch_tab(work);
    }
    if (sy_top_of(&work->presets) > app && sy_top_of(&work->presets) >= 0.75) {
        return use_preset(work);
    }
    if (visits(clause) && site_of(work) && app < WHOLE_WORDS) {
        return open_site(work);
    }
    return app >= 0.7 || (app >= SY_GUESS && app > tab) ? focus_app(work) : switch_tab(work);
}

/* ---- open ---- */

static enum sy_standing open_clause(struct sy_work *work) {
    const struct sy_clause *clause = work->clause;
    if (clause->address || clause->fresh || clause->site) {
        return is_open(work) ? switch_tab(work) : open_site(work);
    }
    if (clause->preset && work->index->preset_count > 0) {
        return use_preset(work);
    }
    if (clause->anew && site_of(work)) {
        return open_site(work);
    }
    if (clause->tab || clause->number_count > 0) {
        bool there = clause->number_count > 0 || sy_top_of(&work->tabs) >= 0.6;
        return there || !site_of(work) ? switch_tab(work) : open_site(work);
    }
    if (fits_both(work)) {
        return ask_kind(work);
    }
    const struct sy_entry *sure = sy_sure_app(work, false);
    if (sure || clause->app) {
        return focus_app(work);
    }
    if (site_of(work)) {
        return open_site(work);
    }
    if (sy_top_of(&work->presets) >= 0.88 && sy_top_of(&work->presets) > sy_top_of(&work->apps)) {
        return use_preset(work);
    }
    if (sy_top_of(&work->apps) >= 0.7 && sy_top_of(&work->apps) + 0.15 > sy_top_of(&work->tabs)) {
        return focus_app(work);
    }
    if (work->terms.count == 0) {
        return sy_ask_back(work, "What is to be opened?");
    }
    bool runs = strcmp(clause->all_words[0].text, "run") == 0; /* "run" is not said of a page */
    bool tab = !runs && sy_top_of(&work->tabs) >= SY_GUESS && sy_top_of(&work->tabs) > sy_top_of(&work->apps);
    return tab ? switch_tab(work) : focus_app(work);
}

/* ---- place ---- */

static const struct sy_rect *window_of(const struct sy_work *work, const char *name) {
    const struct sy_snapshot *snapshot = work->index->scene->snapshot;
    const struct sy_running *running = sy_find_running(snapshot, name);
    return running ? &snapshot->windows.at[running->windows[0]].bounds : NULL;
}

enum sy_standing sy_place(struct sy_work *work, const char *name, const struct sy_where *where) {
    struct sy_found found = {.type = "place_app", .name = name};
    const struct sy_found *last = work->out->count > 0 ? &work->out->found[work->out->count - 1] : NULL;
    bool by_last = where->there && last && last->has_bounds; /* "next to it" is on the same monitor */
    if (where->beside && !where->monitor) {                  /* both on one monitor, without naming it */
        struct sy_where main = *where;
        main.monitor = "main";
        bool there = sy_where_bounds(&main, work->index->scene->snapshot, NULL, &found.monitor, &found.has_bounds,
                                     &found.bounds);
        found.monitor = NULL;
        return there ? sy_add(work, &found) : sy_ask_back(work, "No monitor is known here. Where to?");
    }
    if (!sy_where_bounds(where, work->index->scene->snapshot, by_last ? &last->bounds : window_of(work, name),
                         &found.monitor, &found.has_bounds, &found.bounds)) {
        return sy_ask_back(work, "There is no such monitor here. Where to?");
    }
    return sy_add(work, &found);
}

/* Returns the place of one of two windows side by side: the left half for the first one, the right half for the second
 * one. */
static struct sy_where half_of(struct sy_where where, bool second) {
    where.part = true;
    where.left = second ? SY_TWELFTHS / 2 : 0;
    where.right = second ? SY_TWELFTHS : SY_TWELFTHS / 2;
    where.top = 0;
    where.bottom = SY_TWELFTHS;
    return where;
}

static enum sy_standing place_unnamed(struct sy_work *work);

/* Whether one of the first `count` commands places the application already: "... and everything else on the right". */
static bool is_placed(const struct sy_reading *out, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(out->found[i].type, "place_app") == 0 && strcmp(out->found[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* For "everything on the main monitor": places each running application. */
static enum sy_standing place_all(struct sy_work *work) {
    const size_t before = work->out->count;
    enum sy_standing standing = SY_CLEAR;
    for (size_t window = 0; window < work->index->scene->snapshot->windows.count; window++) {
        for (size_t i = 0; i < work->index->app_count && standing == SY_CLEAR; i++) {
            const struct sy_entry *app = &work->index->apps[i];
            if (app->running && shows(app, window) && !is_placed(work->out, before, app->name)) {
                standing = sy_place(work, app->name, &work->clause->where);
            }
        }
    }
    return standing;
}

static enum sy_standing place_clause(struct sy_work *work) {
    const struct sy_clause *clause = work->clause;
    enum sy_standing standing;
    if (clause->tab && !clause->app && !clause->window) {
        return sy_ask_back(work,
                           "A single tab can't be moved, only the window of an application. Which one do you mean?");
    }
    if (clause->preset && work->index->preset_count > 0 && !clause->where.given) {
        return use_preset(work);
    }
    size_t over = clause->word_count > 3 && strcmp(clause->all_words[1].text, "over") == 0;
    if (!clause->where.given && clause->word_count > 2 && strcmp(clause->all_words[1 + over].text, "to") == 0) {
        return switch_clause(work); /* "move to slack" */
    }
    if (!clause->where.given) {
        return sy_ask_back(work, "Where to: which monitor, or which part of it?");
    }
    if (clause->where.rest) {
        return sy_ask_back(work, "Where to: which monitor, or which part of it?");
    }
    bool others = clause->other && work->out->count == 0; /* not clear: other than what? */
    bool every = clause->all && !clause->has_but && !others && !clause->both && !clause->refers;
    const struct sy_where *to = &clause->where;
    bool whole = to->part && to->left == 0 && to->top == 0 && to->right == SY_TWELFTHS && to->bottom == SY_TWELFTHS;
    if (work->terms.count == 0 && every && (whole || ((to->monitor || to->direction) && !to->part))) {
        return place_all(work);
    }
    if (work->terms.count == 0 && !clause->app && !clause->apps && !clause->window && !clause->current) {
        return place_unnamed(work);
    }
    const struct sy_entry *app = sy_choose_app(work, false, &standing);
    if (!app) {
        return standing;
    }
    if (!app->running) {
        char name[164];
        sy_plain(app->name, 40, name, sizeof name);
        return sy_ask_back(work, "%s is not running. Which one do you mean?", name);
    }
    if (clause->where.beside) {
        size_t before = work->out->count;
        const struct sy_where half = half_of(clause->where, before % 2 == 1);
        return before < 2 ? sy_place(work, app->name, &half)
                          : sy_ask_back(work, "Only two fit side by side. Which ones?");
    }
    return sy_place(work, app->name, &clause->where);
}

/* For "swap chrome and slack": the windows change places. */
static enum sy_standing swap_clause(struct sy_work *work) {
    enum sy_standing standing;
    const struct sy_entry *app = sy_choose_app(work, false, &standing);
    const struct sy_entry *first = work->swap;
    if (!app) {
        return standing;
    }
    if (!app->running || app == first) {
        return sy_ask_back(work, "Two applications that run can change places. Which ones?");
    }
    work->swap = first ? NULL : app;
    if (!first) {
        return SY_CLEAR; /* the second application is in the next clause */
    }
    struct sy_found there = {.type = "place_app", .name = first->name, .has_bounds = true};
    struct sy_found here = {.type = "place_app", .name = app->name, .has_bounds = true};
    there.bounds = *window_of(work, app->name);
    here.bounds = *window_of(work, first->name);
    standing = sy_add(work, &there);
    return standing == SY_CLEAR ? sy_add(work, &here) : standing;
}

/* ---- list, query ---- */

static enum sy_standing ask_question(struct sy_work *work) {
    return sy_add_text(work, "query", work->words->text, strlen(work->words->text));
}

static enum sy_standing list_clause(struct sy_work *work) {
    const struct sy_clause *clause = work->clause;
    bool plain =
        work->terms.count == 0 && !clause->duplicate && !clause->number_count && !clause->in_window && !clause->ordinal;
    if (plain && (clause->tabs || (clause->tab && clause->all)) && !clause->apps) {
        struct sy_found found = {.type = "list_tabs"};
        return sy_add(work, &found);
    }
    if (plain && (clause->apps || clause->running) && !clause->tab) {
        struct sy_found found = {.type = "list_apps"};
        return sy_add(work, &found);
    }
    return ask_question(work);
}

static bool rank_again(struct sy_work *work);

/* Drops words such as "did" and "go" of "where did overleaf go", and ranks again. False when out of memory. */
static bool drop_went(struct sy_work *work) {
    size_t kept = 0;
    for (size_t i = 0; i < work->terms.count; i++) {
        if (!sy_is_one_of(work->terms.at[i].text, "did does go gone went")) {
            work->terms.at[kept++] = work->terms.at[i];
        }
    }
    bool all = kept == work->terms.count || kept == 0;
    work->terms.count = all ? work->terms.count : kept;
    return all || rank_again(work);
}

/* For "where was the train pass": shows the tab if exactly one fits; otherwise the command is a query. */
static enum sy_standing find_asked(struct sy_work *work) {
    const struct sy_clause *clause = work->clause;
    bool where = clause->word_count > 1 && sy_is_one_of(clause->all_words[0].text, "where wheres") && drop_went(work);
    bool one = where && sy_top_of(&work->tabs) >= 0.8 && sy_top_of(&work->tabs) > sy_top_of(&work->apps) &&
               sy_contenders(work, SY_TABS, &work->tabs) == 1;
    return one && !clause->window ? switch_tab(work) : ask_question(work);
}

/* For "what tabs are open": the command is a list if the question has no other words. */
enum sy_standing sy_answer_question(struct sy_work *work) {
    for (size_t i = 0; i < work->terms.count; i++) {
        const char *word = work->terms.at[i].text;
        if (!sy_is_one_of(word, "what whats do currently got chrome moment present time")) {
            return find_asked(work);
        }
    }
    work->terms.count = 0;
    return work->clause->where.given ? ask_question(work) : list_clause(work);
}

/* ---- without a verb ---- */

static enum sy_standing refer(struct sy_work *work);

/* Whether the names are only an address: "github.com". */
static bool only_address(const struct sy_work *work) {
    size_t others = 0;
    for (size_t i = 0; i < work->clause->name_count; i++) {
        const struct sy_word *word = work->clause->names[i];
        others += word != work->clause->address && !sy_is_stop(word->text);
    }
    return work->clause->address && others == 0;
}

/* Whether the clause only names a thing, which is then shown: "the paper about jazz". */
static bool is_thing(const struct sy_clause *clause) {
    return clause->word_count > 1 && sy_is_one_of(clause->all_words[0].text, "the my that this our your");
}

/* Whether the clause only states something, and does not say what to do: "the notes window is in my way". */
static bool tells(const struct sy_clause *clause) {
    for (size_t i = 1; i < clause->word_count; i++) { /* "I'm done with youtube" */
        bool done = sy_is_one_of(clause->all_words[i].text, "with of") &&
                    sy_is_one_of(clause->all_words[i - 1].text, "done finished through tired sick enough bored fed up");
        if (done && i + 1 < clause->word_count) {
            return true;
        }
    }
    for (size_t i = 1; i + 1 < clause->word_count; i++) {
        if (sy_is_one_of(clause->all_words[i].text, "is are isnt arent keeps wont doesnt cant looks seems")) {
            return clause->word_count > 3;
        }
    }
    return false;
}

/* Shows or moves a thing that fits well enough, if no other thing does. */
static enum sy_standing guess_clause(struct sy_work *work) {
    const struct sy_clause *clause = work->clause;
    double app = sy_top_of(&work->apps);
    double tab = sy_top_of(&work->tabs);
    if (clause->where.given && !clause->refers && app >= SY_GUESS && sy_contenders(work, SY_APPS, &work->apps) == 1) {
        return place_clause(work);
    }
    bool plain = !clause->where.given && !clause->tab && !clause->app && work->terms.count > 0;
    if (plain && sy_top_of(&work->presets) >= SY_GUESS && app < SY_GUESS && tab < SY_GUESS &&
        sy_contenders(work, SY_PRESETS, &work->presets) == 1) {
        return use_preset(work);
    }
    if (is_thing(clause) && !clause->where.given && work->terms.count > 0) {
        return switch_clause(work);
    }
    bool typo = clause->word_count == 1 && tab >= 0.75 && strlen(clause->all_words[0].text) >= 5;
    bool many = typo || work->terms.count > 1 || (work->tabs.count > 0 && work->tabs.at[0].certain);
    if (plain && many && tab >= 0.7 && tab > app && sy_contenders(work, SY_TABS, &work->tabs) == 1) {
        return switch_tab(work);
    }
    return sy_unsure(work, "What is to be done? Begin with a word such as open, switch to, close or move");
}

static enum sy_standing verbless_clause(struct sy_work *work) {
    const struct sy_clause *clause = work->clause;
    const struct sy_entry *app = sy_sure_app(work, false);
    if (clause->fresh || (clause->anew && site_of(work))) {
        return open_site(work);
    }
    if (tells(clause) && !clause->where.given) {
        return sy_unsure(work, "What is to be done? Begin with a word such as open, switch to, close or move");
    }
    if (clause->where.given && app && app->running) {
        return place_clause(work);
    }
    if (clause->where.given && work->terms.count == 0 && work->before && work->before->last.name) {
        return refer(work); /* "now the left half" */
    }
    bool after_tab = clause->relative && work->before && work->before->last.tab_count == 1; /* "the next one" */
    bool counted = clause->relative || clause->number_count == 1 || clause->ordinal;
    if (work->terms.count == 0 &&
        (after_tab || (clause->number_count == 1 && clause->word_count == 1) || (clause->tab && counted))) {
        return switch_tab(work);
    }
    if (clause->preset && sy_top_of(&work->presets) >= 0.88) {
        return use_preset(work);
    }
    double tab = sy_top_of(&work->tabs);
    if (sy_top_of(&work->presets) >= 1.05 && !clause->tab && !clause->app) {
        return use_preset(work); /* just its name */
    }
    if (app && !clause->tab && !clause->where.given && sy_top_of(&work->apps) + 0.1 > tab) {
        return focus_app(work);
    }
    if (sy_top_of(&work->presets) >= LIKE_NAME && !app && !clause->tab && !clause->app && work->terms.count == 1 &&
        tab < 0.95) {
        return use_preset(work); /* a typo of its name */
    }
    if (sy_top_of(&work->presets) >= 0.95 && !clause->tab && !clause->app) {
        return use_preset(work);
    }
    if (only_address(work)) {
        return switch_to_address(work);
    }
    if (tab >= ALL_WORDS && !clause->where.given) {
        return switch_tab(work);
    }
    if (site_of(work) && !clause->tab) {
        return open_site(work);
    }
    if (sy_top_of(&work->apps) >= LIKE_NAME && work->terms.count == 1 && !clause->where.given) {
        return focus_app(work); /* a typo of its name, and not more */
    }
    return guess_clause(work);
}

/* ---- commands that refer to the earlier ones ---- */

static const struct sy_found *meant(const struct sy_work *work) {
    if (work->out->count > 0) {
        return &work->out->found[work->out->count - 1];
    }
    return work->before && work->before->last.type ? &work->before->last : NULL;
}

/* For "no, the other screen": returns the monitor that was not said before. */
static const char *other_than_before(const struct sy_work *work, const char *name) {
    const struct sy_snapshot *snapshot = work->index->scene->snapshot;
    const struct sy_before *before = work->before;
    const char *monitor = NULL;
    bool has_bounds;
    struct sy_rect bounds;
    bool placed = before && before->verb == SY_PLACE && before->where.given && snapshot->monitors.count == 2 &&
                  sy_where_bounds(&before->where, snapshot, window_of(work, name), &monitor, &has_bounds, &bounds) &&
                  monitor;
    const struct sy_monitor *left = sy_find_monitor(snapshot, "left");
    return !placed ? "other" : sy_find_monitor(snapshot, monitor) == left ? "right" : "left";
}

/* Makes one placement of "move it to the right monitor and maximize it". */
static enum sy_standing place_again(struct sy_work *work, const char *name) {
    struct sy_reading *out = work->out;
    struct sy_where where = work->clause->where;
    struct sy_found *last = out->count > 0 ? &out->found[out->count - 1] : NULL;
    if (!last && where.monitor && strcmp(where.monitor, "other") == 0) {
        where.monitor = other_than_before(work, name);
    }
    if (last && strcmp(last->type, "place_app") == 0 && last->monitor && !last->has_bounds && !where.monitor) {
        where.monitor = last->monitor;
        sy_found_free(last);
        out->count--;
    }
    return sy_place(work, name, &where);
}

/* For "maximize": places the application of the previous command, or else the active one. */
static enum sy_standing place_unnamed(struct sy_work *work) {
    const struct sy_found *it = meant(work);
    if (it && it->name && !sy_found_destroys(it) && strcmp(it->type, "activate_preset") != 0) {
        return place_again(work, it->name);
    }
    for (size_t i = 0; i < work->index->app_count && work->clause->own_verb; i++) {
        if (work->index->apps[i].active) {
            return sy_place(work, work->index->apps[i].name, &work->clause->where);
        }
    }
    return sy_ask_back(work, "Which application do you mean?");
}

/* For "it": uses the thing of the previous command. */
static enum sy_standing refer(struct sy_work *work) {
    const struct sy_clause *clause = work->clause;
    const struct sy_found *it = meant(work);
    bool closed = it && sy_found_destroys(it);
    if (!it || closed || (!it->tab_count && !it->name) || (it->name && strcmp(it->type, "activate_preset") == 0)) {
        return sy_ask_back(work, "What do you mean by that? Name the tab or the application");
    }
    if (it->tab_count > 0) {
        if (clause->verb == SY_PLACE) {
            return sy_ask_back(
                work, "A single tab can't be moved, only the window of an application. Which one do you mean?");
        }
        bool closes = clause->verb == SY_CLOSE;
        return closes || it->tab_count == 1
                   ? sy_add_tabs(work, closes ? "close_tab" : "switch_tab", it->tabs, it->tab_count)
                   : sy_ask_back(work, "Which of the tabs do you mean?");
    }
    const char *name = it->name;
    if (clause->verb == SY_PLACE || (clause->verb != SY_CLOSE && clause->where.given)) {
        return clause->where.given ? place_again(work, name)
                                   : sy_ask_back(work, "Where to: which monitor, or which part of it?");
    }
    struct sy_found found = {.type = clause->verb == SY_CLOSE ? "close_app" : "focus_app", .name = name};
    return sy_add(work, &found);
}

/* ---- a clause ---- */

static bool rank_again(struct sy_work *work) {
    free(work->apps.at);
    free(work->tabs.at);
    work->apps = work->tabs = (struct sy_hits){.at = NULL};
    bool ranked = sy_rank(work->index, SY_APPS, &work->terms, &work->apps) &&
                  sy_rank(work->index, SY_TABS, &work->terms, &work->tabs);
    work->failed |= !ranked;
    return ranked;
}

/* Handles names that are like a verb: "zoom", "google maps". True: the words are such a name; `*standing` is set. */
static bool is_name(struct sy_work *work, enum sy_standing *standing) {
    const struct sy_clause *said = work->clause;
    struct sy_clause *clause = calloc(1, sizeof *clause);
    bool named = false;
    if (!clause) {
        work->failed = true;
        return false;
    }
    for (size_t i = 0; i < said->word_count && i < SY_WORDS_MAX; i++) {
        clause->names[clause->name_count++] = &said->all_words[i];
    }
    clause->all_words = said->all_words;
    clause->word_count = said->word_count;
    sy_terms_make(work->index, clause->names, clause->name_count, &work->terms);
    work->clause = clause;
    if (rank_again(work) && (site_of(work) || (sy_sure_app(work, false) && sy_top_of(&work->apps) >= WHOLE_WORDS))) {
        named = true;
        *standing = verbless_clause(work);
    }
    work->clause = said;
    free(clause);
    return named;
}

/* Handles presets whose name is like a verb: "review". True: the words are such a name, and the preset was added. */
static bool is_preset(struct sy_work *work) {
    char said[128];
    char name[128];
    const struct sy_clause *clause = work->clause;
    size_t used = 0;
    said[0] = '\0';
    for (size_t i = 0; i < clause->word_count && used + SY_WORD_MAX < sizeof said; i++) {
        used += (size_t)snprintf(said + used, sizeof said - used, "%s", clause->all_words[i].text);
    }
    for (size_t i = 0; i < work->index->preset_count; i++) {
        sy_words_join(work->index->presets[i].name, name, sizeof name);
        if (said[0] && (strcmp(said, name) == 0 || (strlen(said) < SY_WORD_MAX && strlen(name) < SY_WORD_MAX &&
                                                    clause->word_count == 1 && sy_alike(said, name) >= 0.85))) {
            struct sy_found found = {.type = "activate_preset", .name = work->index->presets[i].name};
            return sy_add(work, &found) == SY_CLEAR;
        }
    }
    return false;
}

enum sy_standing sy_resolve(struct sy_work *work) {
    const struct sy_clause *clause = work->clause;
    if (clause->negated) {
        return sy_ask_back(work, "You say what is not to be done. What is to be done?");
    }
    if (clause->verb != SY_CLOSE && work->terms.count == 0 && is_preset(work)) {
        return SY_CLEAR;
    }
    enum sy_standing standing;
    if (clause->verb == SY_CANNOT && is_name(work, &standing)) {
        return standing;
    }
    if (clause->verb == SY_CANNOT) {
        return sy_ask_back(work,
                           "There is no command for that here: only to list, focus, place, open, switch and close");
    }
    bool things = clause->verb != SY_NO_VERB && clause->verb != SY_QUERY && clause->verb != SY_LIST;
    if (clause->refers && work->terms.count == 0 && !clause->number_count && (things || clause->where.given)) {
        return refer(work);
    }
    switch (clause->verb) {
    case SY_CLOSE: return close_clause(work);
    case SY_SWITCH:
    case SY_WANT:
    case SY_VISIT: return clause->where.given ? place_clause(work) : switch_clause(work);
    case SY_OPEN: {
        if (clause->where.beside) {
            return place_clause(work);
        }
        standing = open_clause(work);
        const struct sy_found *last = work->out->count > 0 ? &work->out->found[work->out->count - 1] : NULL;
        bool app = standing == SY_CLEAR && last && strcmp(last->type, "focus_app") == 0;
        return app && clause->where.given ? sy_place(work, last->name, &clause->where) : standing;
    }
    case SY_PLACE: return place_clause(work);
    case SY_SWAP: return swap_clause(work);
    case SY_PRESET: return clause->preset || sy_top_of(&work->presets) >= 0.75 ? use_preset(work) : switch_clause(work);
    case SY_LIST: return list_clause(work);
    case SY_QUERY: return ask_question(work);
    default: return verbless_clause(work);
    }
}
