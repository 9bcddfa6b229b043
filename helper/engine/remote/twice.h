/*
 * Members that an object of a JSON text has twice: a tree keeps the last one alone, and in a configuration nobody means
 * that. Pure.
 */
#ifndef FM_ENGINE_REMOTE_TWICE_H
#define FM_ENGINE_REMOTE_TWICE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * True, with the path of the second one in `path` (`size` bytes, cut if it is longer), such as "endpoints[0].url". The
 * text has passed fm_json_check. False where none is there twice, or memory runs out. Recurses as deep as the text is
 * nested.
 */
bool fm_json_find_twice(const char *text, size_t len, char *path, size_t size);

#endif
