/*
 * Halves of characters beyond U+FFFF. A server that cuts its text by UTF-16 sends "\ud83d" in one delta and "\ude00" in
 * the next one. Each is a lone surrogate, whose meaning JSON (RFC 8259, 8.2) leaves open. They are joined here; a half
 * without its other half becomes U+FFFD. A half that waits for the other one is kept as three bytes that UTF-8 forbids
 * (WTF-8). Pure.
 */
#ifndef FM_ENGINE_REMOTE_HALVES_H
#define FM_ENGINE_REMOTE_HALVES_H

#include "base/buf.h"

/*
 * Looks for lone halves among the escapes of a JSON text. If there are any, two copies are made. `checked` (empty) gets
 * the text with U+FFFD in place of the halves, to check whether the rest is valid JSON. `raw` (empty) gets the text
 * with the halves as bytes. False: there are no lone halves, or out of memory (`failed` of either buffer).
 */
bool fm_halves_find(const char *text, size_t len, struct fm_buf *checked, struct fm_buf *raw);

/* A first half that waits for the other one; 0: none. */
struct fm_halves {
    unsigned first;
};

/* Appends a piece of a text with halves to `out`; a first half at its end waits. */
void fm_halves_join(struct fm_halves *halves, const char *text, size_t len, struct fm_buf *out);

/* Ends the text: a half that still waits becomes U+FFFD. */
void fm_halves_end(struct fm_halves *halves, struct fm_buf *out);

/* Replaces each half by U+FFFD, in place. It is for a text that has no next piece. */
void fm_halves_replace(char *text, size_t len);

#endif
