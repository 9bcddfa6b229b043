/* A command that the user's words were understood as, and how it is written: as the contract's JSON. */
#ifndef SY_FOUND_H
#define SY_FOUND_H

#include "desktop/snapshot.h"

struct fm_json_writer;
struct json_object;

struct sy_found {
    const char *type; /* of commands/table.c */
    const char *name; /* of an application or a preset; borrowed of the scene */
    size_t *tabs;     /* indices from 1, ascending; owned */
    size_t tab_count;
    const char *monitor; /* NULL: not given */
    bool has_bounds;
    struct sy_rect bounds;
    char *text; /* a URL, or the question; owned */
};

/* Frees what it owns; it is empty then. */
void sy_found_free(struct sy_found *found);

/* It closes something. */
bool sy_found_destroys(const struct sy_found *found);

/* `count` indices, copied. False when out of memory. */
FM_MUST_USE bool sy_found_set_tabs(struct sy_found *found, const size_t *tabs, size_t count);

/* Both do the same. */
bool sy_found_equal(const struct sy_found *a, const struct sy_found *b);

/* One command as an object. Those with indices name the snapshot that these are of. */
void sy_found_write(const struct sy_found *found, const struct sy_snapshot *snapshot, struct fm_json_writer *w);

#endif
