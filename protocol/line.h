/*
 * Newline-delimited text: bytes, in pieces of any size, become lines. SESSIONS.md, "Lines", has the rules. Pure: no
 * I/O; one thread at a time.
 */
#ifndef FM_PROTOCOL_LINE_H
#define FM_PROTOCOL_LINE_H

#include "base/buf.h"

#define FM_LINE_MAX  10000000u /* bytes of a line that is served, without its newline */
#define FM_LINE_FEED 65536u    /* bytes that fm_lines_feed takes at most */

enum fm_line_event {
    FM_LINE_NONE,     /* no whole line has come yet */
    FM_LINE_READY,    /* a whole line is there */
    FM_LINE_TOO_LONG, /* a line is longer than FM_LINE_MAX: it is skipped up to its newline */
};

struct fm_lines {
    struct fm_buf buf; /* bytes that have come and are not taken yet */
    size_t at;         /* where the next line begins in `buf` */
    size_t looked;     /* bytes from `at` on that are known to have no newline */
    bool skipping;     /* a line was too long, and its rest has not come yet */
    bool ended;        /* the input has ended */
};

/* Allocates nothing. */
void fm_lines_init(struct fm_lines *lines);
void fm_lines_free(struct fm_lines *lines);

/* False: many bytes wait to be taken, so the caller should not read more now. */
bool fm_lines_has_room(const struct fm_lines *lines);

/* Takes `len` bytes (at most FM_LINE_FEED), while there is room. False when out of memory. */
FM_MUST_USE bool fm_lines_feed(struct fm_lines *lines, const char *data, size_t len);

/* The end of the input: what comes after the last newline is a line too. */
void fm_lines_end(struct fm_lines *lines);

/* Takes the next line. On FM_LINE_READY the line is `*len` bytes at `*line`, valid until the next call. */
enum fm_line_event fm_lines_next(struct fm_lines *lines, const char **line, size_t *len);

#endif
