/* What a question becomes: a query of FTS5, and one list of two ranked ones. Pure. */
#ifndef GW_MEMORY_QUERY_H
#define GW_MEMORY_QUERY_H

#include "base/buf.h"

#include <stdint.h>

#define GW_QUERY_WORDS_MAX 32u /* of a question; more make BM25 slow and no better */
#define GW_RRF_K           60u /* Cormack, Clarke and Buettcher, SIGIR 2009 */

/* Words of a question, each once; they are parts of it. */
struct gw_words {
    struct gw_word {
        const char *at;
        size_t len;
    } items[GW_QUERY_WORDS_MAX];
    size_t count;
};

/* Finds the words; the common ones of English are left out, unless there are no others. */
void gw_words_find(const char *question, size_t len, struct gw_words *words);

/* Writes a query of FTS5 that matches whatever has any of the words. Nothing in a word is an operator. */
void gw_query_write(const struct gw_words *words, struct fm_buf *query);

/* A chunk that was found: its place in the two lists, from 1 on; 0: it is not in that one. */
struct gw_found {
    int64_t id;
    unsigned by_words;
    unsigned by_vector;
    double score; /* the sum of 1 / (GW_RRF_K + place) */
};

/*
 * Puts the ids of two lists, each the best first, together by reciprocal rank fusion. `found` has room for both;
 * returns how many there are, the best first, equal ones by their ids.
 */
size_t gw_fuse(const int64_t *by_words, size_t words, const int64_t *by_vector, size_t vectors, struct gw_found *found);

#endif
