/*
 * Cuts what the user said into clauses. A clause has a verb, the kind of thing, which things are meant, a place, and
 * the words that name the thing. The desktop is not looked at. Pure.
 */
#ifndef SY_CLAUSE_H
#define SY_CLAUSE_H

#include "match/verbs.h"
#include "match/where.h"
#include "match/words.h"

#define SY_CLAUSES_MAX 20
#define SY_NUMBERS_MAX 512 /* numbers of one clause, with each number of a range */

struct sy_clause {
    enum sy_verb verb;
    bool own_verb; /* false: it has the verb of the previous clause: "chrome AND SLACK" */
    bool behind;   /* the verb stands at the end: "slack can go" */
    bool negated;

    const struct sy_word *names[SY_WORDS_MAX]; /* the words that name the thing */
    size_t name_count;
    const struct sy_word
        *but[2 * SY_WORDS_MAX]; /* words for the exceptions, with a NULL between two of them: "except a, b" */
    size_t but_count;
    bool has_but;                    /* there are exceptions */
    bool but_shared;                 /* the exceptions come from a later clause of the same list */
    const struct sy_word *address;   /* a URL or host among the names; NULL: there is none */
    const struct sy_word *all_words; /* all words of the clause, with the verb, as the user said them */
    size_t word_count;

    bool tab, tabs; /* the clause is about one tab, or several */
    bool app, apps; /* the clause is about an application, or several */
    bool window;    /* the clause is about a window, of an application or of Chrome */
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
    int counted;      /* how many things there are: "the two rust tabs"; 0: not said */
    int named_number; /* the number that is the last word of the names; 0: that word is no number */
    bool series;      /* the numbers belong to the names: "lessons 1 to 3" */
    bool onwards;     /* this number and all higher ones: "lessons 3 and up" */
    bool anew;        /* "a fresh chatgpt": a new tab of the site */
    int side;         /* tabs to the left (-1) or right (1) of the named or the current one; 0: any */
    bool vague;       /* it can't be known which ones are meant: "some tabs", "the old ones" */
    int ordinal;      /* 1: the first one, -1: the last one; 0: not said */
    int relative;     /* 1: the next one, -1: the previous one */
    int in_window;    /* number of a window; -1: the current one; 0: any */
    struct sy_where where;
};

struct sy_clauses {
    struct sy_clause at[SY_CLAUSES_MAX];
    size_t count;
    bool question; /* the whole utterance is a question */
    bool too_many;
};

/*
 * Cuts the utterance into clauses. With `split`, a clause also ends at "and" or a comma that no verb follows ("slack
 * and discord"). The clauses point into `words`.
 */
void sy_clauses_read(const struct sy_words *words, bool split, struct sy_clauses *clauses);

#endif
