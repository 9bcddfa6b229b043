/* Cleans text of pages and windows: removes characters that could affect people, prompts and terminals. Pure. */
#ifndef SY_CLEAN_H
#define SY_CLEAN_H

#include "base/buf.h"

#include <stdbool.h>

struct fm_json_writer;

/*
 * Appends at most `max` characters of `text`. Leaves out control characters, and those that change the direction of
 * text. White space in a row becomes one space. With `lines`, white space with newlines becomes only these newlines, at
 * most two. No white space remains at the ends. A byte that is not valid UTF-8 becomes U+FFFD.
 */
void sy_clean(struct fm_buf *out, const char *text, size_t max, bool lines);

/*
 * Appends at most `max` characters of a URL, without its parts that may be secret: user name and password, query,
 * fragment. Of a URL without "//", such as data:, only the scheme remains.
 */
void sy_clean_url(struct fm_buf *out, const char *url, size_t max);

/* Write the output of sy_clean (in one line) and of sy_clean_url as a JSON string. */
void sy_write_clean(struct fm_json_writer *w, const char *text, size_t max);
void sy_write_clean_url(struct fm_json_writer *w, const char *url, size_t max);

#endif
