/* Text of X properties, which may be anything, as UTF-8. Pure. */
#ifndef SY_X11_TEXT_H
#define SY_X11_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The text up to the first NUL. Valid UTF-8 stays as it is; other text is read as Latin-1, the encoding of properties
 * of the type STRING (ICCCM, 2.7.1). With `utf8` a byte that is not part of valid UTF-8 becomes U+FFFD instead; a
 * character that is cut at `len` is left out. Control characters become spaces. The caller frees the text; NULL when
 * out of memory.
 */
char *sy_x11_text(const char *bytes, size_t len, bool utf8);

#endif
