/* The state of the walk over a schema, and its table of keywords. Only the files of schema.h include this. */
#ifndef FM_ENGINE_APPLE_SCHEMA_WORK_H
#define FM_ENGINE_APPLE_SCHEMA_WORK_H

#include "base/buf.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

struct json_object;

#define FM_APPLE_OBJECTS_MAX 256 /* the most objects in a schema; each one is a definition */
#define FM_APPLE_NAME_SIZE   64
#define FM_APPLE_KEYWORDS    43u

struct fm_apple_work {
    struct json_object *root;
    struct json_object *definitions; /* definitions in the dialect, by name */
    struct json_object *objects[FM_APPLE_OBJECTS_MAX];
    char names[FM_APPLE_OBJECTS_MAX][FM_APPLE_NAME_SIZE]; /* "" for the root, because it is not a definition */
    size_t count;
    bool strict;
    bool taken[FM_APPLE_KEYWORDS];
    struct json_object *checked; /* paths */
    const char *at;
    int depth;
    struct fm_error *error;
};

/* A place in the schema: its path, and the name that an object there would have. */
struct fm_apple_place {
    char path[sizeof((struct fm_error *)0)->param];
    const char *name;
};

/* Returns the member of an object; NULL: no such member, or `schema` is not an object. Borrowed. */
struct json_object *fm_apple_member(struct json_object *schema, const char *name);

/* Fails with FM_INVALID_REQUEST for the keyword at the place ("": for the whole place). Returns NULL, like a failed
 * translation. */
struct json_object *fm_apple_schema_refuse(struct fm_apple_work *work, const struct fm_apple_place *place,
                                           const char *keyword, const char *what);

/* Returns a place inside of another place; an object there would be called `name`. A path that does not fit is cut. */
FM_PRINTF(3, 4)
struct fm_apple_place fm_apple_below(const struct fm_apple_place *parent, const char *name, const char *fmt, ...);

/* Handles a keyword that the dialect lacks: adds it to the report, or returns false, with the error, if `strict`. */
FM_MUST_USE bool fm_apple_check_later(struct fm_apple_work *work, const struct fm_apple_place *place, const char *name);

/*
 * Notes which keywords the schema has, and what to do with each. False, with the error, if fm_apple_check_later returns
 * false.
 */
FM_MUST_USE bool fm_apple_look_at_keywords(struct fm_apple_work *work, struct json_object *schema,
                                           const struct fm_apple_place *place);

/* Appends the report: schema_report of ENGINE.md. */
void fm_apple_write_report(const struct fm_apple_work *work, struct fm_buf *report);

#endif
