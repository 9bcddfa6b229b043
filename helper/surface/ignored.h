/*
 * Unknown members of a request. Their paths (`input[0].foo`) are kept in the form in which the answer and the log
 * report them (PROTOCOL.md, "Unknown parameters"). In a buffer each path ends with a NUL. Pure.
 */
#ifndef FM_SURFACE_IGNORED_H
#define FM_SURFACE_IGNORED_H

#include "base/buf.h"
#include "base/error.h"
#include "protocol/json_writer.h"

#define FM_IGNORED_MAX      64u  /* paths of a request; if there are more, FM_IGNORED_MORE follows for all others */
#define FM_IGNORED_PATH_MAX 255u /* bytes of a path */
#define FM_IGNORED_MORE     "..."
#define FM_IGNORED_BYTES    (FM_IGNORED_MAX * (FM_IGNORED_PATH_MAX + 1) + sizeof FM_IGNORED_MORE)

/*
 * The paths that a check collects. All zero is an empty list. It owns no memory, so a failed check has nothing to free.
 */
struct fm_ignored {
    size_t count;
    size_t len;
    char paths[FM_IGNORED_BYTES];
};

/* Adds a path (NUL-terminated, at most FM_IGNORED_PATH_MAX bytes, copied), unless there are FM_IGNORED_MAX already. */
void fm_ignored_add(struct fm_ignored *ignored, const char *path);

/* Adds a path to a buffer of paths; a path is added only once. The buffer fails when memory runs out. */
void fm_ignored_append(struct fm_buf *paths, const char *path);

/* Returns the first path (`last` NULL), or the path after `last`; NULL after the last path. Borrowed from `paths`. */
const char *fm_ignored_next(const struct fm_buf *paths, const char *last);

/* Returns the collected paths as a buffer, which borrows them. */
struct fm_buf fm_ignored_paths(const struct fm_ignored *ignored);

/* Writes the member `fm` of an object, {"ignored": the paths}, if there are any. */
void fm_ignored_write_report(const struct fm_buf *paths, struct fm_json_writer *w);

#endif
