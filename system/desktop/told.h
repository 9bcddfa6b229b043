/*
 * What a client was told of tabs: the last few lists, so that an index keeps the meaning that it had for who read it. A
 * tab that was moved is still that tab; one that has gone, or shows another page, is not.
 */
#ifndef SY_TOLD_H
#define SY_TOLD_H

#include "desktop/snapshot.h"

#define SY_TOLD_MAX 8 /* lists; the oldest is forgotten */

struct sy_told_tab {
    char id[SY_ID_MAX];
    char *url;
};

struct sy_told_list {
    char handle[SY_HANDLE_SIZE];
    struct sy_told_tab *tabs;
    size_t count;
};

/* Zeroed, it is empty. */
struct sy_told {
    struct sy_told_list lists[SY_TOLD_MAX]; /* the latest at `next` - 1 */
    size_t next;
    size_t count;
};

/* The client is told the tabs of the snapshot. False when out of memory: nothing has changed then. */
FM_MUST_USE bool sy_told_add(struct sy_told *told, const struct sy_snapshot *snapshot);

/*
 * The list that indices refer to: that of `handle`, or without one (NULL) the latest. NULL: it was not told, so indices
 * can only be those of the present.
 */
const struct sy_told_list *sy_told_find(const struct sy_told *told, const char *handle);

/* Frees the lists; it is empty again. */
void sy_told_free(struct sy_told *told);

#endif
