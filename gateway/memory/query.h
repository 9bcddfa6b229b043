/* Makes an FTS5 query from a question, and merges two ranked lists into one. Pure. */
#ifndef GW_MEMORY_QUERY_H
#define GW_MEMORY_QUERY_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

#define GW_QUESTION_WORDS_MAX 64u /* that are counted; the rarest GW_QUERY_WORDS_MAX of them are searched for */
#define GW_QUERY_WORDS_MAX    32u /* of a question; more make BM25 slow and no better */
#define GW_RRF_K              60u /* Cormack, Clarke and Buettcher, SIGIR 2009 */

/* Words of a folded question, each once; they point into it. */
struct gw_words {
    struct gw_word {
        const char *at;
        size_t len;
        bool begins; /* a word of the index may go on after it */
    } items[GW_QUESTION_WORDS_MAX];
    size_t count;
};

/*
 * Finds the words of a question that gw_fold has folded. Common English words are left out, unless there are no others.
 */
void gw_words_find(const char *question, size_t len, struct gw_words *words);

/* Writes an FTS5 query that matches every chunk with any of the words. Nothing in a word is an operator. */
void gw_query_write(const struct gw_words *words, struct fm_buf *query);

/* A chunk that was found, and its place in each of the two lists, from 1 on; 0: it is not in that list. */
struct gw_found {
    int64_t id;
    unsigned by_words;
    unsigned by_vector;
    double score; /* the sum of 1 / (GW_RRF_K + place) */
};

/*
 * Merges two lists of ids, each with the best first, by reciprocal rank fusion. `found` has room for both. Returns how
 * many there are. The best comes first; ids with equal scores are in the order of the ids.
 */
size_t gw_fuse(const int64_t *by_words, size_t words, const int64_t *by_vector, size_t vectors, struct gw_found *found);

#endif
