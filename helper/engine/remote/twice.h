/*
 * Finds members that occur twice in an object of a JSON text. A parsed tree keeps only the last of them, and in a
 * configuration a repeated member is always a mistake. Pure.
 */
#ifndef FM_ENGINE_REMOTE_TWICE_H
#define FM_ENGINE_REMOTE_TWICE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * True if a member occurs twice: `path` (`size` bytes, cut if it is longer) gets the path of the second one, such as
 * "endpoints[0].url". The text has passed fm_json_check. False if no member occurs twice, or if memory runs out.
 * Recurses as deep as the text is nested.
 */
bool fm_json_find_twice(const char *text, size_t len, char *path, size_t size);

#endif
