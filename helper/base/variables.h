/* Which environment variables a list lets through, or keeps back. */
#ifndef FM_BASE_VARIABLES_H
#define FM_BASE_VARIABLES_H

#include <stdbool.h>
#include <stddef.h>

/*
 * True when `entry` (NAME or NAME=VALUE) is one of the `count` `names`, or begins with a name of them that ends with
 * '_'. Pure.
 */
bool fm_variable_is_in(const char *const names[], size_t count, const char *entry);

#endif
