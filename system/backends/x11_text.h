/* Text of X properties, which may be anything, as UTF-8. Pure. */
#ifndef SY_X11_TEXT_H
#define SY_X11_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The text up to the first NUL: UTF-8 as it is, or else Latin-1, which properties of the type STRING are (ICCCM,
 * 2.7.1); with `utf8` a byte that is no part of valid UTF-8 becomes U+FFFD instead, but for one that `len`
 * cuts, which is left out. Control characters become spaces. The caller frees it; NULL when out of memory.
 */
char *sy_x11_text(const char *bytes, size_t len, bool utf8);

#endif
