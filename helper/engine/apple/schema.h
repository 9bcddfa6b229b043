/*
 * Translates a JSON schema to the dialect that Apple's library reads, and its answer back to the form of the host's
 * schema.
 *
 * The dialect: each object has a `title`, lists its properties in `x-order`, and allows no others; objects inside it
 * are in `$defs`. It has strings (`enum`), numbers (`minimum`, `maximum`), booleans, arrays (`minItems`, `maxItems`)
 * and `anyOf`; it has no null. So a property that may be null becomes optional there, and if it is left out, it becomes
 * null in the answer. A schema that is not an object becomes the only property of one. Every value that the dialect
 * allows fits the host's schema, except for the keywords in the report's `checked`. Pure.
 */
#ifndef FM_ENGINE_APPLE_SCHEMA_H
#define FM_ENGINE_APPLE_SCHEMA_H

#include "base/buf.h"
#include "base/error.h"

#include <stdbool.h>

struct json_object;

struct fm_apple_schema {
    struct json_object *root;   /* in Apple's dialect: an object */
    struct json_object *source; /* the host's schema; borrowed */
    bool wrapped;               /* the answer is the only property of `root` */
    struct fm_buf report;       /* schema_report of job.accepted */
};

/*
 * Translates `source` (borrowed; it outlives `schema`), whose root gets the title `title`. A keyword that the dialect
 * lacks is an error if `strict`. Otherwise it is left out and reported as `checked`: an answer comes whole, so it can
 * be checked before it is sent. FM_INVALID_REQUEST, with `elsewhere` and the path, which begins with `at`: the dialect
 * can't express a part of the schema. On failure nothing is left to free.
 */
FM_MUST_USE enum fm_code fm_apple_schema_make(struct json_object *source, const char *title, bool strict,
                                              const char *at, struct fm_apple_schema *schema, struct fm_error *error);

/* Frees what `schema` owns; harmless for a zeroed one. */
void fm_apple_schema_free(struct fm_apple_schema *schema);

/*
 * Appends the library's answer `text` (`len` bytes of JSON) to `out` in the form of the host's schema. FM_INTERNAL: it
 * is no JSON object, or out of memory.
 */
FM_MUST_USE enum fm_code fm_apple_schema_restore(const struct fm_apple_schema *schema, const char *text, size_t len,
                                                 struct fm_buf *out, struct fm_error *error);

#endif
