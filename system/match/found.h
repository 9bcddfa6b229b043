/* A command that was understood from the user's words, and how it is written as the contract's JSON. */
#ifndef SY_FOUND_H
#define SY_FOUND_H

#include "desktop/snapshot.h"

struct fm_json_writer;
struct json_object;

struct sy_found {
    const char *type; /* the command's type, from commands/table.c */
    const char *name; /* the name of an application or a preset; borrowed from the scene */
    size_t *tabs;     /* indices from 1, ascending; owned */
    size_t tab_count;
    const char *monitor; /* NULL: not given */
    bool has_bounds;
    struct sy_rect bounds;
    char *text; /* a URL, or the question; owned */
};

/* Frees the command's members; afterwards the command is empty. */
void sy_found_free(struct sy_found *found);

/* Whether the command closes something. */
bool sy_found_destroys(const struct sy_found *found);

/* Copies `count` indices into the command. False when out of memory. */
FM_MUST_USE bool sy_found_set_tabs(struct sy_found *found, const size_t *tabs, size_t count);

/* Whether both commands do the same. */
bool sy_found_equal(const struct sy_found *a, const struct sy_found *b);

/* Writes the command as an object. If the command has indices, the object also has the handle of their snapshot. */
void sy_found_write(const struct sy_found *found, const struct sy_snapshot *snapshot, struct fm_json_writer *w);

#endif
