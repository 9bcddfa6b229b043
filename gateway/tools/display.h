/* Shows text from a model as the user must see it before approval. */
#ifndef GW_TOOLS_DISPLAY_H
#define GW_TOOLS_DISPLAY_H

#include "base/buf.h"

/*
 * Appends UTF-8 `text`. A character that is invisible, looks like a space, or moves or reorders others is replaced by
 * its name in angle brackets, such as <U+202E>: controls (except newline and tab), bidi marks, zero-width and filler
 * characters, tags. True when one was replaced. Pure.
 */
bool gw_display(struct fm_buf *buf, const char *text, size_t len);

/*
 * Appends text as gw_display does, but as one line of at most `max` bytes: newlines and tabs become a space, and "..."
 * stands for what is cut.
 */
void gw_display_line(struct fm_buf *buf, const char *text, size_t len, size_t max);

#endif
