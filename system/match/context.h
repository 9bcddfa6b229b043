/*
 * What is said beside the commands: reasons ("I've read it"), small talk, and what the user took back ("I mean ...").
 * The words that are left are the user's own, in their order but for "it", which becomes what it stands for.
 */
#ifndef SY_CONTEXT_H
#define SY_CONTEXT_H

#include "match/rank.h"
#include "match/words.h"

/*
 * Makes `said` of `words`, into whose text it points. `bold`: leaves out too what is no sentence, has no verb and names
 * nothing that is there. What may restrict something that is to be closed ("I still need it") always stays, so that it
 * is asked about.
 */
void sy_context_drop(const struct sy_index *index, const struct sy_words *words, bool bold, struct sy_words *said);

#endif
