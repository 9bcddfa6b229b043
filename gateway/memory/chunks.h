/*
 * Texts are cut into chunks, and each chunk gets a vector. A chunk ends at the end of a paragraph, line, sentence or
 * word, if there is such an end in its last quarter. The next chunk begins a little before that end, so that a
 * statement at the border is complete in one of the two. Text that is appended changes only the last chunk and adds new
 * ones. Pure.
 */
#ifndef GW_MEMORY_CHUNKS_H
#define GW_MEMORY_CHUNKS_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>

#define GW_TOKEN_BYTES    4u /* average for English text and today's vocabularies */
#define GW_CHUNK_TOKENS   500u
#define GW_OVERLAP_TOKENS 50u
#define GW_CHUNK_BYTES    (GW_CHUNK_TOKENS * GW_TOKEN_BYTES)
#define GW_OVERLAP_BYTES  (GW_OVERLAP_TOKENS * GW_TOKEN_BYTES)
#define GW_CHUNK_LEAST    64u /* bytes; a shorter chunk is not halved */
#define GW_HASH_LEN       64u /* hexadecimal digits of a SHA-256 */

struct gw_chunk {
    char *text; /* UTF-8, not NUL-terminated */
    size_t len;
    char hash[GW_HASH_LEN + 1]; /* the hash of the text */
    float *vector;              /* NULL: the chunk has no vector (yet) */
};

/* A list of chunks, which owns its texts and vectors. All zero: an empty list. */
struct gw_chunks {
    struct gw_chunk *items;
    size_t count;
    size_t room;
    size_t dimensions; /* numbers of each vector; 0: no chunk has a vector */
};

/* The SHA-256 of some bytes, as hexadecimal digits. */
void gw_hash(const void *bytes, size_t len, char hash[GW_HASH_LEN + 1]);

/* Appends the chunks of a text of valid UTF-8, of at most `max` bytes each (16 at least). False: out of memory. */
FM_MUST_USE bool gw_chunks_cut(struct gw_chunks *chunks, const char *text, size_t len, size_t max, size_t overlap);

/*
 * Replaces a chunk by its two halves. False: out of memory, or it is too short to be halved; nothing has changed then.
 */
FM_MUST_USE bool gw_chunks_halve(struct gw_chunks *chunks, size_t index);

/* Gives the chunk a copy of a vector. False: out of memory, or the vectors of other chunks have another length. */
FM_MUST_USE bool gw_chunks_set_vector(struct gw_chunks *chunks, size_t index, const float *vector, size_t dimensions);

/* Frees texts and vectors; the list is empty again. */
void gw_chunks_free(struct gw_chunks *chunks);

#endif
