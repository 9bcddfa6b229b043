/*
 * Choices. A set of tabs is made from the user's words. If it is not clear which tabs are meant, the user is asked. The
 * set is never guessed.
 */
#include "match/choose.h"
#include "base/compiler.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GOOD   0.6  /* the least score of a thing that is closed: the thing has most of the words, by weight */
#define CLOSE  0.05 /* a hit whose score is nearer than this to the best one counts as equally good */
#define APART  0.1  /* as CLOSE, if the best score is below GOOD */
#define OF_SET 0.75 /* the least score of a tab in a set */
#define SHOWN  5    /* candidates that a question names */

/* ---- questions ---- */

FM_PRINTF(2, 0) static void say(struct sy_work *work, const char *fmt, va_list list) {
    if (vsnprintf(work->out->reason, sizeof work->out->reason, fmt, list) < 0) {
        work->out->reason[0] = '\0';
    }
}

enum sy_standing sy_ask_back(struct sy_work *work, const char *fmt, ...) {
    va_list list;
    va_start(list, fmt);
    say(work, fmt, list);
    va_end(list);
    return SY_ASK;
}

enum sy_standing sy_unsure(struct sy_work *work, const char *fmt, ...) {
    va_list list;
    va_start(list, fmt);
    say(work, fmt, list);
    va_end(list);
    return SY_UNSURE;
}

/* Writes the name of the thing at `at` of the group, as a question shows it. */
static void describe(const struct sy_work *work, enum sy_group group, size_t at, char *text, size_t size) {
    char clean[40 * 4 + 4];
    if (group == SY_TABS) {
        sy_plain(work->index->scene->snapshot->tabs[at].tab->title, 40, clean, sizeof clean);
        snprintf(text, size, "%zu \"%s\"", at + 1, clean);
    } else {
        const struct sy_entry *entries = group == SY_APPS ? work->index->apps : work->index->presets;
        sy_plain(entries[at].name, 40, clean, sizeof clean);
        snprintf(text, size, "%s", clean);
    }
}

static void list_choices(const struct sy_work *work, char *text, size_t size) {
    const struct sy_reading *out = work->out;
    char one[200];
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < out->choice_count && i < SHOWN; i++) {
        describe(work, out->group, out->choices[i], one, sizeof one);
        int len = snprintf(text + used, size - used, "%s%s", i ? ", " : "", one);
        used += (size_t)len < size - used ? (size_t)len : 0;
    }
}

static int ascending(const void *a, const void *b) {
    size_t x = *(const size_t *)a;
    size_t y = *(const size_t *)b;
    return (x > y) - (x < y);
}

enum sy_standing sy_ask_which(struct sy_work *work, enum sy_group group, const struct sy_hits *hits, size_t count) {
    static const char *const kinds[] = {"applications", "tabs", "presets"};
    char names[80];
    char list[400];
    struct sy_reading *out = work->out;
    out->group = group;
    out->choice_count = count < SY_CHOICES_MAX ? count : SY_CHOICES_MAX;
    for (size_t i = 0; i < out->choice_count; i++) {
        out->choices[i] = hits->at[i].at;
    }
    qsort(out->choices, out->choice_count, sizeof out->choices[0], ascending);
    list_choices(work, list, sizeof list);
    out->choice_count = count > SY_CHOICES_MAX ? 0 : count; /* with too many, "all of them" would mean only some */
    return sy_ask_back(work, "%zu %s fit \"%s\": %s%s. Which one?", count, kinds[group],
                       sy_named(work, names, sizeof names), list, count > SHOWN ? ", ..." : "");
}

/* Whether all commands so far close tabs (and there is room for one more): then one question proposes all of them. */
static bool closes_only(const struct sy_reading *out) {
    for (size_t i = 0; i < out->count; i++) {
        if (strcmp(out->found[i].type, "close_tab") != 0) {
            return false;
        }
    }
    return out->count < SY_STEPS_MAX;
}

enum sy_standing sy_propose(struct sy_work *work, struct sy_found *found) {
    char list[400];
    struct sy_reading *out = work->out;
    bool tabs = found->tab_count > 0;
    if (!tabs) {
        char name[164];
        sy_plain(found->name, 40, name, sizeof name);
        sy_ask_back(work, "Do you mean the application %s? Say yes, or its exact name", name);
    } else {
        out->group = SY_TABS;
        out->choice_count = found->tab_count < SY_CHOICES_MAX ? found->tab_count : SY_CHOICES_MAX;
        for (size_t i = 0; i < out->choice_count; i++) {
            out->choices[i] = found->tabs[i] - 1;
        }
        list_choices(work, list, sizeof list);
        sy_ask_back(work, "Do you mean %zu tab%s: %s%s? Say yes, or which", found->tab_count,
                    found->tab_count > 1 ? "s" : "", list, found->tab_count > SHOWN ? ", ..." : "");
    }
    if (out->count == 0 || closes_only(out)) {
        out->found[out->count++] = *found;
        out->proposes = true;
    } else {
        sy_found_free(found); /* there are other commands: so the user must repeat everything */
    }
    return SY_ASK;
}

const char *sy_named(const struct sy_work *work, char *text, size_t size) {
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < work->clause->name_count; i++) {
        const struct sy_word *word = work->clause->names[i];
        if (!sy_is_stop(word->text) && used + strlen(word->text) + 2 < size) {
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? " " : "", word->text);
        }
    }
    return text;
}

/* ---- one tab ---- */

static bool same_page(const struct sy_work *work, size_t a, size_t b) {
    const struct sy_snapshot *snapshot = work->index->scene->snapshot;
    return strcmp(snapshot->tabs[a].tab->url, snapshot->tabs[b].tab->url) == 0;
}

size_t sy_contenders(const struct sy_work *work, enum sy_group group, const struct sy_hits *hits) {
    size_t count = 0;
    bool same = group == SY_TABS;
    bool harmless = work->clause->verb != SY_CLOSE;
    if (hits->count == 0 || hits->at[0].score < (harmless ? SY_GUESS : GOOD)) {
        return 0;
    }
    double near = hits->at[0].score < GOOD ? APART : CLOSE;
    while (count < hits->count && hits->at[count].score > hits->at[0].score - near) {
        same = same && same_page(work, hits->at[0].at, hits->at[count].at);
        count++;
    }
    return same ? 1 : count; /* if all tabs show the same page, any of them will do */
}

/* ---- tabs ---- */

/* Whether each word of the window's title, except Chrome's name, is in the tab's title. */
static bool shows_tab(const struct sy_window *window, const struct sy_numbered_tab *tab) {
    char shown[24][SY_WORD_MAX];
    char words[48][SY_WORD_MAX];
    size_t count = sy_words_split(window->title, shown, 24);
    size_t own = sy_words_split(tab->tab->title, words, 48);
    size_t same = 0;
    for (size_t i = 0; i < count; i++) {
        bool in = sy_is_one_of(shown[i], "google chrome chromium");
        for (size_t j = 0; j < own; j++) {
            bool is = strcmp(shown[i], words[j]) == 0;
            in |= is;
            same += is;
        }
        if (!in) {
            return false;
        }
    }
    return same > 0;
}

/*
 * Finds the topmost window whose title fits an active tab. Returns this tab's index + 1. 0: no window fits an active
 * tab, or several active tabs fit the window.
 */
static size_t tab_by_words(const struct sy_snapshot *snapshot) {
    for (size_t i = 0; i < snapshot->windows.count; i++) {
        size_t found = 0;
        size_t count = 0;
        for (size_t j = 0; j < snapshot->tab_count; j++) {
            bool shown = snapshot->tabs[j].tab->active && shows_tab(&snapshot->windows.at[i], &snapshot->tabs[j]);
            found = shown ? j + 1 : found;
            count += shown;
        }
        if (count > 0) {
            return count == 1 ? found : 0;
        }
    }
    return 0;
}

size_t sy_current_tab(const struct sy_work *work) {
    const struct sy_snapshot *snapshot = work->index->scene->snapshot;
    size_t current = 0;
    size_t active = 0;
    for (size_t i = 0; i < snapshot->tab_count; i++) {
        active += snapshot->tabs[i].tab->active;
        current = snapshot->tabs[i].tab->active ? i + 1 : current;
    }
    if (active == 1) {
        return current;
    }
    for (size_t i = 0; i < snapshot->windows.count; i++) { /* Chrome's window title begins with its tab's */
        const struct sy_window *window = &snapshot->windows.at[i];
        for (size_t j = 0; j < snapshot->tab_count; j++) {
            const char *title = snapshot->tabs[j].tab->title;
            if (snapshot->tabs[j].tab->active && title[0] && strncmp(window->title, title, strlen(title)) == 0) {
                return j + 1;
            }
        }
    }
    return tab_by_words(snapshot);
}

struct set {
    bool *in; /* whether each tab is in the set */
    size_t count;
    bool sure;
};

static void put_in(struct set *set, size_t tab) {
    set->count += !set->in[tab];
    set->in[tab] = true;
}

static void take_out(struct set *set, size_t tab) {
    set->count -= set->in[tab];
    set->in[tab] = false;
}

/* Adds all tabs that fit. If some fit by their domain, tabs that only have the words in their title are left out. */
static void put_all(const struct sy_hits *hits, struct set *set) {
    bool domain = false;
    double top = hits->count > 0 ? hits->at[0].score : 0;
    double least = top >= 1 ? 0.95 : top - 0.1;
    least = least > OF_SET ? least : OF_SET;
    for (size_t i = 0; i < hits->count && hits->at[i].score >= least; i++) {
        domain |= hits->at[i].domain;
    }
    for (size_t i = 0; i < hits->count && hits->at[i].score >= least; i++) {
        if (hits->at[i].domain || !domain) {
            put_in(set, hits->at[i].at);
            set->sure &= hits->at[i].certain && !hits->at[i].stray;
        }
    }
}

/* Adds the first or last tabs: "the first three", "the last two reddit tabs". */
static enum sy_standing put_ends(struct sy_work *work, struct set *set) {
    const struct sy_clause *clause = work->clause;
    size_t tabs = work->index->tab_count;
    size_t want = (size_t)clause->numbers[0];
    struct set fit = {.in = calloc(tabs + 1, sizeof *fit.in), .sure = true};
    if (!fit.in) {
        work->failed = true;
        return SY_ASK;
    }
    for (size_t i = 0; i < tabs && work->terms.count == 0; i++) {
        put_in(&fit, i);
    }
    put_all(&work->tabs, &fit);
    for (size_t i = 0; i < tabs && set->count < want; i++) {
        size_t at = clause->ordinal == 1 ? i : tabs - 1 - i;
        if (fit.in[at]) {
            put_in(set, at);
        }
    }
    set->sure &= fit.sure;
    free(fit.in);
    return set->count < want ? sy_ask_back(work, "There are %zu such tabs only. Which ones do you mean?", set->count)
                             : SY_CLEAR;
}

/* Whether the tab's title has the number; with "onwards" also a larger one. */
static bool title_has(const struct sy_work *work, size_t tab, int number) {
    char words[48][SY_WORD_MAX];
    size_t count = sy_words_split(work->index->scene->snapshot->tabs[tab].tab->title, words, 48);
    for (size_t i = 0; i < count; i++) {
        int at = sy_number(words[i]);
        if (at == number || (work->clause->onwards && at > number)) {
            return true;
        }
        if (work->clause->onwards && at >= 0) {
            return false; /* "lecture 5 of 30": only the first number counts */
        }
    }
    return false;
}

/* Adds a series: "lectures 5 to 10", "reddit tabs 1 and 4". The numbers are in the titles, or count the tabs that
 * fit the words. */
static enum sy_standing put_series(struct sy_work *work, struct set *set) {
    const struct sy_clause *clause = work->clause;
    size_t tabs = work->index->tab_count;
    struct set fit = {.in = calloc(tabs + 1, sizeof *fit.in), .sure = true};
    bool indices = clause->tab && !clause->onwards;
    int missing = 0;
    if (!fit.in) {
        work->failed = true;
        return SY_ASK;
    }
    put_all(&work->tabs, &fit);
    for (size_t i = 0; i < clause->number_count; i++) {
        int number = clause->numbers[i];
        indices = indices && number > 0 && (size_t)number <= tabs && fit.in[number - 1];
    }
    for (size_t i = 0; i < clause->number_count; i++) {
        int number = clause->numbers[i];
        bool any = indices;
        for (size_t tab = 0; tab < tabs; tab++) {
            bool in = indices ? tab + 1 == (size_t)number : fit.in[tab] && title_has(work, tab, number);
            any |= in;
            if (in) {
                put_in(set, tab);
            }
        }
        missing = any || missing ? missing : number;
    }
    set->sure &= fit.sure;
    free(fit.in);
    return missing || set->count == 0
               ? sy_ask_back(work, "No tab is called so with number %d. Which ones are these?", missing)
               : SY_CLEAR;
}

/* Adds "the tabs to the right" of the named or current tab, in the same window. */
static enum sy_standing put_side(struct sy_work *work, struct set *set) {
    const struct sy_numbered_tab *tabs = work->index->scene->snapshot->tabs;
    size_t anchor = sy_current_tab(work);
    if (work->terms.count > 0) {
        size_t count = sy_contenders(work, SY_TABS, &work->tabs);
        anchor = count == 1 && work->tabs.at[0].certain ? work->tabs.at[0].at + 1 : 0;
    }
    if (anchor == 0) {
        return sy_ask_back(work, "To the side of which tab?");
    }
    for (size_t i = 0; i < work->index->tab_count; i++) {
        bool right = i + 1 > anchor;
        if (i + 1 != anchor && right == (work->clause->side > 0) &&
            tabs[i].window_index == tabs[anchor - 1].window_index) {
            put_in(set, i);
        }
    }
    return SY_CLEAR;
}

/* Adds the tab whose title has the number ("412"), if only one has it. Used when there is no tab of this number. */
static bool put_titled(struct sy_work *work, int number, struct set *set) {
    size_t found = 0;
    size_t count = 0;
    for (size_t i = 0; i < work->index->tab_count; i++) {
        bool has = title_has(work, i, number);
        found = has ? i : found;
        count += has;
    }
    if (count == 1) {
        put_in(set, found);
    }
    return count == 1;
}

static enum sy_standing put_numbers(struct sy_work *work, struct set *set) {
    const struct sy_clause *clause = work->clause;
    size_t tabs = work->index->tab_count;
    if (clause->verb != SY_CLOSE && clause->number_count == 1 && (size_t)clause->numbers[0] > tabs &&
        put_titled(work, clause->numbers[0], set)) {
        return SY_CLEAR;
    }
    for (size_t i = 0; i < clause->number_count; i++) {
        if (clause->numbers[i] < 1 || (size_t)clause->numbers[i] > tabs) {
            return sy_ask_back(work, "There is no tab %d: they are numbered from 1 to %zu. Which one do you mean?",
                               clause->numbers[i], tabs);
        }
        put_in(set, (size_t)clause->numbers[i] - 1);
    }
    for (size_t i = clause->onwards ? (size_t)clause->numbers[0] : tabs; i < tabs; i++) {
        put_in(set, i);
    }
    return SY_CLEAR;
}

/*
 * Adds the duplicates: for each page that is open more than once, all tabs but one. The active tab stays, or else the
 * first.
 */
static enum sy_standing put_duplicates(struct sy_work *work, struct set *set) {
    const struct sy_snapshot *snapshot = work->index->scene->snapshot;
    struct set all = {.in = calloc(snapshot->tab_count + 1, sizeof *all.in), .sure = true};
    if (!all.in) {
        work->failed = true;
        return SY_ASK;
    }
    put_all(&work->tabs, &all);
    for (size_t i = 0; i < snapshot->tab_count; i++) {
        bool kept = work->terms.count > 0 && !all.in[i];
        for (size_t j = 0; j < snapshot->tab_count && !kept; j++) {
            bool first =
                snapshot->tabs[j].tab->active == snapshot->tabs[i].tab->active ? j < i : snapshot->tabs[j].tab->active;
            if (i != j && first && same_page(work, i, j)) {
                put_in(set, i);
            }
        }
    }
    free(all.in);
    return set->count > 0 ? SY_CLEAR : sy_ask_back(work, "No page is open twice. What is to be closed?");
}

/* Adds tabs that show no page yet. */
static enum sy_standing put_blank(struct sy_work *work, struct set *set) {
    const struct sy_snapshot *snapshot = work->index->scene->snapshot;
    const struct sy_clause *clause = work->clause;
    bool several = clause->tabs || clause->all || clause->counted;
    for (size_t i = 0; i < snapshot->tab_count && (several || set->count == 0); i++) {
        const char *url = snapshot->tabs[i].tab->url;
        if (strncmp(url, "chrome://newtab", 15) == 0 || strncmp(url, "chrome://new-tab-page", 21) == 0 ||
            strcmp(url, "about:blank") == 0) {
            put_in(set, i);
        }
    }
    return set->count > 0 ? SY_CLEAR : sy_ask_back(work, "No tab is empty. Which ones do you mean?");
}

static enum sy_standing put_current(struct sy_work *work, struct set *set) {
    size_t tabs = work->index->tab_count;
    bool goes_on = work->clause->relative && !work->clause->tab && work->before && work->before->last.tab_count == 1;
    size_t current = goes_on ? work->before->last.tabs[0] : sy_current_tab(work);
    if (current == 0) {
        return sy_ask_back(work, "Which tab do you mean? Several windows show one");
    }
    size_t at = current - 1 + (work->clause->relative > 0 ? 1 : work->clause->relative < 0 ? tabs - 1 : 0);
    put_in(set, at % tabs);
    return SY_CLEAR;
}

/* "Close the lamp but keep the desk": if the only lamp is a desk lamp, it is closed, and the other desks are kept. */
static void only_the_others(const struct sy_work *work, const struct set *set, struct set *kept) {
    size_t both = 0;
    for (size_t i = 0; i < work->index->tab_count; i++) {
        both += set->in[i] && kept->in[i];
    }
    for (size_t i = 0; set->count == 1 && both == 1 && kept->count > 1 && i < work->index->tab_count; i++) {
        if (set->in[i]) {
            take_out(kept, i);
        }
    }
}

/* Removes from the set the tabs that the `count` words name. False: the words name no tab. */
static bool keep_named(struct sy_work *work, const struct sy_word *const *words, size_t count, struct set *set) {
    size_t tabs = work->index->tab_count;
    struct sy_terms terms;
    struct sy_hits hits;
    struct set kept = {.in = calloc(tabs + 1, sizeof *kept.in), .sure = true};
    sy_terms_make(work->index, words, count, &terms);
    if (!kept.in || !sy_rank(work->index, SY_TABS, &terms, &hits)) {
        free(kept.in);
        work->failed = true;
        return false;
    }
    int number = count == 1 ? sy_number(words[0]->text) : -1;
    put_all(&hits, &kept);
    bool index = number > 0 && (size_t)number <= tabs;
    if (index && work->clause->number_count > 0 && !work->clause->series) { /* "tabs 1 to 5 but not 3" */
        memset(kept.in, 0, tabs * sizeof *kept.in);
        kept.count = 0;
    }
    if (kept.count == 0 && index) {
        put_in(&kept, (size_t)number - 1);
        kept.sure = true;
    }
    only_the_others(work, set, &kept);
    set->sure &= kept.sure; /* if the names were not certain, other tabs may have to stay */
    for (size_t i = 0; i < tabs; i++) {
        if (kept.in[i]) {
            take_out(set, i);
        }
    }
    free(hits.at);
    free(kept.in);
    return kept.count > 0;
}

/* Removes tabs by their place in the set: "all but the last two". False: the words do not name a place. */
static bool keep_place(const struct sy_work *work, const struct sy_word *const *words, size_t count, struct set *set) {
    int ordinal = 0;
    size_t many = 1;
    for (size_t i = 0; i < count; i++) {
        const char *word = words[i]->text;
        int number = sy_number(word);
        bool other = sy_ordinal(word) == 0 && number < 1 && !sy_is_stop(word);
        if (other || (sy_ordinal(word) != 0 && ordinal != 0)) {
            return false;
        }
        ordinal = sy_ordinal(word) != 0 ? sy_ordinal(word) : ordinal;
        many = number > 0 ? (size_t)number : many;
    }
    size_t from = ordinal < 0 ? (set->count > many ? set->count - many : 0) : (size_t)(ordinal > 0 ? ordinal - 1 : 0);
    size_t seen = 0;
    for (size_t i = 0; i < work->index->tab_count && ordinal != 0; i++) {
        if (set->in[i] && seen++ >= from && seen <= from + many) {
            take_out(set, i);
        }
    }
    return ordinal != 0;
}

static bool is_current(const struct sy_word *word) {
    return strcmp(word->text, "this") == 0 || strcmp(word->text, "current") == 0 || strcmp(word->text, "active") == 0;
}

/* Removes the tabs that are named after "except", or with "other" the current tab. Asks if a tab is not found. */
static enum sy_standing leave_out(struct sy_work *work, struct set *set) {
    const struct sy_clause *clause = work->clause;
    bool but_current = clause->other;
    bool left_out = clause->other || !clause->has_but;
    for (size_t i = 0; i < clause->but_count;) {
        size_t end = i;
        bool names = false;
        bool current = false;
        while (end < clause->but_count && clause->but[end]) {
            current |= is_current(clause->but[end]);
            names |= !sy_is_stop(clause->but[end]->text);
            end++;
        }
        but_current |= current;
        left_out |= names || current;
        if (names && !current && keep_place(work, clause->but + i, end - i, set)) {
            i = end + 1;
            continue;
        }
        if (names && !current && !keep_named(work, clause->but + i, end - i, set)) {
            return sy_ask_back(work, "No tab fits what is to stay open. Which one do you mean?");
        }
        i = end + 1;
    }
    if (!left_out) {
        return sy_ask_back(work, "Except what? Name the tab that is to stay open");
    }
    size_t current = but_current ? sy_current_tab(work) : 0;
    if (but_current && current == 0) {
        return sy_ask_back(work, "Which tab is to stay open? Several windows show one");
    }
    if (but_current) {
        take_out(set, current - 1);
    }
    return SY_CLEAR;
}

static void keep_window(const struct sy_work *work, int window, struct set *set) {
    for (size_t i = 0; i < work->index->tab_count; i++) {
        if (work->index->scene->snapshot->tabs[i].window_index != window) {
            take_out(set, i);
        }
    }
}

static bool in_title(const struct sy_work *work, size_t tab, const char *word) {
    char words[48][SY_WORD_MAX];
    size_t count = sy_words_split(work->index->scene->snapshot->tabs[tab].tab->title, words, 48);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(words[i], word) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether an ordinal is also a word of a title: "the first images" may mean such a title, or the first of several. */
static bool ordinal_in_title(const struct sy_work *work, const struct set *set) {
    const struct sy_clause *clause = work->clause;
    for (size_t i = 0; i < clause->word_count && !clause->tab; i++) {
        const char *word = clause->all_words[i].text;
        for (size_t tab = 0; tab < work->index->tab_count && sy_ordinal(word) != 0; tab++) {
            if (set->in[tab] && set->count > 1 && in_title(work, tab, word)) {
                return true;
            }
        }
    }
    return false;
}

/* Keeps only the nth tab of the set: "the second reddit tab", "the last tab". */
static enum sy_standing keep_nth(struct sy_work *work, struct set *set) {
    size_t nth = work->clause->ordinal < 0 ? set->count : (size_t)work->clause->ordinal;
    size_t seen = 0;
    size_t count = set->count;
    for (size_t i = 0; i < work->index->tab_count; i++) {
        seen += set->in[i];
        if (seen != nth) {
            take_out(set, i);
        }
    }
    return set->count == 1 ? SY_CLEAR
                           : sy_ask_back(work, "There are %zu such tabs only. Which one do you mean?", count);
}

/* Whether other tabs fit too, because a word means a kind of site: for "all papers", one tab has the word in its title,
 * and others are at sites for papers. */
static bool others_of_kind(const struct sy_work *work, const struct set *set) {
    bool kind = false;
    for (size_t i = 0; i < work->terms.count; i++) {
        kind |= work->terms.at[i].meanings.kinds != 0;
    }
    kind = kind && !work->clause->address; /* a host does not name a kind */
    for (size_t i = 0; kind && i < work->tabs.count; i++) {
        const struct sy_hit *hit = &work->tabs.at[i];
        if (hit->score >= OF_SET && !set->in[hit->at]) {
            return true;
        }
    }
    return false;
}

static enum sy_standing put_named(struct sy_work *work, bool several, struct set *set) {
    const struct sy_clause *clause = work->clause;
    char names[80];
    if (several || clause->ordinal != 0 || clause->in_window != 0) {
        put_all(&work->tabs, set);
        set->sure &= !others_of_kind(work, set);
        return set->count > 0 ? SY_CLEAR
                              : sy_unsure(work, "No tab fits \"%s\". Which ones do you mean?",
                                          sy_named(work, names, sizeof names));
    }
    size_t count = sy_contenders(work, SY_TABS, &work->tabs);
    if (count == 0) {
        return sy_unsure(work, "No tab fits \"%s\". Which one do you mean?", sy_named(work, names, sizeof names));
    }
    size_t current = clause->pointed ? sy_current_tab(work) : 0;
    for (size_t i = 0; i < count && count > 1 && current > 0; i++) {
        if (work->tabs.at[i].at == current - 1) { /* "this kyoto page" */
            put_in(set, current - 1);
            set->sure &= work->tabs.at[i].certain;
            return SY_CLEAR;
        }
    }
    if (count > 1) {
        return sy_ask_which(work, SY_TABS, &work->tabs, count);
    }
    put_in(set, work->tabs.at[0].at);
    set->sure &= !others_of_kind(work, set);
    set->sure &= work->tabs.at[0].certain && !work->tabs.at[0].stray && work->tabs.at[0].score >= OF_SET;
    return SY_CLEAR;
}

/* Whether the last word means several tabs: "the recipes", "the amazon stuff". If a title has this word, it does
 * not: "The New York Times". */
static bool is_plural(const struct sy_work *work) {
    const struct sy_term *last = work->terms.count > 0 ? &work->terms.at[work->terms.count - 1] : NULL;
    size_t len = last ? strlen(last->text) : 0;
    if (work->clause->tab || !last || last->place || strcmp(last->text, "news") == 0) {
        return false;
    }
    for (size_t i = 0; i < work->tabs.count && work->tabs.at[i].score >= OF_SET && !last->weak; i++) {
        if (in_title(work, work->tabs.at[i].at, last->text)) {
            return false;
        }
    }
    return strcmp(last->text, "stuff") == 0 || (len > 3 && last->text[len - 1] == 's' && last->text[len - 2] != 's');
}

static enum sy_standing check_count(struct sy_work *work, const struct set *set) {
    const struct sy_clause *clause = work->clause;
    if (clause->other && !clause->tabs && !clause->all && !clause->counted && set->count > 1) {
        return sy_ask_back(work, "%zu tabs are left of what you say. Which one do you mean?", set->count);
    }
    size_t want = clause->both ? 2 : (size_t)clause->counted;
    if (want > 0 && set->count != want) {
        return sy_ask_back(work, "%zu tabs fit, not %zu. Which ones do you mean?", set->count, want);
    }
    return SY_CLEAR;
}

/*
 * Adds tabs by something else than their names, such as numbers. `*done` false: the clause has no numbers or similar
 * words.
 */
static enum sy_standing put_by_place(struct sy_work *work, bool destroys, bool *done, struct set *set) {
    const struct sy_clause *clause = work->clause;
    *done = true;
    if (clause->number_count > 0 && clause->series) {
        return put_series(work, set);
    }
    if (clause->number_count > 0) {
        return clause->ordinal == 1 || clause->ordinal == -1 ? put_ends(work, set) : put_numbers(work, set);
    }
    if (clause->side) {
        return put_side(work, set);
    }
    if (clause->blank && !clause->ordinal) {
        enum sy_standing standing = put_blank(work, set);
        return standing == SY_CLEAR ? check_count(work, set) : standing;
    }
    if (clause->duplicate) {
        return put_duplicates(work, set);
    }
    if ((clause->current || clause->relative) && work->terms.count == 0 && !clause->other) {
        return put_current(work, set);
    }
    if (destroys && ((clause->relative && work->terms.count > 0) || (clause->ordinal > 1 && clause->all))) {
        return sy_ask_back(work, "Which ones are these? Name them, or say the numbers of the tabs"); /* "next to it" */
    }
    *done = false;
    return SY_CLEAR;
}

/* Asks which tab of the set is meant: "the youtube tab in the second window", if several are there. */
static enum sy_standing ask_in_window(struct sy_work *work, const struct set *set) {
    struct sy_hits hits = {.at = calloc(work->index->tab_count + 1, sizeof *hits.at)};
    enum sy_standing standing = SY_ASK;
    for (size_t i = 0; hits.at && i < work->index->tab_count; i++) {
        if (set->in[i]) {
            hits.at[hits.count++].at = i;
        }
    }
    work->failed |= !hits.at;
    standing = hits.at ? sy_ask_which(work, SY_TABS, &hits, hits.count) : standing;
    free(hits.at);
    return standing;
}

static enum sy_standing make_set(struct sy_work *work, bool destroys, struct set *set) {
    const struct sy_clause *clause = work->clause;
    bool several = clause->tabs || clause->all || clause->other || (clause->has_but && !clause->but_shared) ||
                   clause->counted > 0 || clause->several || (destroys && is_plural(work));
    bool done;
    enum sy_standing standing = put_by_place(work, destroys, &done, set);
    if (done) {
        return standing == SY_CLEAR && clause->has_but ? leave_out(work, set) : standing;
    }
    bool in_window = clause->in_window && (clause->tabs || clause->counted); /* "the tab in window 2" means one tab */
    bool all = clause->all || clause->other || clause->ordinal || in_window ||
               (clause->has_but && !clause->but_shared);
    if (work->terms.count == 0 && all) {
        for (size_t i = 0; i < work->index->tab_count; i++) {
            put_in(set, i);
        }
    } else if (work->terms.count == 0) {
        return sy_ask_back(work, destroys ? "Which tab is to be closed?" : "Which tab do you mean?");
    } else {
        standing = put_named(work, several, set);
    }
    if (standing == SY_CLEAR && clause->in_window > 0) {
        keep_window(work, clause->in_window, set);
    }
    if (standing == SY_CLEAR && clause->in_window < 0) {
        size_t current = sy_current_tab(work);
        if (current == 0) {
            return sy_ask_back(work, "Which window do you mean? Several have tabs");
        }
        keep_window(work, work->index->scene->snapshot->tabs[current - 1].window_index, set);
    }
    if (standing == SY_CLEAR && clause->in_window && !several && !clause->ordinal && work->terms.count > 0 &&
        set->count > 1) {
        return ask_in_window(work, set);
    }
    standing = standing == SY_CLEAR ? leave_out(work, set) : standing;
    standing = standing == SY_CLEAR ? check_count(work, set) : standing;
    if (standing == SY_CLEAR && destroys && clause->ordinal && work->terms.count > 0 && ordinal_in_title(work, set)) {
        return sy_ask_back(work, "Which one is that: by its place, or by its title? Say the number of the tab");
    }
    return standing == SY_CLEAR && clause->ordinal != 0 ? keep_nth(work, set) : standing;
}

enum sy_standing sy_choose_tabs(struct sy_work *work, bool destroys, size_t **set, size_t *count, bool *sure) {
    const struct sy_snapshot *snapshot = work->index->scene->snapshot;
    struct set made = {.in = calloc(snapshot->tab_count + 1, sizeof *made.in), .sure = true};
    *count = 0;
    *set = calloc(snapshot->tab_count + 1, sizeof **set);
    if (!made.in || !*set) {
        free(made.in);
        work->failed = true;
        return SY_ASK;
    }
    enum sy_standing standing = snapshot->tab_count > 0 ? make_set(work, destroys, &made)
                                : snapshot->no_tabs.code != FM_OK
                                    ? sy_ask_back(work, "Chrome's tabs can't be seen: %s", snapshot->no_tabs.detail)
                                    : sy_ask_back(work, "No tab is open in Chrome. What do you mean?");
    for (size_t i = 0; i < snapshot->tab_count; i++) {
        if (made.in[i]) {
            (*set)[(*count)++] = i + 1;
        }
    }
    *sure = made.sure;
    free(made.in);
    if (standing == SY_CLEAR && *count == 0) {
        return sy_ask_back(work, "No tab is left of what you say. Which ones do you mean?");
    }
    return standing;
}
