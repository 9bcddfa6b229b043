/*
 * Placements that can be taken back: for each command that moved windows a record of where they were, under a handle.
 * The last few records are kept; one that was taken back is gone, so that the last one is then the one before it.
 */
#ifndef SY_UNDO_H
#define SY_UNDO_H

#include "desktop/snapshot.h"

#define SY_UNDOS_MAX 32 /* records; the oldest is forgotten */

struct sy_moved {
    char window[SY_ID_MAX];
    int64_t pid; /* of the window; an id may be given to another program's window later */
    char *app_name;
    struct sy_rect before;
};

struct sy_undo {
    char handle[SY_HANDLE_SIZE];
    struct sy_moved *at; /* in the order in which they were moved */
    size_t count;
};

/* Zeroed, it is empty. */
struct sy_undos {
    struct sy_undo records[SY_UNDOS_MAX]; /* the oldest first */
    size_t count;
};

/* Notes in a record that is being made where the window is now. False when out of memory: nothing has changed. */
FM_MUST_USE bool sy_undo_note(struct sy_undo *record, const struct sy_window *window, const char *app_name);

/* Gives the record a handle and keeps it; `record` is empty afterwards. Returns its handle; NULL: it had no windows. */
const char *sy_undos_add(struct sy_undos *undos, struct sy_undo *record);

/* That of the handle, or without one (NULL) the last. NULL: there is none. Valid until the next call of the others. */
const struct sy_undo *sy_undos_find(const struct sy_undos *undos, const char *handle);

/* Forgets a record that sy_undos_find gave. */
void sy_undos_drop(struct sy_undos *undos, const struct sy_undo *record);

/* Forgets all; it is empty again. */
void sy_undos_free(struct sy_undos *undos);

#endif
