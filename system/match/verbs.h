/* The words that users have for what fm-system can do. Pure. */
#ifndef SY_VERBS_H
#define SY_VERBS_H

#include "match/words.h"

enum sy_verb {
    SY_NO_VERB,
    SY_CLOSE,  /* the one that destroys: close_app, close_tab */
    SY_SWITCH, /* to what is there: focus_app, switch_tab */
    SY_VISIT,  /* as SY_SWITCH, and a site that is not open is opened */
    SY_OPEN,   /* open_url, focus_app */
    SY_PLACE,  /* place_app */
    SY_SWAP,   /* place_app of two, each where the other one is */
    SY_WANT,   /* "give me": any of these, what is there first */
    SY_PRESET, /* activate_preset */
    SY_LIST,   /* list_tabs, list_apps */
    SY_QUERY,
    SY_CANNOT, /* something that fm-system has no command for */
};

/* The verb that the words begin with, and how many words it has; SY_NO_VERB, 0: they begin with none. */
enum sy_verb sy_verb_at(const struct sy_word *words, size_t count, size_t *len);

/* The verb of the words from `begin` to `end`: at their beginning, or after or around what it is about. Both move past
 * it. */
enum sy_verb sy_verb_of(const struct sy_word *words, size_t *begin, size_t *end);

/* How many words at the beginning only make it polite, or join it to what was said before: "can you please". */
size_t sy_polite(const struct sy_word *words, size_t count);

/* The same at the end: "for a second, please". One word is always left. */
size_t sy_polite_end(const struct sy_word *words, size_t count);

/* The words begin as a question does. */
bool sy_is_question(const struct sy_word *words, size_t count);

/* How many words begin what is to stay when others are closed: "but keep", "not"; 0: they say no such thing. Those that
 * leave things out of any list ("except") are none of these. */
size_t sy_keeps(const struct sy_word *words, size_t count);

/* What users do themselves with what is in front of them: "play", "write". */
bool sy_is_activity(const char *verb);

/* They say that something is not to be done. What only stays of what is closed counts not: "close all but not gmail".
 */
bool sy_is_negated(const struct sy_word *words, size_t count);

/* Whether a clause of the utterance has a verb that closes things, as its first or last word, and none is negated.
 * Without it nothing is closed, whatever a model answers. */
bool sy_asks_to_close(const struct sy_words *words);

#endif
