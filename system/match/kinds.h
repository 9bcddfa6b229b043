/* What sites are for, and words that mean much the same: "email" is found at mail.google.com, "forecast" in "Weather".
 */
#ifndef SY_KINDS_H
#define SY_KINDS_H

#include <stdbool.h>
#include <stdint.h>

/* Which rows of a table a word is in, a bit each. Looked up once for a word of the user. */
struct sy_meanings {
    uint64_t kinds; /* of sites */
    uint64_t same;  /* of words */
    bool repository;
};
void sy_meanings_of(const char *word, struct sy_meanings *meanings);

/* How well a page of this host and path is what the word says, up to 1; 0: it is not. Pure. */
double sy_kind_fits(const struct sy_meanings *meanings, const char *host, const char *path);

/* The other word means much the same. */
bool sy_means(const struct sy_meanings *meanings, const char *other);

#endif
