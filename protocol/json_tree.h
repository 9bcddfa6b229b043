/*
 * Builds a json-c tree from JSON text that fm_json_check has accepted. json-c's own tokener is not used: when memory
 * runs out, it dereferences NULL (0.16, a member's name). Here every failure is reported.
 */
#ifndef FM_PROTOCOL_JSON_TREE_H
#define FM_PROTOCOL_JSON_TREE_H

#include "base/buf.h"

struct json_object;

/*
 * Builds the tree of the `len` bytes at `text` into `*root` (NULL for null); the caller releases it with
 * json_object_put. `scratch` is used for strings with escapes; its contents mean nothing afterwards. False when out of
 * memory; nothing is left to free then. Pure; recurses as deep as the text is nested, which fm_json_check limits. The
 * values are the same as from json-c's tokener: the last of equal keys counts, and an integer beyond 64 bits becomes
 * the nearest 64-bit integer. A number is written back with its original digits.
 */
FM_MUST_USE bool fm_json_tree(const char *text, size_t len, struct fm_buf *scratch, struct json_object **root);

#endif
