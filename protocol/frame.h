/*
 * Content-Length frames (Language Server Protocol, base protocol): an incremental parser that is fed bytes in any
 * split, and the two calls that wrap a body. PROTOCOL.md, "Frames", has the rules. Pure: no I/O, no locks; one thread
 * at a time.
 */
#ifndef FM_PROTOCOL_FRAME_H
#define FM_PROTOCOL_FRAME_H

#include "base/buf.h"

#include <stdint.h>

#define FM_FRAME_BODY_MAX     10000000u /* bytes of the largest body that is served */
#define FM_FRAME_DISCARD_MAX  40000000u /* bytes of the largest body that is skipped; a longer one is a broken frame */
#define FM_FRAME_HEADER_MAX   8192u     /* bytes of a header, the empty line included */
#define FM_FRAME_HEADER_LINES 32u

enum fm_frame_event {
    FM_FRAME_MORE,      /* all input consumed, no frame complete */
    FM_FRAME_BODY,      /* one body is ready */
    FM_FRAME_TOO_LARGE, /* a body between the two maxima was skipped */
    FM_FRAME_CHARSET,   /* a body in a charset other than UTF-8 was skipped */
    FM_FRAME_NO_MEMORY, /* a body was skipped because memory ran out */
    FM_FRAME_BROKEN,    /* the header is broken; the parser stays in this state */
};

struct fm_framer {
    struct fm_buf body;
    size_t body_max; /* bytes; a larger body is skipped */
    char header[FM_FRAME_HEADER_MAX];
    size_t header_len;
    size_t line_start;           /* where the current header line begins in `header` */
    unsigned header_lines;       /* complete lines of the header so far */
    uint64_t remaining;          /* body bytes still to come */
    enum fm_frame_event verdict; /* the event to report when the body has been consumed */
    const char *fault;           /* for FM_FRAME_BROKEN: what is wrong, a static string */
    bool has_length;
    bool in_body;
};

/* Prepares a parser; allocates nothing. */
void fm_framer_init(struct fm_framer *framer);
void fm_framer_free(struct fm_framer *framer);

/*
 * Serves bodies of up to `max` bytes (at most FM_FRAME_DISCARD_MAX) instead of FM_FRAME_BODY_MAX. Call it before the
 * first byte.
 */
void fm_framer_set_max(struct fm_framer *framer, size_t max);

/*
 * Consumes input up to the end of the next frame. `*data` and `*len` are advanced past the consumed bytes. Call it
 * again with the rest, until it returns FM_FRAME_MORE. On FM_FRAME_BODY, `*body` and `*body_len` name the body. It lies
 * in the input or in the parser, and is valid until the next call or until the input is freed.
 */
enum fm_frame_event fm_framer_next(struct fm_framer *framer, const char **data, size_t *len, const char **body,
                                   size_t *body_len);

/* True between two frames. At any other place, the end of the input means that a frame is incomplete. */
bool fm_framer_at_boundary(const struct fm_framer *framer);

/*
 * Writing: fm_frame_begin empties `buf` and leaves room for a header, the caller appends the body, and fm_frame_end
 * puts the header in front of it. False when the buffer has failed. `*frame` lies in `buf`, and is valid until `buf`
 * changes.
 */
void fm_frame_begin(struct fm_buf *buf);
FM_MUST_USE bool fm_frame_end(struct fm_buf *buf, const char **frame, size_t *frame_len);

#endif
