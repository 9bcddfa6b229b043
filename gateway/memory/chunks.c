/* Chunks. Where a chunk ends depends only on the `max` bytes from its beginning on. */
#include "memory/chunks.h"

#include <ctype.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void gw_hash(const void *bytes, size_t len, char hash[GW_HASH_LEN + 1]) {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int digest_len = 0;
    memset(digest, 0, sizeof digest);
    EVP_Digest(bytes, len, digest, &digest_len, EVP_sha256(), NULL);
    for (size_t i = 0; i < GW_HASH_LEN / 2; i++) {
        snprintf(hash + 2 * i, 3, "%02x", digest[i]);
    }
}

/* ---- places ---- */

static bool is_inside(char c) {
    return ((unsigned char)c & 0xc0) == 0x80; /* a continuation byte of UTF-8 */
}

/* Rates the place before `text[at]` as the end of a chunk: a higher number is better. */
static int rate_place(const char *text, size_t at) {
    char before = text[at - 1];
    if (before == '\n') {
        return at > 1 && text[at - 2] == '\n' ? 4 : 3;
    }
    if (before == ' ' || before == '\t') {
        return at > 1 && strchr(".!?;:", text[at - 2]) && text[at - 2] ? 2 : 1;
    }
    return 0;
}

/* Where the chunk that begins at `start` ends. */
static size_t find_end(const char *text, size_t len, size_t start, size_t max) {
    size_t end = start + max;
    int best = 0;
    if (len - start <= max) {
        return len;
    }
    while (is_inside(text[end])) {
        end--;
    }
    size_t found = end;
    for (size_t at = end; at > start + max - max / 4; at--) {
        int quality = rate_place(text, at);
        if (quality > best) {
            best = quality;
            found = at;
        }
    }
    return found;
}

/* Where the next chunk begins: at a word, `overlap` bytes before `end` or later. */
static size_t find_start(const char *text, size_t end, size_t overlap) {
    size_t at = end - overlap;
    while (at < end && rate_place(text, at) == 0) {
        at++;
    }
    if (at == end) { /* the text before `end` is one long word */
        at = end - overlap;
        while (is_inside(text[at])) {
            at++;
        }
    }
    return at;
}

/* ---- the list ---- */

static bool reserve(struct gw_chunks *chunks) {
    if (chunks->count < chunks->room) {
        return true;
    }
    size_t room = chunks->room ? 2 * chunks->room : 16;
    struct gw_chunk *items = realloc(chunks->items, room * sizeof *items);
    if (!items) {
        return false;
    }
    chunks->items = items;
    chunks->room = room;
    return true;
}

static bool fill_chunk(struct gw_chunk *chunk, const char *text, size_t len) {
    *chunk = (struct gw_chunk){.len = len, .text = malloc(len + 1)};
    if (!chunk->text) {
        return false;
    }
    memcpy(chunk->text, text, len);
    gw_hash(text, len, chunk->hash);
    return true;
}

/* Appends the text without the blanks around it; a text of blanks only is not appended. */
static bool append_chunk(struct gw_chunks *chunks, const char *text, size_t len) {
    while (len && isspace((unsigned char)text[0])) {
        text++;
        len--;
    }
    while (len && isspace((unsigned char)text[len - 1])) {
        len--;
    }
    if (!len) {
        return true;
    }
    if (!reserve(chunks) || !fill_chunk(&chunks->items[chunks->count], text, len)) {
        return false;
    }
    chunks->count++;
    return true;
}

bool gw_chunks_cut(struct gw_chunks *chunks, const char *text, size_t len, size_t max, size_t overlap) {
    size_t start = 0;
    overlap = overlap < max / 2 ? overlap : max / 2;
    while (start < len) {
        size_t end = find_end(text, len, start, max);
        if (!append_chunk(chunks, text + start, end - start)) {
            return false;
        }
        if (end == len) {
            break;
        }
        start = overlap ? find_start(text, end, overlap) : end;
    }
    return true;
}

bool gw_chunks_halve(struct gw_chunks *chunks, size_t index) {
    struct gw_chunk whole = chunks->items[index];
    struct gw_chunk halves[2];
    if (whole.len < 2u * GW_CHUNK_LEAST || !reserve(chunks)) {
        return false;
    }
    size_t middle = find_end(whole.text, whole.len, 0, whole.len / 2 + whole.len / 8);
    if (!fill_chunk(&halves[0], whole.text, middle)) {
        return false;
    }
    if (!fill_chunk(&halves[1], whole.text + middle, whole.len - middle)) {
        free(halves[0].text);
        return false;
    }
    memmove(chunks->items + index + 2, chunks->items + index + 1, (chunks->count - index - 1) * sizeof *chunks->items);
    memcpy(chunks->items + index, halves, sizeof halves);
    chunks->count++;
    free(whole.text);
    free(whole.vector);
    return true;
}

bool gw_chunks_set_vector(struct gw_chunks *chunks, size_t index, const float *vector, size_t dimensions) {
    float *copy = malloc(dimensions * sizeof *copy);
    if (!copy || (chunks->dimensions && chunks->dimensions != dimensions)) {
        free(copy);
        return false;
    }
    memcpy(copy, vector, dimensions * sizeof *copy);
    free(chunks->items[index].vector);
    chunks->items[index].vector = copy;
    chunks->dimensions = dimensions;
    return true;
}

void gw_chunks_free(struct gw_chunks *chunks) {
    for (size_t i = 0; i < chunks->count; i++) {
        free(chunks->items[i].text);
        free(chunks->items[i].vector);
    }
    free(chunks->items);
    *chunks = (struct gw_chunks){.count = 0};
}
