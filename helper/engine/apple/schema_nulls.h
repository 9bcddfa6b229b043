/*
 * Finds where a schema allows null, which Apple's dialect does not have, and puts the nulls back into an answer. Pure.
 */
#ifndef FM_ENGINE_APPLE_SCHEMA_NULLS_H
#define FM_ENGINE_APPLE_SCHEMA_NULLS_H

#include "engine/apple/schema.h"

#define FM_APPLE_WRAPPED "value" /* the property that holds an answer which is not an object */

/*
 * Returns the schema that the `$ref` of `schema` leads to, or `schema` itself if it has no `$ref`. NULL: the `$ref` is
 * no path in `root`, or the chain of them is too long. Borrowed.
 */
struct json_object *fm_apple_resolve(struct json_object *root, struct json_object *schema);

/* Whether null fits `schema`, a part of `root`. */
bool fm_apple_may_be_null(struct json_object *root, struct json_object *schema);

/* Whether only null fits the schema. */
bool fm_apple_only_null(struct json_object *root, struct json_object *schema);

#endif
