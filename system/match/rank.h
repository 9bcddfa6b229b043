/*
 * What of a moment is called as the user says: applications, tabs and presets, each with a score. Exact names, aliases,
 * prefixes, likeness (words.h), and for tabs BM25 on the words of title and domain. Nothing here decides; lexical.c
 * does. Pure.
 */
#ifndef SY_RANK_H
#define SY_RANK_H

#include "desktop/snapshot.h"
#include "match/kinds.h"
#include "match/words.h"

/* What the matcher sees of a moment. Borrowed, and must outlive all that is made of it. */
struct sy_scene {
    const struct sy_snapshot *snapshot;
    const char *const *presets; /* their names */
    size_t preset_count;
};

struct sy_entry { /* an application, running or installed, or a preset */
    const char *name;
    const struct sy_app *app;
    const struct sy_running *runs; /* its windows; NULL: it does not run, or is a preset */
    bool running;
    bool active;
};

struct sy_doc; /* the words of a tab */

struct sy_index {
    const struct sy_scene *scene;
    struct sy_entry *apps; /* those that run first */
    size_t app_count;
    struct sy_entry *presets;
    size_t preset_count;
    struct sy_doc *tabs; /* as snapshot->tabs */
    size_t tab_count;
    double mean_len; /* words of a tab */
};

struct sy_term {
    char text[2 * SY_WORD_MAX];
    const char *place;         /* the host, perhaps with a path, that the word stands for; NULL: it is no site's */
    bool weak;                 /* it says what kind of page, not which one: "video" */
    bool known;                /* something is called exactly so: it is no typo */
    char typo_of[SY_WORD_MAX]; /* the one word of all names and titles that it can be a typo of; "": there is none */
    int number;                /* "nine" is 9; -1: it is not one */
    struct sy_meanings meanings;
};

struct sy_terms {
    struct sy_term at[SY_WORDS_MAX];
    size_t count;
    char joined[SY_WORDS_MAX * 8]; /* all of them without gaps; cut */
    char strong[SY_WORDS_MAX * 8]; /* those that do not just say "program" */
};

struct sy_hit {
    size_t at;    /* of apps or presets; of tabs: index - 1 */
    double score; /* to about 1.1; 1 and more: all words are in it as they are */
    double bm25;  /* of tabs */
    bool certain; /* by whole words, or by one that can only be a typo of its name: good enough to close it */
    bool domain;  /* the words are those of the tab's domain */
    bool part;    /* of names: only some of its words were said */
    bool stray;   /* a word is the name of a site, and the tab is elsewhere */
};

struct sy_hits {
    struct sy_hit *at; /* best first; none has the score 0 */
    size_t count;
};

enum sy_group { SY_APPS, SY_TABS, SY_PRESETS };

/* False when out of memory; nothing is to be freed then. */
FM_MUST_USE bool sy_index_make(const struct sy_scene *scene, struct sy_index *index);
void sy_index_free(struct sy_index *index);

/* What `count` words ask for: without those that say nothing, and with "hacker news" as one where a site is called so.
 */
void sy_terms_make(const struct sy_index *index, const struct sy_word *const *words, size_t count,
                   struct sy_terms *terms);

/* False when out of memory. The caller frees hits->at. */
FM_MUST_USE bool sy_rank(const struct sy_index *index, enum sy_group group, const struct sy_terms *terms,
                         struct sy_hits *hits);

/* Whether a window of the application, which is not the browser of the tabs, has all the words in its title. */
bool sy_window_has(const struct sy_snapshot *snapshot, const struct sy_entry *entry, const struct sy_terms *terms);

#endif
