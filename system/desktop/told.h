/*
 * The last few lists of tabs that a client has seen, so that an index keeps the meaning that it had for the client. A
 * tab that was moved is still the same tab. A tab that was closed, or shows another page than the client knows, is not
 * the same.
 */
#ifndef SY_TOLD_H
#define SY_TOLD_H

#include "desktop/snapshot.h"

#define SY_TOLD_MAX 8 /* lists; the oldest is forgotten */

struct sy_told_tab {
    char id[SY_ID_MAX];
    uint64_t page; /* the page that the client knows: sy_told_page of its address, which may have megabytes */
};

/* How much of a list the client has seen. */
enum sy_seen {
    SY_SEEN_PAGES,   /* the whole list, with the pages */
    SY_SEEN_INDICES, /* only numbers of tabs: their pages are known from earlier lists */
    SY_SEEN_HANDLE,  /* the handle, in a request made for the client: an index alone never refers to this list */
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

/* A hash that stands for a page. */
uint64_t sy_told_page(const char *url);

/* Notes that the client sees the tabs of the snapshot. False when out of memory: nothing has changed then. */
FM_MUST_USE bool sy_told_add(struct sy_told *told, const struct sy_snapshot *snapshot, enum sy_seen seen);

/*
 * The list that indices refer to: the list of `handle`, or if `handle` is NULL, the latest list whose numbers the
 * client has seen. NULL: there is no such list, so indices can only refer to the present tabs.
 */
const struct sy_told_list *sy_told_find(const struct sy_told *told, const char *handle);

/* Frees the lists. Afterwards there are none. */
void sy_told_free(struct sy_told *told);

#endif
