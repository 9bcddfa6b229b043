/* The fake engine's answer to a job with a JSON format: a small instance of the schema. */
#ifndef FM_ENGINE_FAKE_INSTANCE_H
#define FM_ENGINE_FAKE_INSTANCE_H

#include "base/buf.h"
#include "base/error.h"

#include <stddef.h>

struct json_object;

/*
 * Appends an instance of `schema` (borrowed; {"type":"object"} for json_object) to `out`, as JSON without blanks. Its
 * strings are the words of `text` (`len` bytes of UTF-8), one after the other, and then again from the start. It has
 * all properties and the fewest items that are allowed, but at least one item if items are described. It takes the
 * first of several types, and the first branch of anyOf and oneOf. fm_schema_prepare checks that the branches of oneOf
 * exclude each other. After four $refs optional properties are left out and arrays stay empty. Pure; recursion, values
 * and items are bounded.
 *
 * FM_INVALID_REQUEST, with the keyword in the detail: the schema has something that is not supported, such as
 * `pattern`, or several keywords that each decide the value (allOf, anyOf beside properties); or no value fits it.
 * FM_INTERNAL: out of memory, or more than out->max bytes; `out` then holds a part of the instance.
 */
FM_MUST_USE enum fm_code fm_instance_write(struct json_object *schema, const char *text, size_t len, struct fm_buf *out,
                                           struct fm_error *error);

#endif
