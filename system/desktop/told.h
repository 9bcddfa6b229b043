/*
 * What a client was told of tabs: the last few lists, so that an index keeps the meaning that it had for who read it. A
 * tab that was moved is still that tab; one that has gone, or shows another page than the client knows, is not.
 */
#ifndef SY_TOLD_H
#define SY_TOLD_H

#include "desktop/snapshot.h"

#define SY_TOLD_MAX 8 /* lists; the oldest is forgotten */

struct sy_told_tab {
    char id[SY_ID_MAX];
    uint64_t page; /* that the client knows it shows: sy_told_page of its address, which may have megabytes */
};

/* How much of a list the client has seen. */
enum sy_seen {
    SY_SEEN_PAGES,   /* all of it */
    SY_SEEN_INDICES, /* numbers of tabs: of their pages it knows what it was told before */
    SY_SEEN_HANDLE,  /* its handle, in a request that was made for it: indices without a handle are not of this list */
};

struct sy_told_list {
    char handle[SY_HANDLE_SIZE];
    enum sy_seen seen;
    struct sy_told_tab *tabs;
    size_t count;
};

/* Zeroed, it is empty. */
struct sy_told {
    struct sy_told_list lists[SY_TOLD_MAX]; /* the latest at `next` - 1 */
    size_t next;
    size_t count;
};

/* What stands for a page. */
uint64_t sy_told_page(const char *url);

/* The client is told the tabs of the snapshot. False when out of memory: nothing has changed then. */
FM_MUST_USE bool sy_told_add(struct sy_told *told, const struct sy_snapshot *snapshot, enum sy_seen seen);

/*
 * The list that indices refer to: that of `handle`, or without one (NULL) the latest that was seen. NULL: it was not
 * told, so indices can only be those of the present.
 */
const struct sy_told_list *sy_told_find(const struct sy_told *told, const char *handle);

/* Frees the lists; it is empty again. */
void sy_told_free(struct sy_told *told);

#endif
