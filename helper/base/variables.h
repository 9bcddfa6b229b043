/* Which environment variables a list names. */
#ifndef FM_BASE_VARIABLES_H
#define FM_BASE_VARIABLES_H

#include <stdbool.h>
#include <stddef.h>

/*
 * True if `entry` (NAME or NAME=VALUE) has one of the `count` `names`, or if it begins with one of them that ends with
 * '_'. Pure.
 */
bool fm_variable_is_in(const char *const names[], size_t count, const char *entry);

#endif
