/*
 * Texts as a search compares them: as a person does, who does not see the difference of upper and lower case, of wide
 * and narrow letters, and of composed and decomposed ones, and who leaves accents out. Pure; any thread.
 */
#ifndef GW_TEXT_FOLD_H
#define GW_TEXT_FOLD_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Appends the folded text: compatibility forms are replaced, and case is folded (Unicode 3.13, toNFKC_Casefold); the
 * accents of Latin, Greek and Cyrillic letters (U+0300 to U+036F) are left out. A text that is not UTF-8 is appended as
 * it is. False: `folded` is full, or memory ran out.
 */
FM_MUST_USE bool gw_fold(const char *text, size_t len, struct fm_buf *folded);

/* The place in `text` where the byte `at` of its folded form comes from, at most `len`: the beginning of a character.
 */
size_t gw_fold_place(const char *text, size_t len, size_t at);

/*
 * Appends the folded text for an index of words. Languages that write without spaces have no words there, so a run of
 * their letters becomes overlapping pairs and its last letter: "abcd" is "ab bc cd d". False as gw_fold.
 */
FM_MUST_USE bool gw_fold_for_index(const char *text, size_t len, struct fm_buf *words);

enum gw_letter {
    GW_LETTER_NONE,    /* white space, punctuation, signs */
    GW_LETTER_WORD,    /* a letter, mark or digit of a word */
    GW_LETTER_UNSPACED /* a letter of a language without spaces, or with particles directly after a word (Korean) */
};

/* The kind of the character at `text`, and how many bytes it has, at least 1. `len` is at least 1. */
enum gw_letter gw_letter_at(const char *text, size_t len, size_t *bytes);

#endif
