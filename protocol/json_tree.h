/*
 * JSON text that fm_json_check has accepted becomes a json-c tree. json-c's own tokener is not used for it: without
 * memory it dereferences NULL (0.16, a member's name), and here every failure is an error.
 */
#ifndef FM_PROTOCOL_JSON_TREE_H
#define FM_PROTOCOL_JSON_TREE_H

#include "base/buf.h"

struct json_object;

/*
 * Builds the tree of the `len` bytes at `text` into `*root` (NULL for null); the caller puts it. `scratch` is used for
 * strings with escapes and keeps nothing. False when out of memory; nothing is left allocated then. Pure; recurses as
 * deep as the text is nested, which fm_json_check bounds. Values are what json-c's tokener makes of them: the last of
 * equal keys counts, an integer beyond 64 bits is the nearest one that fits. Numbers are written again as they came.
 */
FM_MUST_USE bool fm_json_tree(const char *text, size_t len, struct fm_buf *scratch, struct json_object **root);

#endif
