/* What the files of the lexical part share: the clause at work, what its words are like, and choices among that. */
#ifndef SY_CHOOSE_H
#define SY_CHOOSE_H

#include "match/lexical.h"

struct sy_work {
    const struct sy_index *index;
    const struct sy_before *before;
    const struct sy_words *words;
    const struct sy_clause *clause;
    struct sy_terms terms;
    struct sy_hits apps, tabs, presets;
    struct sy_reading *out;
    bool failed; /* out of memory */
};

/* The standing, with what to say to the user. */
enum sy_standing sy_ask(struct sy_work *work, const char *fmt, ...) FM_PRINTF(2, 3);
enum sy_standing sy_unsure(struct sy_work *work, const char *fmt, ...) FM_PRINTF(2, 3);

/* "Which one?" of the first `count` hits. */
enum sy_standing sy_ask_which(struct sy_work *work, enum sy_group group, const struct sy_hits *hits, size_t count);

/* "Do you mean ...?": `found`, whose contents move. */
enum sy_standing sy_propose(struct sy_work *work, struct sy_found *found);

/* How many of the hits are equally good as the best one; 0: none is good. */
size_t sy_contenders(const struct sy_work *work, enum sy_group group, const struct sy_hits *hits);

/* The words of the clause that name something, for messages. */
const char *sy_named(const struct sy_work *work, char *text, size_t size);

/* The index of the tab that the user looks at; 0: there is none, or it is not known which. */
size_t sy_current_tab(const struct sy_work *work);

/*
 * The tabs that the clause means, ascending; the caller frees `*set`. `*sure` false: it is likely, but not certain
 * enough to close them.
 */
enum sy_standing sy_choose_tabs(struct sy_work *work, bool destroys, size_t **set, size_t *count, bool *sure);

#endif
