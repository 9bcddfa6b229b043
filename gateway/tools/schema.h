/*
 * Checks a tool's input against its JSON Schema. It knows only what the rows of the table use: type, properties,
 * required, additionalProperties (false), items, enum (of strings), minLength, maxLength, minItems, maxItems, minimum,
 * maximum; title and description are skipped. Any other keyword is an error of the row, so that no keyword is silently
 * ignored.
 */
#ifndef GW_TOOLS_SCHEMA_H
#define GW_TOOLS_SCHEMA_H

#include "base/error.h"

struct json_object;

/*
 * Checks an input. FM_INVALID_REQUEST: the input is at fault; `param` has the path of the value ("actions[2].url", ""
 * for the whole) and the detail says what is allowed. FM_INTERNAL: the schema is at fault. The caller keeps both. Pure;
 * recurses as deep as the schema is nested.
 */
FM_MUST_USE enum fm_code gw_schema_check(struct json_object *schema, struct json_object *input, struct fm_error *error);

#endif
