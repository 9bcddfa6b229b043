/* Knows what sites are for, and which words have a similar meaning: "email" finds mail.google.com, "forecast" finds
 * "Weather". */
#ifndef SY_KINDS_H
#define SY_KINDS_H

#include <stdbool.h>
#include <stdint.h>

/* The rows of the tables that have a word, with one bit for each row. They are looked up once for each word of the
 * user. */
struct sy_meanings {
    uint64_t kinds; /* one bit for each kind of site that the word means */
    uint64_t same;  /* one bit for each group of words with a similar meaning */
    bool repository;
};
void sy_meanings_of(const char *word, struct sy_meanings *meanings);

/* Returns how well a page of this host and path fits the kind that the word means, up to 1; 0: the page does not fit.
 * Pure. */
double sy_kind_fits(const struct sy_meanings *meanings, const char *host, const char *path);

/* Whether the word `other` has a similar meaning. */
bool sy_means(const struct sy_meanings *meanings, const char *other);

#endif
