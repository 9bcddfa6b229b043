/* Text of pages and windows, for people, prompts and terminals: without what would act on its reader. Pure. */
#ifndef SY_CLEAN_H
#define SY_CLEAN_H

#include "base/buf.h"

#include <stdbool.h>

struct fm_json_writer;

/*
 * Appends at most `max` characters of `text`. Control characters and those that turn the direction of text are left
 * out; white space in a row becomes one space, or with `lines` the newlines in it, at most two; none is left at the
 * ends. What is not UTF-8 becomes U+FFFD.
 */
void sy_clean(struct fm_buf *out, const char *text, size_t max, bool lines);

/*
 * Appends a URL without what may be secret: name and password, query, fragment; of one without "//", such as data:,
 * only the scheme. At most `max` characters.
 */
void sy_clean_url(struct fm_buf *out, const char *url, size_t max);

/* The same, of one line, as a string of JSON. */
void sy_write_clean(struct fm_json_writer *w, const char *text, size_t max);
void sy_write_clean_url(struct fm_json_writer *w, const char *url, size_t max);

#endif
