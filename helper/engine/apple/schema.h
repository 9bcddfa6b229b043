/*
 * A JSON schema in the dialect that Apple's library reads, and its answer back in the host's.
 *
 * The dialect: each object has a `title`, lists its properties in `x-order`, and allows no others; objects inside of it
 * stand in `$defs`. It has strings (`enum`), numbers (`minimum`, `maximum`), booleans, arrays (`minItems`, `maxItems`)
 * and `anyOf`; it has no null. So a property that may be null is one that may be left out there, and what was left out
 * becomes null in the answer. A schema that is not one of an object becomes the only property of one. All that the
 * dialect allows fits the host's schema, except for the keywords in the report's `checked`. Pure.
 */
#ifndef FM_ENGINE_APPLE_SCHEMA_H
#define FM_ENGINE_APPLE_SCHEMA_H

#include "base/buf.h"
#include "base/error.h"

#include <stdbool.h>

struct json_object;

struct fm_apple_schema {
    struct json_object *root;   /* in Apple's dialect: an object */
    struct json_object *source; /* the host's; borrowed */
    bool wrapped;               /* the answer is the only property of `root` */
    struct fm_buf report;       /* schema_report of job.accepted */
};

/*
 * Translates `source` (borrowed; it outlives `schema`), whose root is called `title`. Where a keyword has no place in
 * the dialect, it is an error if `strict`, else left out and reported as `checked`: answers come whole, so they can be
 * checked before anything of them is told. FM_INVALID_REQUEST, with
 * `elsewhere` and the path, which begins with `at`: the dialect lacks a part of it. On failure nothing is left to free.
 */
FM_MUST_USE enum fm_code fm_apple_schema_make(struct json_object *source, const char *title, bool strict,
                                              const char *at, struct fm_apple_schema *schema, struct fm_error *error);

/* Frees what `schema` owns; harmless for a zeroed one. */
void fm_apple_schema_free(struct fm_apple_schema *schema);

/*
 * Appends the library's answer `text` (`len` bytes of JSON) to `out` as one to the host's schema. FM_INTERNAL: it is no
 * JSON object, or out of memory.
 */
FM_MUST_USE enum fm_code fm_apple_schema_restore(const struct fm_apple_schema *schema, const char *text, size_t len,
                                                 struct fm_buf *out, struct fm_error *error);

#endif
