/*
 * What the user said, cut into clauses: a verb, what kind of thing, which ones, where to, and the words that name it.
 * Nothing of the desktop is looked at. Pure.
 */
#ifndef SY_CLAUSE_H
#define SY_CLAUSE_H

#include "match/verbs.h"
#include "match/where.h"
#include "match/words.h"

#define SY_CLAUSES_MAX 20
#define SY_NUMBERS_MAX 512 /* of one clause, those of a range counted */

struct sy_clause {
    enum sy_verb verb;
    bool own_verb; /* else it is that of the clause before: "chrome AND SLACK" */
    bool behind;   /* its verb stands after it: "slack can go" */
    bool negated;

    const struct sy_word *names[SY_WORDS_MAX]; /* the words that name the thing */
    size_t name_count;
    const struct sy_word
        *but[2 * SY_WORDS_MAX]; /* those that name what is left out, NULL between two of it: "except a, b" */
    size_t but_count;
    bool has_but;                    /* something is to be left out */
    bool but_shared;                 /* it was said of the last thing of a list */
    const struct sy_word *address;   /* a URL or host among them; NULL: there is none */
    const struct sy_word *all_words; /* all of the clause, verb included, as the user said them */
    size_t word_count;

    bool tab, tabs; /* it is about one tab, or several */
    bool app, apps; /* an application */
    bool window;    /* of an application, or of Chrome */
    bool preset;
    bool fresh; /* "in a new tab", "in chrome" */
    bool site;  /* "website" */
    bool all, both, other, current, duplicate;
    bool running;
    bool refers;  /* "it", "them" */
    bool pointed; /* "this", "that" */
    bool several; /* "the reddit ones" */
    bool blank;   /* pages with nothing in them: "the empty tabs" */
    int numbers[SY_NUMBERS_MAX];
    size_t number_count;
    int counted;      /* how many there are: "the two rust tabs"; 0: not told */
    int named_number; /* the one that is the last word of the names; 0: none is */
    bool series;      /* the numbers belong to the names: "lessons 1 to 3" */
    bool onwards;     /* from the one number on: "lessons 3 and up" */
    bool anew;        /* "a fresh chatgpt": of a site, a new tab */
    int side;         /* those to the left (-1) or right (1) of the one that is named, or of the current one; 0: any */
    bool vague;       /* numbers that count something else than tabs ("lectures 10 to 20"), or nothing but "old" */
    int ordinal;      /* 1 the first one, -1 the last one; 0: not told */
    int relative;     /* 1 the next one, -1 the one before */
    int in_window;    /* number of a window; -1 the current one; 0: any */
    struct sy_where where;
};

struct sy_clauses {
    struct sy_clause at[SY_CLAUSES_MAX];
    size_t count;
    bool question; /* all of it is one */
    bool too_many;
};

/*
 * Cuts the utterance. `split`: also at "and" and commas before words that are no verb ("slack and discord"). What is
 * made points into `words`.
 */
void sy_clauses_read(const struct sy_words *words, bool split, struct sy_clauses *clauses);

#endif
