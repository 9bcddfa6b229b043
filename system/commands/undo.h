/*
 * Placements that can be taken back. Each command that moved windows has a record of where they were, with a handle.
 * The last few records are kept. A record that was taken back is dropped. Then the record before it is the last one.
 */
#ifndef SY_UNDO_H
#define SY_UNDO_H

#include "desktop/snapshot.h"

#define SY_UNDOS_MAX 32 /* records; the oldest is forgotten */

struct sy_moved {
    char window[SY_ID_MAX];
    int64_t pid; /* the window's process: another program's later window may get the same id */
    char *app_name;
    struct sy_rect before;
};

struct sy_undo {
    char handle[SY_HANDLE_SIZE];
    struct sy_moved *at; /* the windows, in the order in which they were moved */
    size_t count;
};

/* Zeroed, it is empty. */
struct sy_undos {
    struct sy_undo records[SY_UNDOS_MAX]; /* the oldest first */
    size_t count;
};

/* Adds the window's present place to a record that is being made. False when out of memory: nothing has changed. */
FM_MUST_USE bool sy_undo_note(struct sy_undo *record, const struct sy_window *window, const char *app_name);

/* Gives the record a handle and keeps it; `record` is empty afterwards. Returns the handle; NULL: it had no windows. */
const char *sy_undos_add(struct sy_undos *undos, struct sy_undo *record);

/* The record with this handle, or the last one if `handle` is NULL. NULL: there is none. Valid until a record is added
 * or dropped. */
const struct sy_undo *sy_undos_find(const struct sy_undos *undos, const char *handle);

/* Forgets a record that sy_undos_find gave. */
void sy_undos_drop(struct sy_undos *undos, const struct sy_undo *record);

/* Forgets all records. */
void sy_undos_free(struct sy_undos *undos);

#endif
