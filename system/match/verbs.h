/* The verbs by which users say what to do. Pure. */
#ifndef SY_VERBS_H
#define SY_VERBS_H

#include "match/words.h"

enum sy_verb {
    SY_NO_VERB,
    SY_CLOSE,  /* close_app, close_tab: the only verb that closes things */
    SY_SWITCH, /* focus_app, switch_tab: only for a thing that is open */
    SY_VISIT,  /* like SY_SWITCH; a site that is not open is opened */
    SY_OPEN,   /* open_url, focus_app */
    SY_PLACE,  /* place_app */
    SY_SWAP,   /* place_app for two applications, which change places */
    SY_WANT,   /* "give me": like SY_SWITCH, SY_VISIT or SY_OPEN; open things come first */
    SY_PRESET, /* activate_preset */
    SY_LIST,   /* list_tabs, list_apps */
    SY_QUERY,
    SY_CANNOT, /* something that fm-system has no command for */
};

/* Returns the verb at the beginning of the words, and sets `*len` to its number of words; SY_NO_VERB and 0: there is
 * none. */
enum sy_verb sy_verb_at(const struct sy_word *words, size_t count, size_t *len);

/* Returns the verb of the words from `begin` to `end`: at the beginning, or after or around the name. Moves `*begin`
 * and `*end` so that the verb is outside. */
enum sy_verb sy_verb_of(const struct sy_word *words, size_t *begin, size_t *end);

/* Returns how many words at the beginning are only polite ("can you please"), or join the clause to the previous
 * one. */
size_t sy_polite(const struct sy_word *words, size_t count);

/* Returns how many words at the end are only polite: "for a second, please". At least one word always remains. */
size_t sy_polite_end(const struct sy_word *words, size_t count);

/* Whether the words begin like a question. */
bool sy_is_question(const struct sy_word *words, size_t count);

/* Returns how many words say that something stays open when other things are closed: "but keep", "not"; 0: none do.
 * Words for exceptions from any list ("except") do not count here. */
size_t sy_keeps(const struct sy_word *words, size_t count);

/* Whether the verb is something that users do themselves with a thing in front of them: "play", "write". */
bool sy_is_activity(const char *verb);

/* Whether the words say that something is not to be done. Exceptions do not count: "close all but not gmail". */
bool sy_is_negated(const struct sy_word *words, size_t count);

/* Whether a clause of the utterance has a verb that closes, and nothing is negated. Otherwise nothing is closed,
 * whatever a model answers. */
bool sy_asks_to_close(const struct sy_words *words);

#endif
