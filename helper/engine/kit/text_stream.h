/*
 * Token bytes in, text out: whole UTF-8 characters, invalid bytes replaced by U+FFFD (one per maximal subpart, Unicode
 * 3.9 D93b), and no byte of a stop string. Bytes that may still become a stop string, or that begin a character, are
 * held back. A character that is incomplete at the end (for example at the token limit) is dropped.
 *
 * The match that ends first wins; of matches that end together, the longest one wins. The result does not depend on the
 * borders of the tokens. Pure; one thread at a time.
 */
#ifndef FM_ENGINE_KIT_TEXT_STREAM_H
#define FM_ENGINE_KIT_TEXT_STREAM_H

#include "base/buf.h"
#include "protocol/engine.h"

/* The most bytes that are held: the longest possible stop string, and a token. */
#define FM_TEXT_HELD_MAX (16u * 1024u * 1024u)

struct fm_stop {
    const char *text; /* UTF-8, may hold NUL */
    size_t len;       /* at least 1 */
};

enum fm_text_status {
    FM_TEXT_MORE,      /* go on */
    FM_TEXT_STOPPED,   /* a stop string is complete; no more text is passed on */
    FM_TEXT_NO_MEMORY, /* out of memory: bytes were lost */
};

/* One stop string's Knuth-Morris-Pratt matcher. */
struct fm_stop_matcher {
    struct fm_stop stop;
    size_t *fallback; /* for a prefix of i + 1 bytes: its longest border; owned */
    size_t matched;   /* bytes of the stop string that the text ends with */
};

struct fm_text_stream {
    struct fm_stop_matcher matchers[FM_STOPS_MAX];
    size_t matcher_count;
    struct fm_buf held; /* characters that are not passed on yet */
    char partial[4];    /* the beginning of a character */
    size_t partial_len;
    bool stopped;
};

/*
 * `stops` (count <= FM_STOPS_MAX) are borrowed until the free. False when out of memory; nothing is left allocated
 * then.
 */
FM_MUST_USE bool fm_text_stream_init(struct fm_text_stream *stream, const struct fm_stop *stops, size_t count);
void fm_text_stream_free(struct fm_text_stream *stream);

/* Takes `len` bytes, which may end anywhere, and appends to `out` the text that can be passed on. */
FM_MUST_USE enum fm_text_status fm_text_stream_push(struct fm_text_stream *stream, const char *bytes, size_t len,
                                                    struct fm_buf *out);

/*
 * Call it when no more bytes will come: appends the held bytes, without an incomplete character. Appends nothing after
 * a stop string.
 */
FM_MUST_USE enum fm_text_status fm_text_stream_flush(struct fm_text_stream *stream, struct fm_buf *out);

#endif
