/*
 * The strict look at a body before json-c sees it: json-c alone accepts overlong UTF-8, NaN, single quotes and NULs
 * that cut a key short. What passes here is one RFC 8259 value, and json-c parses it as meant.
 */
#ifndef FM_PROTOCOL_JSON_CHECK_H
#define FM_PROTOCOL_JSON_CHECK_H

#include <stddef.h>

#define FM_JSON_DEPTH_MAX 64 /* arrays and objects inside each other */

/*
 * NULL when `text` (`len` bytes) is one JSON value in UTF-8 with nothing but white space around it, at most
 * FM_JSON_DEPTH_MAX deep, without a NUL in a key, a lone surrogate or a number beyond a double's range. Otherwise what
 * is wrong, a static string, and in `*offset` the byte where. Pure, not recursive, linear in `len`.
 */
const char *fm_json_check(const char *text, size_t len, size_t *offset);

#endif
