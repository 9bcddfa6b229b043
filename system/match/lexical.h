/*
 * Understands the user's words without a model: a verb of the table, and one thing whose name fits clearly better than
 * all others. If the command is not clear, the reading has candidates: a model picks one of them, or the user is asked.
 * Pure.
 */
#ifndef SY_LEXICAL_H
#define SY_LEXICAL_H

#include "commands/plan.h"
#include "match/clause.h"
#include "match/found.h"
#include "match/rank.h"

#define SY_CHOICES_MAX 512
#define SY_REASON_SIZE 640

enum sy_standing {
    SY_CLEAR,  /* `found` is what the user wants */
    SY_UNSURE, /* a model may see more in the words; without one the user is asked */
    SY_ASK,    /* only the user knows */
};

struct sy_reading {
    enum sy_standing standing;
    struct sy_found found[SY_STEPS_MAX];
    size_t count;
    char reason[SY_REASON_SIZE]; /* the question for the user, unless the reading is clear */
    bool proposes;               /* with SY_ASK: `found` is what the user may have meant */

    /* The members from here on describe the clause that is not clear, or else the last clause. */
    enum sy_verb verb;
    struct sy_where where;
    size_t open; /* where its command belongs in `found` */
    enum sy_group group;
    size_t choices[SY_CHOICES_MAX]; /* candidates, as indices in `group`: "which one?" */
    size_t choice_count;
    struct sy_hits apps, tabs, presets; /* the things that its words fit; owned */
    /* the utterance; each word that names something is replaced by a meaningless word */
    char nonsense[SY_TEXT_MAX + 1];
};

/* The earlier words and how they were understood, for "close it" and "the github one too". */
struct sy_before {
    enum sy_verb verb; /* the verb of the earlier words */
    bool asked;        /* the earlier answer was a question */
    struct sy_where where;
    struct sy_found last; /* the earlier answer's last command; type NULL: there was none, or it is void now */
};

/* Reads the words. `before` NULL: nothing was said before. Free the reading by sy_reading_free, on failure too.
 * FM_INTERNAL: out of memory. */
FM_MUST_USE enum fm_code sy_lexical(const struct sy_index *index, const struct sy_words *words,
                                    const struct sy_before *before, struct sy_reading *reading, struct fm_error *error);
void sy_reading_free(struct sy_reading *reading);

/* Makes the earlier reading's command for the things at `choices` of its group. Only for tabs to be closed there may be
 * several. Fails like sy_lexical. */
FM_MUST_USE enum fm_code sy_lexical_choose(const struct sy_index *index, const struct sy_words *words,
                                           const struct sy_reading *earlier, const size_t *choices, size_t count,
                                           struct sy_reading *reading, struct fm_error *error);

/* Ranks the things that all the words fit, for a model that decides alone. The reading is SY_UNSURE. */
FM_MUST_USE enum fm_code sy_lexical_rank(const struct sy_index *index, const struct sy_words *words,
                                         struct sy_reading *reading, struct fm_error *error);

#endif
