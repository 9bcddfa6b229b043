/*
 * A byte buffer that grows up to a maximum, which is fixed at init. It refuses bytes beyond that.
 *
 * A failed append (maximum reached, or out of memory) sets `failed` and leaves the contents as they were. Every later
 * append fails too, so several appends need only one check at their end. Not thread-safe. The buffer owns its bytes
 * until fm_buf_free.
 */
#ifndef FM_BASE_BUF_H
#define FM_BASE_BUF_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>

struct fm_buf {
    char *data; /* not NUL-terminated; NULL while empty */
    size_t len; /* bytes in use */
    size_t cap; /* bytes allocated */
    size_t max; /* bytes that `cap` never exceeds */
    bool failed;
};

/* Prepares an empty buffer; allocates nothing. `max` in bytes. */
void fm_buf_init(struct fm_buf *buf, size_t max);

/* Frees the bytes; the buffer is as after fm_buf_init. */
void fm_buf_free(struct fm_buf *buf);

/* Forgets the contents and a failure, but keeps the allocated memory. */
void fm_buf_reset(struct fm_buf *buf);

/* Makes room for `more` bytes after the contents. False when the buffer has failed; its contents stay. */
FM_MUST_USE bool fm_buf_reserve(struct fm_buf *buf, size_t more);

/* Append bytes. A failure sets `failed`, which stays set. */
void fm_buf_append(struct fm_buf *buf, const void *bytes, size_t len);
void fm_buf_append_str(struct fm_buf *buf, const char *str);
void fm_buf_append_char(struct fm_buf *buf, char c);

/* Removes the first `n` bytes (n <= len). */
void fm_buf_drop_front(struct fm_buf *buf, size_t n);

#endif
