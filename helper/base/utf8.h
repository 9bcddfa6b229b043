/* UTF-8 as RFC 3629 defines it: no overlong forms, no surrogates, nothing above U+10FFFF. */
#ifndef FM_BASE_UTF8_H
#define FM_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Looks at the sequence that starts `text` (`len` bytes, at least 1). Returns its length of 1 to 4 bytes when it is
 * valid, 0 when it is a valid beginning that ends at `len`, and -1 when it is invalid.
 */
int fm_utf8_sequence(const char *text, size_t len);

/* True when `text` is UTF-8 from its first byte to its last. */
bool fm_utf8_valid(const char *text, size_t len);

/* The length in bytes of the byte order mark that `text` begins with, which editors on Windows write; 0: it has no
 * mark. */
size_t fm_utf8_mark(const char *text, size_t len);

/* Returns the length of `text` in bytes, without an incomplete sequence at its end that more bytes could complete. */
size_t fm_utf8_whole_prefix(const char *text, size_t len);

/* How many characters (code points) valid UTF-8 has, and how many bytes its first `max` characters have. */
size_t fm_utf8_characters(const char *text, size_t len);
size_t fm_utf8_prefix(const char *text, size_t len, size_t max);

/* Returns how many bytes of `text` to print with "%.*s": at most `max`, cut between characters. */
int fm_utf8_shown(const char *text, size_t max);

/*
 * How many bytes at the beginning of `text` a JSON string holds unchanged: ASCII except control characters, the quote
 * and the backslash (RFC 8259, section 7). Looks at eight bytes at a time, so long texts take little time.
 */
size_t fm_ascii_plain(const char *text, size_t len);

#endif
