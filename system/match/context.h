/*
 * Removes the words that belong to no command: reasons ("I've read it"), small talk, and corrected words ("I mean
 * ..."). The remaining words are the user's own. Some phrases get a simpler form, and "it" becomes the thing that it
 * stands for.
 */
#ifndef SY_CONTEXT_H
#define SY_CONTEXT_H

#include "match/rank.h"
#include "match/words.h"

/*
 * Makes `said` from `words`; the words of `said` point into its text. With `bold`, also removes parts that are no
 * sentence, have no verb, and name nothing that exists. A part that may restrict what is closed ("I still need it")
 * always stays, so that the user is asked about it.
 */
void sy_context_drop(const struct sy_index *index, const struct sy_words *words, bool bold, struct sy_words *said);

#endif
