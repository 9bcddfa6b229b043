/*
 * The strict check of a body before json-c sees it: json-c itself accepts overlong UTF-8, NaN, single quotes, and NULs
 * that cut a key short. A text that passes is one RFC 8259 value, and json-c parses it correctly.
 */
#ifndef FM_PROTOCOL_JSON_CHECK_H
#define FM_PROTOCOL_JSON_CHECK_H

#include <stddef.h>

#define FM_JSON_DEPTH_MAX  64    /* arrays and objects inside each other */
#define FM_JSON_VALUES_MAX 65536 /* in a body: a tree takes up to 800 bytes for each value */

/* What fm_json_check returns for a text with too many values. */
extern const char fm_json_too_many[];

/*
 * NULL when `text` (`len` bytes) is one JSON value in UTF-8 with nothing but white space around it, at most
 * FM_JSON_DEPTH_MAX deep, of at most `values_max` values (scalars, arrays and objects), without a NUL in a key, a lone
 * surrogate or a number beyond a double's range. Otherwise a static string that says what is wrong, with the position
 * in bytes in `*offset`. Pure, not recursive, linear in `len`.
 */
const char *fm_json_check(const char *text, size_t len, size_t values_max, size_t *offset);

#endif
