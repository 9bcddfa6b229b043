/*
 * Secrets, such as keys: each in separate memory that is left out of core dumps and is overwritten before it is given
 * back. Nothing here blocks.
 */
#ifndef FM_BASE_SECRET_H
#define FM_BASE_SECRET_H

#include <stddef.h>

/* `len` + 1 zeros. The caller fills them, and frees them with fm_secret_free. NULL when out of memory. Any thread. */
char *fm_secret_new(size_t len);

/*
 * The first `len` bytes of `text` and a NUL. The caller frees them with fm_secret_free. NULL when out of memory. Any
 * thread.
 */
char *fm_secret_copy(const char *text, size_t len);

/*
 * The value of the environment variable `name`, as fm_secret_copy. The variable leaves the environment, and its value
 * is overwritten there, so that neither /proc nor a child process has it. NULL: it is not set, or out of memory; then
 * it stays. Only while the process has one thread.
 */
char *fm_secret_take(const char *name);

/* NULL does nothing. */
void fm_secret_free(char *secret);

#endif
