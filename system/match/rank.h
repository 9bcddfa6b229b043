/*
 * Finds the applications, tabs and presets whose names fit the user's words, each with a score: by exact names,
 * aliases, prefixes and similar words (words.h), and for tabs by BM25 on the words of title and domain. This file only
 * scores; lexical.c decides. Pure.
 */
#ifndef SY_RANK_H
#define SY_RANK_H

#include "desktop/snapshot.h"
#include "match/kinds.h"
#include "match/words.h"

/* What the matcher knows of the present moment. The caller owns the scene, which must outlive everything that is made
 * from it. */
struct sy_scene {
    const struct sy_snapshot *snapshot;
    const char *const *presets; /* the names of the presets */
    size_t preset_count;
};

struct sy_entry { /* an application, running or installed, or a preset */
    const char *name;
    const struct sy_app *app;
    const struct sy_running *runs; /* the application's windows; NULL: it does not run, or is a preset */
    bool running;
    bool active;
};

struct sy_doc; /* the words of a tab */

struct sy_index {
    const struct sy_scene *scene;
    struct sy_entry *apps; /* applications that run come first */
    size_t app_count;
    struct sy_entry *presets;
    size_t preset_count;
    struct sy_doc *tabs; /* as snapshot->tabs */
    size_t tab_count;
    double mean_len; /* words of a tab */
};

struct sy_term {
    char text[2 * SY_WORD_MAX];
    const char *place;         /* the host, perhaps with a path, that the word stands for; NULL: the word is no site */
    bool weak;                 /* the word says which kind of page, not which page: "video" */
    bool known;                /* a name or title has exactly this word: it is no typo */
    char typo_of[SY_WORD_MAX]; /* the only word of all names and titles of which it can be a typo; "": there is none */
    int number;                /* "nine" is 9; -1: the word is no number */
    struct sy_meanings meanings;
};

struct sy_terms {
    struct sy_term at[SY_WORDS_MAX];
    size_t count;
    char joined[SY_WORDS_MAX * 8]; /* all terms without gaps; cut */
    char strong[SY_WORDS_MAX * 8]; /* as `joined`, without words such as "program" */
};

struct sy_hit {
    size_t at;    /* index in apps or presets; for tabs: the tab's index - 1 */
    double score; /* up to about 1.1; from 1 on: the name has all words unchanged */
    double bm25;  /* for tabs */
    bool certain; /* whole words, or a certain typo, of the name fit: certain enough to close the thing */
    bool domain;  /* the words are the words of the tab's domain */
    bool part;    /* for names: only some words of the name were said */
    bool stray;   /* a word is the name of a site, and the tab is at another site */
};

struct sy_hits {
    struct sy_hit *at; /* best first; none has the score 0 */
    size_t count;
};

enum sy_group { SY_APPS, SY_TABS, SY_PRESETS };

/* False when out of memory; then the caller has nothing to free. */
FM_MUST_USE bool sy_index_make(const struct sy_scene *scene, struct sy_index *index);
void sy_index_free(struct sy_index *index);

/* Makes the terms of `count` words, without words such as "the". The words "hacker news" are one term if they name a
 * site. */
void sy_terms_make(const struct sy_index *index, const struct sy_word *const *words, size_t count,
                   struct sy_terms *terms);

/* Ranks the things of a group. False when out of memory. The caller frees hits->at. */
FM_MUST_USE bool sy_rank(const struct sy_index *index, enum sy_group group, const struct sy_terms *terms,
                         struct sy_hits *hits);

/* Whether a window of the application has all the words in its title; false for the browser that has the tabs. */
bool sy_window_has(const struct sy_snapshot *snapshot, const struct sy_entry *entry, const struct sy_terms *terms);

#endif
