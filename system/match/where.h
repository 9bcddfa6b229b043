/* Reads places for windows: "the left half of the right monitor". Pure. */
#ifndef SY_WHERE_H
#define SY_WHERE_H

#include "desktop/snapshot.h"
#include "match/words.h"

#define SY_TWELFTHS 12 /* halves, thirds and quarters of a monitor are whole numbers of twelfths */

struct sy_where {
    bool given;
    const char *monitor;          /* "left", "right", "main", "other", "second", "middle", "big", "small"; NULL: the one
                                     where the window is */
    bool part;                    /* `left` to `bottom` are set */
    int left, top, right, bottom; /* the edges, in twelfths of the monitor */
    const char *direction;        /* "left" or "right": the monitor there, or this half of the named or only monitor */
    int width, height;            /* in pixels; 0: not given */
    bool center;                  /* in the middle; with the present size, or with width and height */
    bool beside;                  /* "side by side" */
    bool rest;                    /* "the other half": the space beside the thing placed before */
    bool there;                   /* "there": at the place of the thing placed before */
};

/* Reads the place from `count` words; sets `used[i]` for each word that belongs to it. */
void sy_where_read(const struct sy_word *const *words, size_t count, struct sy_where *where, bool *used);

/*
 * Returns the parameters of place_app for a window with these bounds (NULL: not known). If a parameter is not given,
 * `*monitor` is NULL, or `*has_bounds` is false. Returns false if there is no such monitor.
 */
bool sy_where_bounds(const struct sy_where *where, const struct sy_snapshot *snapshot, const struct sy_rect *window,
                     const char **monitor, bool *has_bounds, struct sy_rect *bounds);

#endif
