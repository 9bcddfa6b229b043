/* What a question becomes: a query of FTS5, and one list of two ranked ones. Pure. */
#ifndef GW_MEMORY_QUERY_H
#define GW_MEMORY_QUERY_H

#include "base/buf.h"

#include <stdint.h>

#define GW_QUERY_WORDS_MAX 32u /* of a question; more make BM25 slow and no better */
#define GW_RRF_K           60u /* Cormack, Clarke and Buettcher, SIGIR 2009 */

/*
 * Writes a query of FTS5 that matches whatever has any of the question's words, the common ones of English left out
 * unless there are no others. Nothing in a question is an operator. Empty: it has no words.
 */
void gw_query_write(const char *question, size_t len, struct fm_buf *query);

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
