/* Shared by the files of the lexical part: the present clause, the things that its words fit, and choices. */
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
    const struct sy_entry *swap; /* the first of two applications that are to change places */
    bool failed;                 /* out of memory */
};

/* Set the text for the user, and return SY_ASK or SY_UNSURE. */
enum sy_standing sy_ask_back(struct sy_work *work, const char *fmt, ...) FM_PRINTF(2, 3);
enum sy_standing sy_unsure(struct sy_work *work, const char *fmt, ...) FM_PRINTF(2, 3);

#define SY_GUESS 0.42 /* a thing with this score may be shown or moved, if no other has a similar score */

/* Asks "Which one?" about the first `count` hits. */
enum sy_standing sy_ask_which(struct sy_work *work, enum sy_group group, const struct sy_hits *hits, size_t count);

/* Asks "Do you mean ...?" about `found`, and takes its contents. */
enum sy_standing sy_propose(struct sy_work *work, struct sy_found *found);

/* How many hits are about as good as the best one; 0: none is good enough. */
size_t sy_contenders(const struct sy_work *work, enum sy_group group, const struct sy_hits *hits);

/* Writes the words of the clause that name something, for messages. Returns `text`. */
const char *sy_named(const struct sy_work *work, char *text, size_t size);

/* The index of the tab that the user looks at; 0: there is none, or it is not known which. */
size_t sy_current_tab(const struct sy_work *work);

/*
 * Finds the tabs that the clause means, in ascending order; the caller frees `*set`. `*sure` false: the tabs are
 * likely, but not certain enough to close them.
 */
enum sy_standing sy_choose_tabs(struct sy_work *work, bool destroys, size_t **set, size_t *count, bool *sure);

/* ---- take.c ---- */

/* Adds the command to the reading, which takes its contents. A command that is already there is not added again. */
enum sy_standing sy_add(struct sy_work *work, struct sy_found *found);
enum sy_standing sy_add_app(struct sy_work *work, const char *type, const struct sy_entry *app);
enum sy_standing sy_add_tabs(struct sy_work *work, const char *type, const size_t *tabs, size_t count);
enum sy_standing sy_add_text(struct sy_work *work, const char *type, const char *text, size_t len);

/* Adds open_url. If the text is not an address that may be opened, asks the user instead. */
enum sy_standing sy_add_url(struct sy_work *work, const char *text, size_t len);

/* Merges close_tab commands that follow each other into one. */
void sy_merge_closes(struct sy_work *work);

/* The score of the best hit; 0: there is none. */
double sy_top_of(const struct sy_hits *hits);

/*
 * The only application that certainly has this name; NULL: there is none, or several. With `runs` the application must
 * run.
 */
const struct sy_entry *sy_sure_app(const struct sy_work *work, bool runs);

/* The application that the clause is about. NULL: it is not clear which one; `*standing` and the reason are set. */
const struct sy_entry *sy_choose_app(struct sy_work *work, bool destroys, enum sy_standing *standing);

/* ---- resolve.c ---- */

/* Adds the clause's command, or sets a question about what is not clear. */
enum sy_standing sy_resolve(struct sy_work *work);

/* Like sy_resolve, for an utterance that is a question: adds a list command or query. */
enum sy_standing sy_answer_question(struct sy_work *work);

/* Adds place_app for the application of this name. */
enum sy_standing sy_place(struct sy_work *work, const char *name, const struct sy_where *where);

#endif
