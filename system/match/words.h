/*
 * Words of users, titles and names: how they are read, and how alike two words are. Words are in lower case, and have
 * letters and digits; anything beyond ASCII counts as a letter. Pure.
 */
#ifndef SY_WORDS_H
#define SY_WORDS_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

#define SY_WORD_MAX  32   /* bytes, its NUL included; a longer word is cut */
#define SY_WORDS_MAX 64   /* words of one utterance */
#define SY_TEXT_MAX  1000 /* bytes of one utterance */

struct sy_word {
    char text[SY_WORD_MAX];
    const char *raw; /* the word as the user wrote it, in `sy_words.text`; without quotes and following punctuation */
    size_t raw_len;
    bool address; /* the word looks like a URL or a host */
    bool breaks;  /* a comma, semicolon or the end of a sentence follows */
};

struct sy_words {
    char text[SY_TEXT_MAX + 1]; /* what the user said, without control characters */
    struct sy_word at[SY_WORDS_MAX];
    size_t count;
};

/* Reads an utterance. FM_INVALID_REQUEST (empty_string; invalid_words: not UTF-8, or too long), param "words". */
FM_MUST_USE enum fm_code sy_words_read(const char *text, struct sy_words *words, struct fm_error *error);

/* Reads the words of a title, a name or a domain, `max` at most; returns how many. */
size_t sy_words_split(const char *text, char (*words)[SY_WORD_MAX], size_t max);

/* Joins the words of `text` without gaps: "Visual Studio Code" becomes "visualstudiocode". Cuts at `size` - 1 bytes. */
void sy_words_join(const char *text, char *joined, size_t size);

/*
 * Copies `text` without control characters (C0, C1, and those that change the direction of text or have no width): a
 * run of them becomes one space. At most `max` characters; "..." shows that the text was cut. Bytes that are not UTF-8
 * are left out. `size` is the size of `out`, and must be at least 4 * max + 4.
 */
void sy_plain(const char *text, size_t max, char *out, size_t size);

/* Whether the word says nothing about which thing is meant, such as "the". */
bool sy_is_stop(const char *word);

/* Whether `word` is in `list`, which has words separated by spaces. */
bool sy_is_one_of(const char *word, const char *list);

/* Returns the number, 0 to 9999, written in digits or as a word such as "three"; -1: the word is no number. */
int sy_number(const char *word);

/* Returns 1 for "first" or "1st" and so on; -1 for "last"; 0: the word is no ordinal number. */
int sy_ordinal(const char *word);

/*
 * Returns how alike two words are, from 0 to 1 (equal). Compares a plural's s, single letters (Damerau's distance,
 * restricted) and trigrams. Below 4 letters only equal words are alike.
 */
double sy_alike(const char *a, const char *b);

/* Returns how many single letters are different or swapped; 0 for equal words. */
size_t sy_edits(const char *a, const char *b);

#endif
